// Command bits prints what this binding gives for one prefill and decode, as hexadecimal floats, and
// the layout of the header's structs: what the module without cgo is held against.
package main

import (
	"fmt"
	"math"
	"os"
	"strings"

	rkv "github.com/librkv/librkv/bindings/go"
	"github.com/librkv/librkv/bindings/go/internal/abi"
)

const qHeads, kvHeads, dim, prompt = 4, 2, 16, 200

func values(n, seed int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32((i*7919+seed*104729)%251-125) / 64
	}
	return out
}

func rows(seed int, n, heads int64) rkv.Tensor {
	return rkv.Float32s(values(int(n*heads*dim), seed), n, heads, dim)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	cache, err := rkv.NewCache(rkv.Config{
		Layers: 1, QHeads: qHeads, KVHeads: kvHeads, HeadDim: dim, KVDType: rkv.F32, NumThreads: 1,
		MaxPromptTokens: prompt, MaxNewTokens: 16, TokenBudget: 64,
	})
	if err != nil {
		return err
	}
	defer cache.Close()
	if err := cache.OpenSequence(0, nil); err != nil {
		return err
	}
	err = cache.Prefill(&rkv.PrefillArgs{
		PromptTokens: prompt, Q: rows(1, prompt, qHeads), K: rows(2, prompt, kvHeads), V: rows(3, prompt, kvHeads),
	})
	if err != nil {
		return err
	}
	out, lse := make([]float32, qHeads*dim), make([]float32, qHeads)
	err = cache.Decode(&rkv.DecodeArgs{
		Seq: []int32{0}, Positions: []int64{prompt}, Q: rows(4, 1, qHeads), K: rows(5, 1, kvHeads),
		V: rows(6, 1, kvHeads), Out: rkv.Float32s(out, 1, qHeads, dim), LSE: lse,
	})
	if err != nil {
		return err
	}
	fmt.Print("bits ")
	for _, x := range append(out, lse...) {
		fmt.Printf("%08x", math.Float32bits(x))
	}
	fmt.Println()
	for name, of := range abi.Structs() {
		fmt.Println(name, of.Size())
		for i := 0; i < of.NumField(); i++ {
			field := of.Field(i)
			fmt.Printf("%s.%s %d\n", name, strings.ReplaceAll(field.Name, "_", ""), field.Offset)
		}
	}
	return nil
}
