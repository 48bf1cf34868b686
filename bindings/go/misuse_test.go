package rkv_test

import (
	"errors"
	"math"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rkv "github.com/librkv/librkv/bindings/go"
)

func TestCloseTwice(t *testing.T) {
	cache, err := rkv.NewCache(small())
	must(t, err)
	must(t, cache.OpenSequence(0, nil)) // the sequence goes with its cache
	must(t, cache.Close())
	must(t, cache.Close())
	var none *rkv.Cache
	must(t, none.Close())
	must(t, new(rkv.Cache).Close())
}

// A copy shares the handle and nothing that guards it.
func TestACopyIsRefused(t *testing.T) {
	cache := newCache(t, small())
	same := reflect.ValueOf(cache).Elem()
	copied := reflect.New(same.Type())
	copied.Elem().Set(same) // go vet would not let an assignment pass
	other := copied.Interface().(*rkv.Cache)
	for name, err := range every(other) {
		if !errors.Is(err, rkv.ErrInvalidArgument) || !strings.Contains(err.Error(), "copy") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := other.Close(); !errors.Is(err, rkv.ErrInvalidArgument) {
		t.Error(err)
	}
	must(t, cache.OpenSequence(0, nil))
	must(t, cache.Close())
	if err := other.Close(); !errors.Is(err, rkv.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestSelectionsOfAbsurdSize(t *testing.T) {
	cache := newCache(t, small())
	for _, rows := range []int{-1, math.MaxInt, 1 << 40} {
		if selection := cache.NewSelection(rows); len(selection.Indices) != 0 {
			t.Errorf("%d rows: %d indices", rows, len(selection.Indices))
		}
	}
}

// every calls each method once and gives what it refused.
func every(cache *rkv.Cache) map[string]error {
	_, audit := cache.Audit(step(1, 0, prompt, 0))
	_, stats := cache.Stats(0, 0)
	_, kept := cache.KeptPositions(0, 0)
	_, size := cache.ExportSize(&rkv.TransferArgs{})
	_, export := cache.Export(&rkv.TransferArgs{}, nil)
	return map[string]error{
		"open": cache.OpenSequence(0, nil), "close": cache.CloseSequence(0), "rewind": cache.Rewind(0, prompt),
		"fork": cache.Fork(0, 1), "size": size, "export": export, "import": cache.Import(&rkv.TransferArgs{}, nil),
		"prefill": cache.Prefill(promptOf(1, 0, 0, prompt)), "select": cache.DecodeSelect(step(1, 0, prompt, 0)),
		"attend": cache.Attend(step(1, 0, prompt, 0)), "decode": cache.Decode(step(1, 0, prompt, 0)),
		"audit": audit, "stats": stats, "kept": kept,
	}
}

func TestUseAfterClose(t *testing.T) {
	cache := filled(t, small())
	must(t, cache.Close())
	for name, err := range every(cache) {
		if !errors.Is(err, rkv.ErrBadState) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s of a closed cache: %v", name, err)
		}
	}
	cache.SetStream(1)
	if cache.Config().Layers != layers {
		t.Error("a closed cache forgot its config")
	}
}

func TestNilAndZeroCache(t *testing.T) {
	var none *rkv.Cache
	for name, err := range every(none) {
		refused(t, err, rkv.ErrInvalidArgument)
		if !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s of nil: %v", name, err)
		}
	}
	for _, err := range every(new(rkv.Cache)) {
		refused(t, err, rkv.ErrBadState)
	}
	none.SetStream(1)
	if none.Memory().StorageBytes != 0 || none.Config().Layers != 0 || none.NewSelection(3).Capacity != 0 {
		t.Error("a nil cache has sizes")
	}
}

func TestNilArguments(t *testing.T) {
	cache := filled(t, small())
	_, audit := cache.Audit(nil)
	for name, err := range map[string]error{
		"prefill": cache.Prefill(nil), "decode": cache.Decode(nil), "select": cache.DecodeSelect(nil),
		"attend": cache.Attend(nil), "audit": audit,
	} {
		e := refused(t, err, rkv.ErrInvalidArgument)
		if !strings.Contains(e.Text, "args") {
			t.Errorf("%s(nil): %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*rkv.DecodeArgs){
		"q":         func(a *rkv.DecodeArgs) { a.Q = rkv.Tensor{} },
		"k":         func(a *rkv.DecodeArgs) { a.K = rkv.Tensor{} },
		"out":       func(a *rkv.DecodeArgs) { a.Out = rkv.Tensor{} },
		"positions": func(a *rkv.DecodeArgs) { a.Positions = nil },
	} {
		a := step(1, 0, prompt, 0)
		spoil(a)
		if e := refused(t, cache.Decode(a), rkv.ErrInvalidArgument); !strings.Contains(e.Text, name) {
			t.Errorf("without %s: %v", name, e)
		}
	}
}

// Whatever is wrong with an argument is an error that names it, and the cache is as before.
func TestWrongArguments(t *testing.T) {
	cache := filled(t, small())
	short := func(n int64) rkv.Tensor { return rkv.Float32s(make([]float32, n), 1, kvHeads, dim) }
	for name, one := range map[string]struct {
		status rkv.Status
		word   string
		spoil  func(*rkv.DecodeArgs)
	}{
		"dtype":          {rkv.ErrInvalidArgument, "q", func(a *rkv.DecodeArgs) { a.Q = rkv.Float16s(make([]uint16, 64), 1, qHeads, dim) }},
		"dtype unknown":  {rkv.ErrInvalidArgument, "q", func(a *rkv.DecodeArgs) { a.Q = rkv.View(99, make([]byte, 64), 1, qHeads, dim) }},
		"dtype 0":        {rkv.ErrInvalidArgument, "q", func(a *rkv.DecodeArgs) { a.Q = rkv.View(0, make([]float32, 64), 1, qHeads, dim) }},
		"misaligned":     {rkv.ErrInvalidArgument, "k", func(a *rkv.DecodeArgs) { a.K = rkv.View(rkv.F32, make([]byte, 132)[1:], 1, kvHeads, dim) }},
		"nil data":       {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = rkv.Float32s(nil, 1, kvHeads, dim) }},
		"short k":        {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(31) }},
		"short v":        {rkv.ErrBufferTooSmall, "v", func(a *rkv.DecodeArgs) { a.V = short(0) }},
		"short out":      {rkv.ErrBufferTooSmall, "out", func(a *rkv.DecodeArgs) { a.Out = rkv.Float32s(make([]float32, 63), 1, qHeads, dim) }},
		"short lse":      {rkv.ErrBufferTooSmall, "lse", func(a *rkv.DecodeArgs) { a.LSE = make([]float32, 3) }},
		"positions":      {rkv.ErrInvalidArgument, "positions", func(a *rkv.DecodeArgs) { a.Positions = []int64{prompt, prompt} }},
		"shape":          {rkv.ErrInvalidArgument, "k", func(a *rkv.DecodeArgs) { a.K = rkv.Float32s(make([]float32, 64), 2, kvHeads, dim) }},
		"axes":           {rkv.ErrInvalidArgument, "k", func(a *rkv.DecodeArgs) { a.K = rkv.Float32s(make([]float32, 64), 64) }},
		"seven axes":     {rkv.ErrInvalidArgument, "k", func(a *rkv.DecodeArgs) { a.K = rkv.Float32s(make([]float32, 64), 1, 1, 1, 1, 1, 1, 64) }},
		"strides":        {rkv.ErrInvalidArgument, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithStrides(1, 1) }},
		"stride leaves":  {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithStrides(32, 17, 1) }},
		"stride before":  {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithStrides(32, 16, -1) }},
		"offset":         {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithOffset(1) }},
		"offset below":   {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithOffset(-1) }},
		"offset huge":    {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithOffset(math.MaxInt64) }},
		"absurd stride":  {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = short(32).WithStrides(1, math.MinInt64, 1) }},
		"absurd shape":   {rkv.ErrBufferTooSmall, "k", func(a *rkv.DecodeArgs) { a.K = rkv.Float32s(make([]float32, 8), 1<<40, 1<<40, dim) }},
		"negative shape": {rkv.ErrInvalidArgument, "k", func(a *rkv.DecodeArgs) { a.K = rkv.Float32s(make([]float32, 8), -1, kvHeads, dim) }},
		"layer":          {rkv.ErrInvalidArgument, "layer", func(a *rkv.DecodeArgs) { a.Layer = layers }},
		"layer below":    {rkv.ErrInvalidArgument, "layer", func(a *rkv.DecodeArgs) { a.Layer = math.MinInt32 }},
		"slot":           {rkv.ErrBadState, "", func(a *rkv.DecodeArgs) { a.Seq = []int32{math.MaxInt32} }},
		"gap":            {rkv.ErrBadState, "", func(a *rkv.DecodeArgs) { a.Positions[0] = prompt + 3 }},
		"before":         {rkv.ErrInvalidArgument, "", func(a *rkv.DecodeArgs) { a.Positions[0] = 3 }},
		"capacity": {rkv.ErrBufferTooSmall, "capacity", func(a *rkv.DecodeArgs) {
			a.Selection = &rkv.Selection{Indices: make([]int32, 2), Counts: make([]int32, 2), Capacity: 1}
		}},
		"absurd capacity": {rkv.ErrBufferTooSmall, "indices", func(a *rkv.DecodeArgs) {
			a.Selection = &rkv.Selection{Indices: make([]int32, 9), Counts: make([]int32, 2), Capacity: math.MaxInt64}
		}},
		"short counts": {rkv.ErrBufferTooSmall, "counts", func(a *rkv.DecodeArgs) {
			a.Selection = &rkv.Selection{Indices: make([]int32, 999), Counts: make([]int32, 1), Capacity: 99}
		}},
		"no lists": {rkv.ErrInvalidArgument, "selection", func(a *rkv.DecodeArgs) { a.Selection = &rkv.Selection{Capacity: 999} }},
		"short table": {rkv.ErrBufferTooSmall, "block_table", func(a *rkv.DecodeArgs) {
			a.Paging = &rkv.Paging{BlockTokens: 1, MaxBlocks: 9, BlockTable: make([]int32, 8)}
		}},
	} {
		a := step(1, 0, prompt, 0)
		one.spoil(a)
		if e := refused(t, cache.Decode(a), one.status); !strings.Contains(e.Text, one.word) {
			t.Errorf("%s: %q does not say %q", name, e.Text, one.word)
		}
	}
	rows := step(1, 0, prompt, 0, 1, 0, 1)
	refused(t, cache.Decode(rows), rkv.ErrOutOfCapacity)
	if stats, err := cache.Stats(0, 0); err != nil || stats.Generated != 0 {
		t.Errorf("a refused call changed the cache: %+v, %v", stats, err)
	}
	must(t, cache.Decode(step(1, 0, prompt, 0)))
}

func TestEmptyBatch(t *testing.T) {
	cache := filled(t, small())
	empty := &rkv.DecodeArgs{
		Q: rkv.Float32s(nil, 0, qHeads, dim), K: rkv.Float32s(nil, 0, kvHeads, dim),
		V: rkv.Float32s(nil, 0, kvHeads, dim), Out: rkv.Float32s(nil, 0, qHeads, dim),
	}
	must(t, cache.Decode(empty))
	must(t, cache.Decode(step(1, 0, 0, -1)))
	must(t, cache.CloseSequence(1))
	must(t, cache.OpenSequence(1, nil))
	must(t, cache.Prefill(&rkv.PrefillArgs{Seq: 1}))
}

func TestAbsurdSizes(t *testing.T) {
	for name, spoil := range map[string]func(*rkv.Config){
		"layers":  func(c *rkv.Config) { c.Layers = math.MaxInt32 },
		"heads":   func(c *rkv.Config) { c.QHeads, c.KVHeads = math.MinInt32, math.MinInt32 },
		"prompt":  func(c *rkv.Config) { c.MaxPromptTokens = math.MaxInt64 },
		"new":     func(c *rkv.Config) { c.MaxNewTokens = math.MinInt64 },
		"ratio":   func(c *rkv.Config) { c.TokenBudget, c.CompressionRatio = 0, math.NaN() },
		"slots":   func(c *rkv.Config) { c.MaxSequences, c.MaxPromptTokens, c.TokenBudget = 1<<20, 1<<30, 1<<30 },
		"threads": func(c *rkv.Config) { c.NumThreads = -1 },
	} {
		config := small()
		spoil(&config)
		if cache, err := rkv.NewCache(config); err == nil {
			t.Errorf("%s: %+v was made", name, cache.Memory())
		} else if e := (*rkv.Error)(nil); !errors.As(err, &e) || e.Text == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, m := range []rkv.Memory{{StorageBytes: math.MaxInt64, Alignment: 64}, {StorageBytes: -1, Alignment: 64}, {}} {
		_, err := m.NewBuffers()
		refused(t, err, rkv.ErrOutOfMemory)
	}
	cache := filled(t, small())
	refused(t, cache.OpenSequence(math.MaxInt32, nil), rkv.ErrInvalidArgument)
	refused(t, cache.Rewind(0, math.MaxInt64), rkv.ErrInvalidArgument)
	_, err := cache.Stats(0, math.MinInt32)
	refused(t, err, rkv.ErrInvalidArgument)
}

// One call at a time: of two goroutines each gets an answer or BAD_STATE with the library's text.
func TestTwoGoroutines(t *testing.T) {
	cache := filled(t, small())
	var worked, refusals atomic.Int64
	var wait sync.WaitGroup
	for seq := int32(0); seq < 2; seq++ {
		wait.Add(1)
		go func(seq int32) {
			defer wait.Done()
			a := step(int64(seq), 0, prompt, seq)
			for i := 0; i < 3000; i++ {
				switch err := cache.Decode(a); {
				case err == nil:
					worked.Add(1)
				case errors.Is(err, rkv.ErrBadState) && strings.Contains(err.Error(), "in use"):
					refusals.Add(1)
				default:
					t.Error(err)
				}
			}
		}(seq)
	}
	wait.Wait()
	if worked.Load() == 0 || worked.Load()+refusals.Load() != 6000 {
		t.Errorf("%d worked, %d were refused", worked.Load(), refusals.Load())
	}
	t.Logf("%d worked, %d were refused", worked.Load(), refusals.Load())
}

// Readers run side by side.
func TestReadersShareACache(t *testing.T) {
	cache := filled(t, small())
	var wait sync.WaitGroup
	for i := 0; i < 4; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for j := 0; j < 200; j++ {
				_, err := cache.Stats(0, 1)
				_, err2 := cache.KeptPositions(1, 0)
				if err := errors.Join(err, err2); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wait.Wait()
}

// Close while calls run: the call is right or refused, Close works or is refused, nothing is freed
// under a call.
func TestCloseDuringCalls(t *testing.T) {
	var late, cut int
	for round := 0; round < 30; round++ {
		cache := filled(t, small())
		started, done := make(chan struct{}), make(chan int)
		go func() {
			a := step(1, 0, prompt, 0, 1)
			for i := 0; ; i++ {
				if i == 1 {
					close(started)
				}
				if err := cache.Decode(a); err != nil || i == 2000 {
					if err != nil {
						refused(t, err, rkv.ErrBadState)
					}
					done <- i
					return
				}
			}
		}()
		<-started
		for err := cache.Close(); err != nil; err = cache.Close() {
			refused(t, err, rkv.ErrBadState)
			late++
			runtime.Gosched()
		}
		if <-done < 2000 {
			cut++
		}
	}
	t.Logf("Close was refused %d times and came between two calls in %d of 30 rounds", late, cut)
}

// 10,000 caches, closed or forgotten, leave the process as big as it was.
func TestManyCachesBounded(t *testing.T) {
	config := small()
	config.NumThreads = 1
	first := promptOf(1, 0, 0, 40)
	round := func(n int, forget bool) {
		for i := 0; i < n; i++ {
			memory, err := rkv.CacheMemory(config)
			must(t, err)
			buffers, err := memory.NewBuffers()
			must(t, err)
			cache, err := rkv.NewCacheIn(config, buffers)
			must(t, err)
			must(t, cache.OpenSequence(0, nil))
			must(t, cache.Prefill(first))
			if !forget {
				must(t, cache.Close())
			}
		}
		runtime.GC()
	}
	cycles := 10000
	if testing.Short() { // under a detector, which makes each slow
		cycles = 1000
	}
	round(500, false)
	before := resident(t)
	round(cycles, false)
	round(500, true) // finalizers close these and unpin their buffers, some time after the collection
	after := before
	for try := 0; try < 100; try++ {
		debug.FreeOSMemory()
		if after = resident(t); after < before+16<<20 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d MB before, %d MB after", before>>20, after>>20)
}

// resident is the process' memory, bytes.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	must(t, err)
	return pages * int64(os.Getpagesize())
}

// The garbage collector runs all the time, and the engine's arrays are garbage right after the call.
func TestGarbageCollectorPressure(t *testing.T) {
	cache := filled(t, small())
	want := make([]float32, qHeads)
	first := step(3, 1, prompt, 0)
	first.LSE = want
	must(t, cache.Decode(first))
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for i := 0; i < 2000; i++ {
		a := step(3, 1, prompt, 0)
		a.LSE = make([]float32, qHeads)
		a.Selection = cache.NewSelection(1)
		must(t, cache.Decode(a))
		for j := range want {
			if a.LSE[j] != want[j] {
				t.Fatalf("step %d gives %v, want %v", i, a.LSE, want)
			}
		}
	}
	close(stop)
	wait.Wait()
}
