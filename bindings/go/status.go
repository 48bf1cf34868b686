package rkv

// #include "call.h"
import "C"

import "fmt"

// Status is the kind of an error, as rkv.h numbers them. A Status is an error itself, the one that
// errors.Is compares with:
//
//	if errors.Is(err, rkv.ErrOutOfCapacity) { ... }
type Status int32

// What each means is said in rkv.h; kinds that a newer library adds arrive as other numbers.
const (
	ErrInvalidArgument Status = C.RKV_INVALID_ARGUMENT // a value, shape or dtype that can never be right here
	ErrUnsupported     Status = C.RKV_UNSUPPORTED      // valid, but not served by this version, build or backend
	ErrOutOfCapacity   Status = C.RKV_OUT_OF_CAPACITY  // more than the cache was created for
	ErrBufferTooSmall  Status = C.RKV_BUFFER_TOO_SMALL // a caller's buffer; the text says the need
	ErrBadState        Status = C.RKV_BAD_STATE        // right call, wrong moment
	ErrDeviceError     Status = C.RKV_DEVICE_ERROR     // the device failed; only Close is valid from here on
	ErrABIMismatch     Status = C.RKV_ABI_MISMATCH     // imported bytes of another version or byte order
	ErrCorruptData     Status = C.RKV_CORRUPT_DATA     // imported bytes that are damaged or do not fit together
	ErrOutOfMemory     Status = C.RKV_OUT_OF_MEMORY    // memory or threads
	ErrInternal        Status = C.RKV_INTERNAL         // a bug of the library
)

// Error is the library's name of the status: "BAD_STATE".
func (s Status) Error() string { return C.GoString(C.rkv_status_name(C.rkv_status(s))) }

// Error is what a call was refused for. errors.As finds it, errors.Is compares its Status.
type Error struct {
	Status     Status
	NativeCode int32  // of the device or the system, 0 = none
	Text       string // the library's: names the argument, its value and what would be right
}

func (e *Error) Error() string { return "rkv: " + e.Status.Error() + ": " + e.Text }

// Unwrap gives the Status, for errors.Is.
func (e *Error) Unwrap() error { return e.Status }

// newError reads the text that the call left in its own rkv_error.
func newError(status C.rkv_status, err *C.rkv_error) error {
	return &Error{
		Status:     Status(status),
		NativeCode: int32(err.native_code),
		Text:       C.GoString(&err.text[0]),
	}
}

// refuse is for what the library cannot see: the length of a slice, a closed cache.
func refuse(status Status, format string, args ...any) error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}
