// Command rkv-bench measures what a call costs from Go: nothing but the crossing (trivial), a decode
// of one row over eight tokens, and a token of 32 layers. Medians, buffers used again.
package main

import (
	"fmt"
	"os"
	"sort"
	"time"

	rkv "github.com/librkv/librkv/bindings/go"
)

const (
	layers, tokens, dim = 32, 8, 8
	rounds, calls       = 31, 2000
)

func main() {
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run() error {
	cache, err := rkv.NewCache(rkv.Config{
		Layers: layers, QHeads: 1, KVHeads: 1, HeadDim: dim, KVDType: rkv.F32, NumThreads: 1,
		MaxPromptTokens: tokens, MaxNewTokens: 8, TokenBudget: 64,
	})
	if err != nil {
		return err
	}
	defer cache.Close()
	if err := cache.OpenSequence(0, nil); err != nil {
		return err
	}
	rows := func(n int64) rkv.Tensor {
		data := make([]float32, n*dim)
		for i := range data {
			data[i] = float32(i%7) / 8
		}
		return rkv.Float32s(data, n, 1, dim)
	}
	step := &rkv.DecodeArgs{
		Seq: []int32{0}, Positions: []int64{tokens}, Q: rows(1), K: rows(1), V: rows(1), Out: rows(1),
	}
	for layer := int32(0); layer < layers; layer++ {
		prompt := &rkv.PrefillArgs{Layer: layer, PromptTokens: tokens, Q: rows(tokens), K: rows(tokens), V: rows(tokens)}
		if err := cache.Prefill(prompt); err != nil {
			return err
		}
	}
	trivial, err := median(calls, func() error { _, err := rkv.DeviceCount(rkv.CPU); return err })
	if err != nil {
		return err
	}
	decode, err := median(calls, func() error { return cache.Decode(step) })
	if err != nil {
		return err
	}
	token, err := median(calls/layers, func() error {
		for step.Layer = 0; step.Layer < layers; step.Layer++ {
			if err := cache.Decode(step); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("calls go: trivial %d ns, decode %d ns, token %d ns\n", trivial, decode, token)
	return nil
}

// median is that of the rounds' means, nanoseconds; the first round warms up.
func median(n int, call func() error) (int64, error) {
	times := make([]int64, rounds+1)
	for round := range times {
		start := time.Now()
		for i := 0; i < n; i++ {
			if err := call(); err != nil {
				return 0, err
			}
		}
		times[round] = time.Since(start).Nanoseconds() / int64(n)
	}
	times = times[1:]
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return times[rounds/2], nil
}
