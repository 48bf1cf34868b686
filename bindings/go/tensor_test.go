package rkv_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	rkv "github.com/librkv/librkv/bindings/go"
)

// bf16 is exact for the values below: multiples of 1/64 in [-2, 2).
func bf16(values []float32) []uint16 {
	out := make([]uint16, len(values))
	for i, v := range values {
		out[i] = uint16(math.Float32bits(v) >> 16)
	}
	return out
}

func bytesOf(values []uint16) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	return out
}

func coarse(seed int64, n int) []float32 {
	out := random(seed, n)
	for i := range out {
		out[i] = float32(math.Round(float64(out[i])*64)) / 64
	}
	return out
}

// decodeBits prefills one layer with these tensors, decodes one token and gives its lse as bits.
func decodeBits(t *testing.T, config rkv.Config, q, k, v rkv.Tensor) []uint32 {
	t.Helper()
	cache := newCache(t, config)
	must(t, cache.OpenSequence(0, nil))
	must(t, cache.Prefill(&rkv.PrefillArgs{PromptTokens: prompt, Q: q, K: k, V: v}))
	a := step(9, 0, prompt, 0)
	if config.KVDType != rkv.F32 {
		a.Q = rkv.BFloat16s(bf16(coarse(9, qHeads*dim)), 1, qHeads, dim)
		a.K = rkv.BFloat16s(bf16(coarse(10, kvHeads*dim)), 1, kvHeads, dim)
		a.V = rkv.BFloat16s(bf16(coarse(11, kvHeads*dim)), 1, kvHeads, dim)
		a.Out = rkv.BFloat16s(make([]uint16, qHeads*dim), 1, qHeads, dim)
	}
	a.LSE = make([]float32, qHeads)
	must(t, cache.Decode(a))
	bits := make([]uint32, len(a.LSE))
	for i, x := range a.LSE {
		bits[i] = math.Float32bits(x)
	}
	return bits
}

// The same numbers in every layout give the same bits.
func TestLayouts(t *testing.T) {
	q := coarse(1, prompt*qHeads*dim)
	k, v := coarse(2, prompt*kvHeads*dim), coarse(3, prompt*kvHeads*dim)
	shape := []int64{prompt, kvHeads, dim}
	tq := rkv.Float32s(q, prompt, qHeads, dim)
	want := decodeBits(t, small(), tq, rkv.Float32s(k, shape...), rkv.Float32s(v, shape...))

	headMajor, backwards, fused := make([]float32, len(k)), make([]float32, len(k)), make([]float32, 2*len(k)+5)
	for s := 0; s < prompt; s++ {
		for h := 0; h < kvHeads; h++ {
			for d := 0; d < dim; d++ {
				at := (s*kvHeads+h)*dim + d
				headMajor[(h*prompt+s)*dim+d] = k[at]
				backwards[((prompt-1-s)*kvHeads+h)*dim+d] = v[at]
				fused[5+((s*kvHeads+h)*2)*dim+d] = k[at]
				fused[5+((s*kvHeads+h)*2+1)*dim+d] = v[at]
			}
		}
	}
	got := decodeBits(t, small(), tq,
		rkv.Float32s(headMajor, shape...).WithStrides(dim, prompt*dim, 1),
		rkv.Float32s(backwards, shape...).WithStrides(-kvHeads*dim, dim, 1).WithOffset((prompt-1)*kvHeads*dim))
	if !slices.Equal(got, want) {
		t.Error("head-major K and backward V differ")
	}
	both := rkv.Float32s(fused, shape...).WithStrides(2*kvHeads*dim, 2*dim, 1)
	if got := decodeBits(t, small(), tq, both.WithOffset(5), both.WithOffset(5+dim)); !slices.Equal(got, want) {
		t.Error("K and V in one row differ")
	}
}

// The bits of bfloat16 in uint16, in named types and in bytes are the same tensor.
func TestBFloat16FromBytes(t *testing.T) {
	type brain uint16
	config := small()
	config.KVDType = rkv.BF16
	k, v := bf16(coarse(2, prompt*kvHeads*dim)), bf16(coarse(3, prompt*kvHeads*dim))
	tq := rkv.BFloat16s(bf16(coarse(1, prompt*qHeads*dim)), prompt, qHeads, dim)
	want := decodeBits(t, config, tq, rkv.BFloat16s(k, prompt, kvHeads, dim), rkv.BFloat16s(v, prompt, kvHeads, dim))
	named := make([]brain, len(k))
	for i := range k {
		named[i] = brain(k[i])
	}
	got := decodeBits(t, config, tq, rkv.View(rkv.BF16, named, prompt, kvHeads, dim),
		rkv.View(rkv.BF16, bytesOf(v), prompt, kvHeads, dim))
	if !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// An address instead of a slice: on the CPU that is memory of the process, here that of a slice that
// the test keeps alive and pinned by its own use after the call.
func TestAddresses(t *testing.T) {
	cache := filled(t, small())
	want := step(4, 0, prompt, 0)
	want.LSE = make([]float32, qHeads)
	must(t, cache.Decode(want))
	a := step(4, 0, prompt, 0)
	device := newAddresses(t, a)
	must(t, cache.Decode(&rkv.DecodeArgs{Q: a.Q, K: device.k, V: a.V, Out: a.Out, Device: &device.rows, Selection: device.selection}))
	if got := device.lse(); !slices.Equal(got, want.LSE) {
		t.Errorf("%v, want %v", got, want.LSE)
	}
	if device.count() == 0 {
		t.Error("nothing selected")
	}
}
