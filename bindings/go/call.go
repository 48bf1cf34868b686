package rkv

// #include "call.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// call is what one call of a cache needs: its arguments and its error in C memory, which live as long
// as the cache, and the engine's arrays, which are pinned from the first put to reset.
//
// Go pointers are in C memory only while their arrays are pinned: reset takes them out first.
type call struct {
	c      *C.rkvgo_call
	pins   [4]runtime.Pinner // a Pinner has room for 5 pointers before it allocates
	pinned int
}

func newCall() *call {
	c := (*C.rkvgo_call)(C.calloc(1, C.sizeof_rkvgo_call))
	if c == nil {
		return nil
	}
	c.err.struct_size = C.sizeof_rkv_error
	for _, t := range []*C.rkv_tensor{&c.q, &c.k, &c.v, &c.out} {
		t.struct_size = C.sizeof_rkv_tensor
	}
	c.selection.struct_size = C.sizeof_rkv_selection
	c.paging.struct_size = C.sizeof_rkv_paging
	c.prefill.struct_size = C.sizeof_rkv_prefill_args
	c.decode.struct_size = C.sizeof_rkv_decode_args
	c.transfer.struct_size = C.sizeof_rkv_transfer_args
	c.audit.struct_size = C.sizeof_rkv_audit_result
	return &call{c: c}
}

func (k *call) free() {
	C.free(unsafe.Pointer(k.c.seq))
	C.free(unsafe.Pointer(k.c.positions))
	C.free(unsafe.Pointer(k.c))
}

// putRows copies the rows' ids and positions: they are arguments more than data, and two short slices
// often lie in one block of Go's, which is slow to pin twice.
func (k *call) putRows(seq []int32, positions []int64) error {
	c := k.c
	if rows := C.int64_t(len(seq)); rows > c.rows {
		C.free(unsafe.Pointer(c.seq))
		C.free(unsafe.Pointer(c.positions))
		c.seq = (*C.int32_t)(C.calloc(C.size_t(rows), C.sizeof_int32_t))
		c.positions = (*C.int64_t)(C.calloc(C.size_t(rows), C.sizeof_int64_t))
		if c.rows = rows; c.seq == nil || c.positions == nil {
			c.rows = 0
			return refuse(ErrOutOfMemory, "no memory for %d rows", len(seq))
		}
	}
	c.decode.seq, c.decode.positions = nil, nil
	if len(seq) > 0 {
		copy(unsafe.Slice((*int32)(c.seq), len(seq)), seq)
		c.decode.seq = c.seq
	}
	if len(positions) > 0 {
		copy(unsafe.Slice((*int64)(c.positions), len(positions)), positions)
		c.decode.positions = c.positions
	}
	return nil
}

// done turns the status of a call into its error.
func (k *call) done(status C.rkv_status) error {
	if status == C.RKV_OK {
		return nil
	}
	return newError(status, &k.c.err)
}

// pin keeps a slice's memory where it is, so that its address may stand in C memory.
func (k *call) pin(first unsafe.Pointer) {
	if first != nil {
		k.pins[k.pinned/5].Pin(first)
		k.pinned++
	}
}

// reset takes every address out of the C memory, so that the next call's stores find none, and unpins.
func (k *call) reset() {
	c := k.c
	for _, t := range [...]*C.rkv_tensor{&c.q, &c.k, &c.v, &c.out} {
		store(&t.data, 0)
		store(&t.scale, 0)
	}
	store(&c.selection.indices, 0)
	store(&c.selection.counts, 0)
	store(&c.paging.block_table, 0)
	store(&c.paging.k_blocks, 0)
	store(&c.paging.v_blocks, 0)
	store(&c.decode.seq, 0)
	store(&c.decode.positions, 0)
	store(&c.decode.lse, 0)
	store(&c.decode.row_status, 0)
	for i := 0; 5*i < k.pinned; i++ {
		k.pins[i].Unpin()
	}
	k.pinned = 0
}

// store writes a number where C has a pointer: the garbage collector does not look at it.
func store[P any](to *P, address uintptr) { *(*uintptr)(unsafe.Pointer(to)) = address }

// put writes a tensor and gives its address for the arguments, nil where it is not given.
func (k *call) put(to *C.rkv_tensor, t *Tensor, name string) (*C.rkv_tensor, error) {
	if !t.given() {
		return nil, nil
	}
	if err := t.check(name); err != nil {
		return nil, err
	}
	to.dtype = C.int32_t(t.dtype)
	to.ndim = C.int32_t(t.axes)
	for i := 0; i < t.axes; i++ {
		to.shape[i], to.strides[i] = C.int64_t(t.shape[i]), C.int64_t(t.strides[i])
	}
	if t.scale != nil {
		k.pin(t.scale)
		to.scale = (*C.float)(t.scale)
		for i := 0; i < t.axes; i++ {
			to.scale_strides[i] = C.int64_t(t.scaleStrides[i])
		}
	}
	if t.data == nil {
		store(&to.data, t.address+uintptr(t.offset*t.dtype.size(1)))
		return to, nil
	}
	k.pin(t.data)
	to.data = t.data
	if t.offset > 0 && t.offset < t.length { // check says so where there is anything to read
		to.data = unsafe.Add(t.data, t.offset*t.dtype.size(1))
	}
	return to, nil
}

// putSlice pins a slice and writes its address; an empty one is NULL.
func putSlice[C, G any](k *call, to **C, from []G) {
	*to = nil
	if len(from) > 0 {
		first := unsafe.Pointer(unsafe.SliceData(from))
		k.pin(first)
		*to = (*C)(first)
	}
}
