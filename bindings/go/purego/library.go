// Package purego loads librkv.so at run time, without cgo and without a C compiler: the few calls that
// show how, for engines that are built with CGO_ENABLED=0. The whole binding is the module above.
package purego

import (
	"bytes"
	"errors"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a loaded librkv.so.
type Library struct {
	ABIVersion    func() int32
	VersionString func() string

	planMake     func(config *Config, options unsafe.Pointer, promptTokens int64, plan *Plan, err *Error) int32
	cacheCreate  func(config *Config, buffers unsafe.Pointer, cache *uintptr, err *Error) int32
	cacheDestroy func(cache uintptr)
	sequenceOpen func(cache uintptr, seq int32, options unsafe.Pointer, err *Error) int32
	prefill      func(cache uintptr, args *PrefillArgs, stream uintptr, err *Error) int32
	decode       func(cache uintptr, args *DecodeArgs, stream uintptr, err *Error) int32
}

// Open loads the library of that path, or of that name from where the system looks: "librkv.so.0".
func Open(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &Library{}
	for name, function := range map[string]any{
		"rkv_abi_version": &l.ABIVersion, "rkv_version_string": &l.VersionString, "rkv_plan_make": &l.planMake,
		"rkv_cache_create": &l.cacheCreate, "rkv_cache_destroy": &l.cacheDestroy,
		"rkv_sequence_open": &l.sequenceOpen, "rkv_prefill": &l.prefill, "rkv_decode": &l.decode,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(function, symbol)
	}
	return l, nil
}

// call runs one C call with an error of its own and turns a refusal into the library's text.
func call(run func(err *Error) int32) error {
	e := &Error{StructSize: uint32(unsafe.Sizeof(Error{}))}
	if run(e) == 0 {
		return nil
	}
	text, _, _ := bytes.Cut(e.Text[:], []byte{0})
	return errors.New("rkv: " + string(text))
}

// Plan says all sizes for a prompt.
func (l *Library) Plan(config Config, promptTokens int64) (Plan, error) {
	config.StructSize = uint32(unsafe.Sizeof(config))
	plan := Plan{StructSize: uint32(unsafe.Sizeof(Plan{}))}
	err := call(func(e *Error) int32 { return l.planMake(&config, nil, promptTokens, &plan, e) })
	return plan, err
}

// Cache is a cache of the library's; Close it. One goroutine at a time.
type Cache struct {
	library *Library
	handle  uintptr
}

// NewCache makes a cache in memory of the library's own.
func (l *Library) NewCache(config Config) (*Cache, error) {
	config.StructSize = uint32(unsafe.Sizeof(config))
	c := &Cache{library: l}
	err := call(func(e *Error) int32 { return l.cacheCreate(&config, nil, &c.handle, e) })
	return c, err
}

// Close frees the cache; again is fine. The library refuses what comes after.
func (c *Cache) Close() error {
	c.library.cacheDestroy(c.handle)
	c.handle = 0
	return nil
}

// Open takes a slot for a sequence.
func (c *Cache) Open(seq int32) error {
	return call(func(e *Error) int32 { return c.library.sequenceOpen(c.handle, seq, nil, e) })
}

// Prefill is stage 1 of one layer of a prompt that comes whole: q [S, qHeads, dim], k and v
// [S, kvHeads, dim], F32, contiguous.
func (c *Cache) Prefill(seq, layer int32, tokens int64, q, k, v []float32, qHeads, kvHeads, dim int64) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	args := &PrefillArgs{
		StructSize: uint32(unsafe.Sizeof(PrefillArgs{})), Seq: seq, Layer: layer, PromptTokens: tokens,
		Q: rows(&pin, q, tokens, qHeads, dim), K: rows(&pin, k, tokens, kvHeads, dim),
		V: rows(&pin, v, tokens, kvHeads, dim),
	}
	return call(func(e *Error) int32 { return c.library.prefill(c.handle, args, 0, e) })
}

// Decode is one step of one row: q and out [1, qHeads, dim], k and v [1, kvHeads, dim], lse [qHeads].
func (c *Cache) Decode(seq, layer int32, position int64, q, k, v, out, lse []float32, qHeads, kvHeads, dim int64) error {
	if int64(len(lse)) < qHeads {
		return errors.New("rkv: lse is shorter than the query heads")
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	ids, positions := []int32{seq}, []int64{position}
	pin.Pin(&ids[0])
	pin.Pin(&positions[0])
	pin.Pin(&lse[0])
	args := &DecodeArgs{
		StructSize: uint32(unsafe.Sizeof(DecodeArgs{})), Layer: layer, Rows: 1, Seq: &ids[0], Positions: &positions[0],
		Q: rows(&pin, q, 1, qHeads, dim), K: rows(&pin, k, 1, kvHeads, dim), V: rows(&pin, v, 1, kvHeads, dim),
		Out: rows(&pin, out, 1, qHeads, dim), LSE: &lse[0],
	}
	return call(func(e *Error) int32 { return c.library.decode(c.handle, args, 0, e) })
}

// rows views a slice as [n, heads, dim]; one that is too short is given to the library as absent.
func rows(pin *runtime.Pinner, data []float32, n, heads, dim int64) *Tensor {
	if n < 1 || int64(len(data)) < n*heads*dim {
		return nil
	}
	t := &Tensor{
		StructSize: uint32(unsafe.Sizeof(Tensor{})), DType: 1, Data: unsafe.Pointer(&data[0]), NDim: 3,
		Shape: [6]int64{n, heads, dim}, Strides: [6]int64{heads * dim, dim, 1},
	}
	pin.Pin(&data[0])
	pin.Pin(t)
	return t
}
