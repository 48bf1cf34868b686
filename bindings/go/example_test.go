package rkv_test

import (
	"errors"
	"fmt"

	rkv "github.com/librkv/librkv/bindings/go"
)

// A request: the prompt of one layer, then decode steps instead of the engine's own attention.
func Example() {
	const qHeads, kvHeads, dim, tokens = 8, 2, 64, 1000
	cache, err := rkv.NewCache(rkv.Config{
		Layers: 1, QHeads: qHeads, KVHeads: kvHeads, HeadDim: dim, KVDType: rkv.F32,
		MaxPromptTokens: tokens, MaxNewTokens: 64, TokenBudget: 256,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()

	// The engine's own arrays, after RoPE.
	q, k, v := random(1, tokens*qHeads*dim), random(2, tokens*kvHeads*dim), random(3, tokens*kvHeads*dim)
	err = errors.Join(cache.OpenSequence(0, nil), cache.Prefill(&rkv.PrefillArgs{
		PromptTokens: tokens, Q: rkv.Float32s(q, tokens, qHeads, dim),
		K: rkv.Float32s(k, tokens, kvHeads, dim), V: rkv.Float32s(v, tokens, kvHeads, dim),
	}))
	if err != nil {
		fmt.Println(err)
		return
	}

	out := make([]float32, qHeads*dim)
	step := &rkv.DecodeArgs{
		Seq: []int32{0}, Positions: []int64{tokens}, Q: rkv.Float32s(q, 1, qHeads, dim),
		K: rkv.Float32s(k, 1, kvHeads, dim), V: rkv.Float32s(v, 1, kvHeads, dim), Out: rkv.Float32s(out, 1, qHeads, dim),
	}
	for ; step.Positions[0] < tokens+3; step.Positions[0]++ {
		if err := cache.Decode(step); err != nil {
			fmt.Println(err)
			return
		}
	}
	stats, err := cache.Stats(0, 0)
	fmt.Println(stats.Prompt, stats.Kept < stats.Prompt, stats.Generated, err)
	// Output: 1000 true 3 <nil>
}

// What a budget means for a prompt, without a cache.
func ExampleMakePlan() {
	plan, err := rkv.MakePlan(rkv.Config{HeadDim: 128, TokenBudget: 256, MaxNewTokens: 256}, nil, 130816)
	fmt.Println(plan.PromptBudget, plan.PageSize, plan.NumChannels, plan.TopK, err)
	// Output: 1040 3 76 128 <nil>
}

// Kinds of error by errors.Is, the library's text by errors.As.
func ExampleError() {
	_, err := rkv.MakePlan(rkv.Config{HeadDim: 128, TokenBudget: 256}, nil, -1)
	var e *rkv.Error
	fmt.Println(errors.Is(err, rkv.ErrInvalidArgument), errors.As(err, &e), e.Status)
	// Output: true true INVALID_ARGUMENT
}

// K head-major with room for more tokens, as many engines keep it; V bfloat16 bytes from a file.
func ExampleTensor_WithStrides() {
	const heads, capacity, dim, tokens = 2, 4096, 64, 1000
	store := make([]float32, heads*capacity*dim)
	k := rkv.Float32s(store, tokens, heads, dim).WithStrides(dim, capacity*dim, 1)
	file := make([]byte, tokens*heads*dim*2)
	v := rkv.View(rkv.BF16, file, tokens, heads, dim)
	_, _ = k, v
	// Output:
}

// The engine's own memory for the cache.
func ExampleNewCacheIn() {
	config := rkv.Config{
		Layers: 2, QHeads: 4, KVHeads: 2, HeadDim: 64, KVDType: rkv.BF16,
		MaxPromptTokens: 1000, MaxNewTokens: 64, TokenBudget: 128,
	}
	memory, err := rkv.CacheMemory(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	buffers, err := memory.NewBuffers()
	if err != nil {
		fmt.Println(err)
		return
	}
	cache, err := rkv.NewCacheIn(config, buffers)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cache.Close(), int64(len(buffers.Storage)) == memory.StorageBytes)
	// Output: <nil> true
}
