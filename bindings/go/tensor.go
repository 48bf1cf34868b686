package rkv

// #include "call.h"
import "C"

import (
	"math/bits"
	"unsafe"
)

// maxAxes is how many axes an rkv_tensor has room for.
const maxAxes = 6

// Element is what a slice behind a tensor may hold. F16, BF16 and the 8-bit types have no type of
// their own in Go: their bits lie in uint16 and uint8, or any of them in plain bytes.
type Element interface {
	~float32 | ~uint16 | ~int16 | ~uint8 | ~int8 | ~uint32
}

// Tensor is a strided view over a slice of the engine's, never a copy: axes [rows, heads, channels].
// It is made anew at no cost; the slice is read or written during a call only. The zero Tensor means
// "not given".
type Tensor struct {
	data    unsafe.Pointer // the slice's first element
	address uintptr        // device memory instead
	length  int64          // of the slice, in elements of dtype
	offset  int64          // of element [0, 0, 0], in elements
	dtype   DType
	axes    int // as asked for: the library refuses wrong numbers
	shape   [maxAxes]int64
	strides [maxAxes]int64
	steps   int // strides given, where it differs from axes

	scale        unsafe.Pointer
	scaleLength  int64
	scaleStrides [maxAxes]int64
}

// Float32s views data as F32, contiguous in the order of shape.
func Float32s(data []float32, shape ...int64) Tensor { return View(F32, data, shape...) }

// Float16s views the bits of IEEE half floats, contiguous in the order of shape.
func Float16s(data []uint16, shape ...int64) Tensor { return View(F16, data, shape...) }

// BFloat16s views the bits of bfloat16 values, contiguous in the order of shape.
func BFloat16s(data []uint16, shape ...int64) Tensor { return View(BF16, data, shape...) }

// View views data, of whatever type, as elements of dtype, contiguous in the order of shape:
// View(BF16, bytes, rows, heads, channels) takes what a file or a socket gave.
func View[T Element](dtype DType, data []T, shape ...int64) Tensor {
	var element T
	t := Tensor{
		data:   unsafe.Pointer(unsafe.SliceData(data)),
		length: int64(len(data)) * int64(unsafe.Sizeof(element)) / dtype.size(int64(unsafe.Sizeof(element))),
		dtype:  dtype,
	}
	t.setShape(shape)
	return t
}

// DeviceTensor views device memory at an address, contiguous in the order of shape. Nothing can check
// how much of it there is.
func DeviceTensor(dtype DType, address uintptr, shape ...int64) Tensor {
	t := Tensor{address: address, dtype: dtype}
	t.setShape(shape)
	return t
}

// WithStrides is the same view with one stride per axis, in elements, of any sign.
func (t Tensor) WithStrides(strides ...int64) Tensor {
	t.steps = len(strides)
	copy(t.strides[:], strides)
	return t
}

// WithOffset is the same view with its first element at that index of the slice: a head range, or the
// end of an axis whose stride is negative.
func (t Tensor) WithOffset(elements int64) Tensor {
	t.offset = elements
	return t
}

// WithScale adds the scales of an 8-bit tensor and their stride per axis (0 = the same scale along
// the axis).
func (t Tensor) WithScale(scale []float32, strides ...int64) Tensor {
	t.scale = unsafe.Pointer(unsafe.SliceData(scale))
	t.scaleLength = int64(len(scale))
	t.scaleStrides = [maxAxes]int64{}
	copy(t.scaleStrides[:], strides)
	return t
}

func (t *Tensor) setShape(shape []int64) {
	t.axes, t.steps = len(shape), len(shape)
	copy(t.shape[:], shape)
	stride := int64(1)
	for i := min(len(shape), maxAxes) - 1; i >= 0; i-- {
		t.strides[i] = stride
		stride *= t.shape[i]
	}
}

// size in bytes; a type that only the library knows counts as what the slice holds.
func (d DType) size(unknown int64) int64 {
	switch d {
	case F32:
		return 4
	case F16, BF16:
		return 2
	case E4M3, E5M2:
		return 1
	}
	return unknown
}

func (t *Tensor) given() bool { return t.dtype != 0 || t.axes != 0 || t.data != nil || t.address != 0 }

// check holds what the library cannot see: that every element lies inside the slice.
func (t *Tensor) check(name string) error {
	if t.steps != t.axes {
		return refuse(ErrInvalidArgument, "%s has %d strides: its shape has %d axes", name, t.steps, t.axes)
	}
	if t.axes > maxAxes {
		return refuse(ErrInvalidArgument, "%s has %d axes: a tensor has at most %d", name, t.axes, maxAxes)
	}
	if t.address == 0 {
		low, high, empty, ok := extent(t.shape[:t.axes], t.strides[:t.axes])
		if !empty && (!ok || t.offset < 0 || t.offset+low < 0 || t.offset >= t.length || high >= t.length-t.offset) {
			return refuse(ErrBufferTooSmall,
				"%s: shape %v with strides %v from element %d on leaves the slice, which holds %d elements",
				name, numbers(t.shape, t.axes), numbers(t.strides, t.axes), t.offset, t.length)
		}
	}
	if t.scale != nil {
		low, high, empty, ok := extent(t.shape[:t.axes], t.scaleStrides[:t.axes])
		if !empty && (!ok || low < 0 || high >= t.scaleLength) {
			return refuse(ErrBufferTooSmall, "%s: its scales, with strides %v, leave the slice, which holds %d",
				name, numbers(t.scaleStrides, t.axes), t.scaleLength)
		}
	}
	return nil
}

// extent gives the lowest and the highest element of a view, from its first; not ok: too far apart
// for 62 bits. Negative sizes count as empty: the library refuses them.
func extent(shape, strides []int64) (low, high int64, empty, ok bool) {
	const limit = 1 << 62
	for i, n := range shape {
		if n <= 0 {
			return 0, 0, true, true
		}
		stride := strides[i]
		magnitude := uint64(stride)
		if stride < 0 {
			magnitude = -magnitude
		}
		over, reach := bits.Mul64(uint64(n-1), magnitude)
		if over != 0 || reach >= limit {
			return 0, 0, false, false
		}
		if stride < 0 {
			low -= int64(reach)
		} else {
			high += int64(reach)
		}
		if low <= -limit || high >= limit {
			return 0, 0, false, false
		}
	}
	return low, high, false, true
}

// numbers are for an error's text. They are a copy: the text must not make every Tensor a heap object.
func numbers(all [maxAxes]int64, n int) []int64 { return all[:n] }
