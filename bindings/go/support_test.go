package rkv_test

import (
	"errors"
	"math/rand"
	"testing"

	rkv "github.com/librkv/librkv/bindings/go"
)

// The cache of most tests: two layers, two sequences, small enough to be quick, big enough to evict.
const (
	layers, qHeads, kvHeads, dim = 2, 4, 2, 16
	prompt, newTokens, budget    = 200, 16, 64
)

func small() rkv.Config {
	return rkv.Config{
		Layers: layers, QHeads: qHeads, KVHeads: kvHeads, HeadDim: dim, KVDType: rkv.F32,
		MaxSequences: 2, MaxPromptTokens: prompt, MaxNewTokens: newTokens, TokenBudget: budget, NumThreads: 2,
	}
}

// random is the same for the same seed.
func random(seed int64, n int) []float32 {
	r := rand.New(rand.NewSource(seed))
	out := make([]float32, n)
	for i := range out {
		out[i] = 2*r.Float32() - 1
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks the kind of an error, that its text is whole, and gives it.
func refused(t testing.TB, err error, status rkv.Status) *rkv.Error {
	t.Helper()
	var e *rkv.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *rkv.Error of %v", err, status)
	}
	if !errors.Is(err, status) || e.Text == "" {
		t.Fatalf("got %v, want %v and a text", err, status)
	}
	return e
}

func newCache(t testing.TB, config rkv.Config) *rkv.Cache {
	t.Helper()
	cache, err := rkv.NewCache(config)
	must(t, err)
	t.Cleanup(func() { must(t, cache.Close()) })
	return cache
}

// promptOf makes the arguments of a whole prompt of tokens tokens.
func promptOf(seed int64, seq, layer int32, tokens int64) *rkv.PrefillArgs {
	n := int(tokens)
	return &rkv.PrefillArgs{
		Seq: seq, Layer: layer, PromptTokens: tokens,
		Q: rkv.Float32s(random(seed, n*qHeads*dim), tokens, qHeads, dim),
		K: rkv.Float32s(random(seed+1, n*kvHeads*dim), tokens, kvHeads, dim),
		V: rkv.Float32s(random(seed+2, n*kvHeads*dim), tokens, kvHeads, dim),
	}
}

// filled is a cache whose sequences are prefilled in every layer.
func filled(t testing.TB, config rkv.Config) *rkv.Cache {
	t.Helper()
	cache := newCache(t, config)
	for seq := int32(0); seq < 2; seq++ {
		must(t, cache.OpenSequence(seq, nil))
		for layer := int32(0); layer < layers; layer++ {
			must(t, cache.Prefill(promptOf(int64(10*seq+layer), seq, layer, prompt)))
		}
	}
	return cache
}

// step is a decode of one row per sequence, with its own arrays.
func step(seed int64, layer int32, position int64, seqs ...int32) *rkv.DecodeArgs {
	rows := len(seqs)
	n := int64(rows)
	positions := make([]int64, rows)
	for i := range positions {
		positions[i] = position
	}
	return &rkv.DecodeArgs{
		Layer: layer, Seq: seqs, Positions: positions,
		Q:   rkv.Float32s(random(seed, rows*qHeads*dim), n, qHeads, dim),
		K:   rkv.Float32s(random(seed+1, rows*kvHeads*dim), n, kvHeads, dim),
		V:   rkv.Float32s(random(seed+2, rows*kvHeads*dim), n, kvHeads, dim),
		Out: rkv.Float32s(make([]float32, rows*qHeads*dim), n, qHeads, dim),
	}
}
