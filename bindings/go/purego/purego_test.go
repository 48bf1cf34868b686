package purego

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The shapes and values of ../internal/bits, which prints what cgo gives for them.
const qHeads, kvHeads, dim, prompt = 4, 2, 16, 200

func values(n, seed int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32((i*7919+seed*104729)%251-125) / 64
	}
	return out
}

// cgo is the output of ../internal/bits; test.sh puts it there.
func cgo(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("RKV_CGO_BITS"))
	if err != nil {
		t.Skip("test.sh sets RKV_CGO_BITS")
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func library(t *testing.T) *Library {
	t.Helper()
	path := os.Getenv("RKV_LIBRARY")
	if path == "" {
		path = "librkv.so.0"
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func config() Config {
	return Config{
		Layers: 1, QHeads: qHeads, KVHeads: kvHeads, HeadDim: dim, KVDType: 1, NumThreads: 2,
		MaxPromptTokens: prompt, MaxNewTokens: 16, TokenBudget: 64,
	}
}

// The first case of tests/golden/plans.txt.
func TestGoldenPlan(t *testing.T) {
	plan, err := library(t).Plan(Config{HeadDim: 128, TokenBudget: 256, MaxNewTokens: 256}, 130816)
	if err != nil {
		t.Fatal(err)
	}
	if plan.PageSize != 3 || plan.NumChannels != 76 || plan.Cap != 1296 || plan.PromptBudget != 1040 ||
		plan.Pages != 432 || plan.TopK != 128 || plan.Ratio != 512 || math.Abs(plan.Split-0.74) > 1e-9 {
		t.Errorf("%+v", plan)
	}
}

func TestSameBitsAsCgo(t *testing.T) {
	want := cgo(t)
	cache, err := library(t).NewCache(config())
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	if err := cache.Open(0); err != nil {
		t.Fatal(err)
	}
	q, k, v := values(prompt*qHeads*dim, 1), values(prompt*kvHeads*dim, 2), values(prompt*kvHeads*dim, 3)
	if err := cache.Prefill(0, 0, prompt, q, k, v, qHeads, kvHeads, dim); err != nil {
		t.Fatal(err)
	}
	out, lse := make([]float32, qHeads*dim), make([]float32, qHeads)
	err = cache.Decode(0, 0, prompt, values(qHeads*dim, 4), values(kvHeads*dim, 5), values(kvHeads*dim, 6), out, lse,
		qHeads, kvHeads, dim)
	if err != nil {
		t.Fatal(err)
	}
	var bits strings.Builder
	for _, x := range append(out, lse...) {
		fmt.Fprintf(&bits, "%08x", math.Float32bits(x))
	}
	if got := "bits " + bits.String(); got != want[0] {
		t.Errorf("got %s, cgo gives %s", got, want[0])
	}
}

// Sizes and offsets are those that cgo reads from the header.
func TestLayout(t *testing.T) {
	want := strings.Join(cgo(t), "\n") + "\n"
	for name, object := range map[string]any{
		"rkv_error": Error{}, "rkv_tensor": Tensor{}, "rkv_cache_config": Config{}, "rkv_plan": Plan{},
		"rkv_prefill_args": PrefillArgs{}, "rkv_decode_args": DecodeArgs{},
	} {
		of := reflect.TypeOf(object)
		if line := fmt.Sprintf("%s %d\n", name, of.Size()); !strings.Contains(want, line) {
			t.Errorf("cgo does not say %s", line)
		}
		for i := 0; i < of.NumField(); i++ {
			field := of.Field(i)
			line := fmt.Sprintf("%s.%s %d\n", name, strings.ToLower(field.Name), field.Offset)
			if field.Name != "_" && !strings.Contains(want, line) {
				t.Errorf("cgo does not say %s", line)
			}
		}
	}
}

func TestErrorsComeFromTheLibrary(t *testing.T) {
	l := library(t)
	if l.ABIVersion() < 1 || !strings.Contains(l.VersionString(), ".") {
		t.Errorf("ABI %d, version %q", l.ABIVersion(), l.VersionString())
	}
	if _, err := l.Plan(config(), -1); err == nil || !strings.Contains(err.Error(), "prompt_tokens") {
		t.Errorf("a prompt of -1 tokens: %v", err)
	}
	wrong := config()
	wrong.KVDType = 99
	if _, err := l.NewCache(wrong); err == nil || !strings.Contains(err.Error(), "kv_dtype") {
		t.Errorf("kv_dtype 99: %v", err)
	}
	cache, err := l.NewCache(config())
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Open(0); err != nil {
		t.Fatal(err)
	}
	short := make([]float32, 3)
	if err := cache.Prefill(0, 0, prompt, short, short, short, qHeads, kvHeads, dim); err == nil {
		t.Error("short slices are taken")
	}
	cache.Close()
	cache.Close()
	if err := cache.Open(0); err == nil || !strings.Contains(err.Error(), "cache") {
		t.Errorf("a closed cache: %v", err)
	}
}

func TestNoSuchLibrary(t *testing.T) {
	if _, err := Open("/nowhere/librkv.so"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("%v", err)
	}
}
