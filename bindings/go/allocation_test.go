package rkv_test

import (
	"runtime"
	"testing"

	rkv "github.com/librkv/librkv/bindings/go"
)

// A step in the steady state allocates nothing in Go: no copy of K or V, no garbage per token.
func TestStepsAllocateNothing(t *testing.T) {
	cache := filled(t, small())
	a := step(1, 0, prompt, 0, 1)
	a.LSE = make([]float32, 2*qHeads)
	a.RowStatus = make([]rkv.Status, 2)
	a.Selection = cache.NewSelection(2)
	for name, run := range map[string]func() error{
		"Decode": func() error { return cache.Decode(a) },
		"DecodeSelect and Attend": func() error {
			if err := cache.DecodeSelect(a); err != nil {
				return err
			}
			return cache.Attend(a)
		},
		"Stats":       func() error { _, err := cache.Stats(0, 0); return err },
		"DeviceCount": func() error { _, err := rkv.DeviceCount(rkv.CPU); return err },
	} {
		var err error
		if n := testing.AllocsPerRun(500, func() { err = run() }); n != 0 || err != nil {
			t.Errorf("%s: %v allocations a call, %v", name, n, err)
		}
	}
}

// Arguments made anew at every step cost nothing either: they stay on the stack.
func TestArgumentsStayOnTheStack(t *testing.T) {
	cache := filled(t, small())
	q, k, out := random(1, qHeads*dim), random(2, kvHeads*dim), make([]float32, qHeads*dim)
	seq, positions := []int32{1}, []int64{prompt}
	n := testing.AllocsPerRun(500, func() {
		must(t, cache.Decode(&rkv.DecodeArgs{
			Seq: seq, Positions: positions, Q: rkv.Float32s(q, 1, qHeads, dim),
			K: rkv.Float32s(k, 1, kvHeads, dim), V: rkv.Float32s(k, 1, kvHeads, dim),
			Out: rkv.Float32s(out, 1, qHeads, dim),
		}))
	})
	if n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// Stage 1 over 8 MB of K and V: Go allocates not even a thousandth of that.
func TestPrefillCopiesNothing(t *testing.T) {
	const tokens = 32768
	config := small()
	config.MaxPromptTokens = tokens
	cache := newCache(t, config)
	must(t, cache.OpenSequence(0, nil))
	args := promptOf(1, 0, 0, tokens)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, cache.Prefill(args))
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 8<<10 {
		t.Errorf("Prefill allocated %d bytes", bytes)
	}
}
