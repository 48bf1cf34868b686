package rkv_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	rkv "github.com/librkv/librkv/bindings/go"
)

func TestVersion(t *testing.T) {
	if v := rkv.Version(); strings.Count(v, ".") != 2 {
		t.Errorf("version %q", v)
	}
	if rkv.ABIVersion() < 1 {
		t.Errorf("ABI version %d", rkv.ABIVersion())
	}
	cpus, err := rkv.DeviceCount(rkv.CPU)
	if err != nil || cpus != 1 {
		t.Errorf("%d CPUs, %v", cpus, err)
	}
	if _, err := rkv.DeviceCount(77); !errors.Is(err, rkv.ErrInvalidArgument) {
		t.Errorf("a device of kind 77: %v", err)
	}
}

func TestErrorsSayKindAndText(t *testing.T) {
	config := small()
	config.KVHeads = 3
	_, err := rkv.MakePlan(config, nil, 100)
	e := refused(t, err, rkv.ErrInvalidArgument)
	if !strings.Contains(e.Text, "q_heads") || !strings.Contains(err.Error(), e.Text) ||
		!strings.Contains(err.Error(), "INVALID_ARGUMENT") {
		t.Errorf("%q, text %q", err, e.Text)
	}
	if errors.Is(err, rkv.ErrBadState) {
		t.Error("an INVALID_ARGUMENT is no BAD_STATE")
	}
	if got := rkv.Status(4711).Error(); got != "UNKNOWN" {
		t.Errorf("an unknown status is %q", got)
	}
}

func TestOptionsChangeThePlan(t *testing.T) {
	a, err := rkv.MakePlan(small(), nil, prompt)
	must(t, err)
	b, err := rkv.MakePlan(small(), &rkv.Options{TokenBudget: 32, MaxNewTokens: 8}, prompt)
	must(t, err)
	if a.TokenBudget != budget || b.TokenBudget != 32 || a.PromptBudget <= b.PromptBudget || a.TopK == 0 {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestDenseLayersAreAList(t *testing.T) {
	config := small()
	config.DenseLayers = []int32{1}
	cache := filled(t, config)
	for layer, want := range []bool{false, true} {
		stats, err := cache.Stats(0, int32(layer))
		must(t, err)
		if whole := stats.Kept == prompt; whole != want {
			t.Errorf("layer %d keeps %d of %d", layer, stats.Kept, prompt)
		}
	}
	config.DenseLayers = []int32{256}
	_, err := rkv.NewCache(config)
	refused(t, err, rkv.ErrInvalidArgument)
}

func TestLifeOfASequence(t *testing.T) {
	cache := filled(t, small())
	stats, err := cache.Stats(1, 1)
	must(t, err)
	plan, err := rkv.MakePlan(small(), nil, prompt)
	must(t, err)
	if stats.Plan != plan || stats.Prompt != prompt || stats.Kept != plan.PromptBudget || stats.Turn != 1 {
		t.Errorf("stats %+v\nplan %+v", stats, plan)
	}
	for i := int64(0); i < 3; i++ {
		must(t, cache.Decode(step(100+i, 0, prompt+i, 0, 1)))
	}
	heads, err := cache.KeptPositions(1, 0)
	must(t, err)
	if len(heads) != kvHeads {
		t.Fatalf("%d heads", len(heads))
	}
	for _, kept := range heads {
		if int64(len(kept)) != plan.PromptBudget+3 || !slices.IsSorted(kept) || kept[len(kept)-1] != prompt+2 {
			t.Errorf("kept %v", kept)
		}
	}
	must(t, cache.Rewind(1, prompt+1))
	stats, err = cache.Stats(1, 0)
	must(t, err)
	if stats.Position != prompt+1 || stats.Generated != 1 {
		t.Errorf("after rewind: %+v", stats)
	}
	must(t, cache.CloseSequence(1))
	_, err = cache.Stats(1, 0)
	refused(t, err, rkv.ErrBadState)
	must(t, cache.OpenSequence(1, &rkv.Options{MaxNewTokens: 4, TokenBudget: 32}))
}

// Decode is DecodeSelect and Attend in one, to the bit, and Audit of the same selection says so.
func TestDecodeIsSelectAndAttend(t *testing.T) {
	fused, apart := filled(t, small()), filled(t, small())
	a, b := step(7, 1, prompt, 0, 1), step(7, 1, prompt, 0, 1)
	outA, outB := make([]float32, 2*qHeads*dim), make([]float32, 2*qHeads*dim)
	a.Out, b.Out = rkv.Float32s(outA, 2, qHeads, dim), rkv.Float32s(outB, 2, qHeads, dim)
	a.LSE, b.LSE = make([]float32, 2*qHeads), make([]float32, 2*qHeads)
	a.Selection, b.Selection = fused.NewSelection(2), apart.NewSelection(2)
	must(t, fused.Decode(a))
	must(t, apart.DecodeSelect(b))
	must(t, apart.Attend(b))
	if !slices.Equal(outA, outB) || !slices.Equal(a.LSE, b.LSE) ||
		!slices.Equal(a.Selection.Indices, b.Selection.Indices) || slices.Max(outA) == 0 {
		t.Error("decode differs from select and attend")
	}
	for head := 0; head < kvHeads; head++ {
		if list := a.Selection.List(1, head, kvHeads); len(list) == 0 || !slices.IsSorted(list) {
			t.Errorf("head %d selects %v", head, list)
		}
	}
	audit, err := apart.Audit(b)
	must(t, err)
	if audit.Rows != 2 || audit.MassMean <= 0 || audit.MassMean > 1 || !math.IsNaN(audit.PromptMassMean) {
		t.Errorf("%+v", audit)
	}
	if list := a.Selection.List(2, 0, kvHeads); list != nil {
		t.Errorf("row 2 of 2 selects %v", list)
	}
}

// Chunks of a prompt and the engine's own buffers give the bits of one call in the library's memory.
func TestOwnBuffersAndChunks(t *testing.T) {
	memory, err := rkv.CacheMemory(small())
	must(t, err)
	buffers, err := memory.NewBuffers()
	must(t, err)
	own, err := rkv.NewCacheIn(small(), buffers)
	must(t, err)
	defer own.Close()
	must(t, own.OpenSequence(0, nil))
	for layer := int32(0); layer < layers; layer++ {
		whole := promptOf(int64(layer), 0, layer, prompt)
		q := random(int64(layer), prompt*qHeads*dim)
		for start := int64(0); start < prompt; start += 90 {
			end := min(start+90, prompt)
			whole.Start = start
			whole.Q = rkv.Float32s(q[start*qHeads*dim:], end-start, qHeads, dim)
			must(t, own.Prefill(whole))
		}
	}
	theirs := filled(t, small())
	a, b := step(5, 1, prompt, 0), step(5, 1, prompt, 0)
	a.LSE, b.LSE = make([]float32, qHeads), make([]float32, qHeads)
	must(t, own.Decode(a))
	must(t, theirs.Decode(b))
	if !slices.Equal(a.LSE, b.LSE) || a.LSE[0] == 0 {
		t.Errorf("%v and %v", a.LSE, b.LSE)
	}
	_, err = rkv.NewCacheIn(small(), rkv.Buffers{Storage: buffers.Storage[:64], Workspace: buffers.Workspace})
	refused(t, err, rkv.ErrBufferTooSmall)
}

// What this version does not serve is the library's UNSUPPORTED, not the binding's.
func TestUnsupportedComesFromTheLibrary(t *testing.T) {
	cache := filled(t, small())
	must(t, cache.CloseSequence(1))
	heads := &rkv.TransferArgs{HeadEnd: kvHeads}
	_, sizeErr := cache.ExportSize(heads)
	_, exportErr := cache.Export(heads, make([]byte, 64))
	_, emptyErr := cache.Export(heads, nil)
	paged := step(1, 0, prompt, 0)
	paged.Paging = &rkv.Paging{BlockTokens: 16, MaxBlocks: 2, RowStride: 2, BlockTable: []int32{0, 1}}
	blocks := step(1, 0, prompt, 0)
	blocks.Paging = &rkv.Paging{BlockTokens: 16, MaxBlocks: 1, KBlocks: []uintptr{64}, VBlocks: []uintptr{64}}
	scaled := step(1, 0, prompt, 0)
	scaled.K = scaled.K.WithScale([]float32{1}, 0, 0, 0)
	indexed, fp8, cuda := small(), small(), small()
	indexed.Storage, fp8.SummaryDType, cuda.DeviceType = rkv.StorageIndexed, rkv.E4M3, rkv.CUDA
	_, indexedErr := rkv.NewCache(indexed)
	_, fp8Err := rkv.NewCache(fp8)
	_, cudaErr := rkv.NewCache(cuda)
	for name, err := range map[string]error{
		"fork": cache.Fork(0, 1), "export size": sizeErr, "export": exportErr, "export into nothing": emptyErr,
		"import": cache.Import(heads, make([]byte, 16)), "paged": cache.Decode(paged), "blocks": cache.Decode(blocks),
		"scales": cache.Decode(scaled), "indexed": indexedErr, "fp8 summaries": fp8Err, "cuda": cudaErr,
	} {
		if !errors.Is(err, rkv.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
