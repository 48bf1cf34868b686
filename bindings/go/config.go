package rkv

// #include "call.h"
import "C"

// DeviceType is where a cache lies and computes.
type DeviceType int32

// Devices.
const (
	CPU  DeviceType = C.RKV_DEVICE_CPU
	CUDA DeviceType = C.RKV_DEVICE_CUDA
)

// DType is the type of a tensor's elements.
type DType int32

// Element types. The zero DType is invalid in a tensor and "the default" in a Config.
const (
	F32  DType = C.RKV_DTYPE_F32
	F16  DType = C.RKV_DTYPE_F16
	BF16 DType = C.RKV_DTYPE_BF16
	E4M3 DType = C.RKV_DTYPE_E4M3
	E5M2 DType = C.RKV_DTYPE_E5M2
)

// Values of Config.Storage.
const (
	StorageCompact int32 = C.RKV_STORAGE_COMPACT // the kept rows are copied into the cache
	StorageIndexed int32 = C.RKV_STORAGE_INDEXED // lists and summaries over the engine's own K and V
)

// Values of Config.SelectionUnit, Stage1Domain, SelectionDomain, Pooling and Temperature.
const (
	UnitPages        int32 = C.RKV_UNIT_PAGES
	UnitTokens       int32 = C.RKV_UNIT_TOKENS
	Stage1All        int32 = C.RKV_STAGE1_ALL
	Stage1PrefixOnly int32 = C.RKV_STAGE1_PREFIX_ONLY
	SoftmaxTokens    int32 = C.RKV_SOFTMAX_TOKENS
	SoftmaxPages     int32 = C.RKV_SOFTMAX_PAGES
	PoolMax          int32 = C.RKV_POOL_MAX
	PoolAvg          int32 = C.RKV_POOL_AVG
	TemperatureSparQ int32 = C.RKV_TEMPERATURE_SPARQ
	TemperatureSqrtD int32 = C.RKV_TEMPERATURE_SQRT_D
)

// Config is what a cache is made for: rkv_cache_config, field by field and with its types. Every
// field may be 0 = the default named beside it, but the shape, KVDType, MaxPromptTokens,
// MaxNewTokens and one of TokenBudget and CompressionRatio are needed.
type Config struct {
	DeviceType DeviceType
	Device     int32 // ordinal; 0 on the CPU

	Layers            int32 // 1 to 256, all of this shape; sliding-window layers stay out
	QHeads, KVHeads   int32 // of this rank; QHeads is a multiple of KVHeads
	HeadDim, HeadDimV int32 // multiples of 8 up to 256; HeadDimV 0 = HeadDim

	KVDType      DType // F32, F16 or BF16
	QueryDType   DType // of q and out; 0 = KVDType
	SummaryDType DType // 0 = KVDType; E4M3, E5M2
	Storage      int32 // StorageCompact, StorageIndexed

	MaxSequences int32 // slots; 0 = 1
	MaxRows      int32 // rows of one decode call; 0 = MaxSequences
	MaxPrefills  int32 // sequences whose window rows wait over calls; 0 = 1
	NumThreads   int32 // of the CPU backend, the caller's included; 0 = all

	MaxPromptTokens  int64   // bounds every prompt; positions stay below 2^31
	MaxNewTokens     int64   // generated tokens per prompt, drafts included
	TokenBudget      int64   // t: tokens' worth of traffic per step; this ...
	CompressionRatio float64 // ... or (S + MaxNewTokens) / t, at least 1: exactly one of both

	PromptBudget          int64 // tokens that stage 1 keeps; 0 = plan
	TopK                  int64 // tokens that stage 2 selects; 0 = plan
	PageSize, NumChannels int32 // 0 = plan; PageSize alone also recomputes NumChannels
	WindowSize            int32 // 0 = 32
	KernelSize            int32 // pooling of stage 1, odd; 0 = 63
	Sinks                 int32 // first tokens that both stages always keep
	RecentTokens          int32 // newest live tokens that stage 2 always selects

	SelectionUnit   int32
	Stage1Domain    int32
	SelectionDomain int32
	Pooling         int32
	Temperature     int32

	KeyAsQuery   int32   // 1: the last WindowSize keys stand in for queries
	SoftmaxScale float32 // 0 = 1 / sqrt(HeadDim)
	LogitSoftcap float32 // 0 = none; else cap * tanh(x / cap)

	DenseLayers []int32 // layers that keep the whole prompt and attend to all of it
}

// Options are one request's own sizes; 0 = the config's. They may ask for whatever fits the slots.
type Options struct {
	MaxNewTokens     int64 // drafts included
	TokenBudget      int64 // one of both at most
	CompressionRatio float64
}

func (c *Config) write(to *C.rkv_cache_config) error {
	*to = C.rkv_cache_config{
		struct_size:       C.sizeof_rkv_cache_config,
		device_type:       C.int32_t(c.DeviceType),
		device:            C.int32_t(c.Device),
		layers:            C.int32_t(c.Layers),
		q_heads:           C.int32_t(c.QHeads),
		kv_heads:          C.int32_t(c.KVHeads),
		head_dim:          C.int32_t(c.HeadDim),
		head_dim_v:        C.int32_t(c.HeadDimV),
		kv_dtype:          C.int32_t(c.KVDType),
		query_dtype:       C.int32_t(c.QueryDType),
		summary_dtype:     C.int32_t(c.SummaryDType),
		storage:           C.int32_t(c.Storage),
		max_sequences:     C.int32_t(c.MaxSequences),
		max_rows:          C.int32_t(c.MaxRows),
		max_prefills:      C.int32_t(c.MaxPrefills),
		num_threads:       C.int32_t(c.NumThreads),
		max_prompt_tokens: C.int64_t(c.MaxPromptTokens),
		max_new_tokens:    C.int64_t(c.MaxNewTokens),
		token_budget:      C.int64_t(c.TokenBudget),
		compression_ratio: C.double(c.CompressionRatio),
		prompt_budget:     C.int64_t(c.PromptBudget),
		top_k:             C.int64_t(c.TopK),
		page_size:         C.int32_t(c.PageSize),
		num_channels:      C.int32_t(c.NumChannels),
		window_size:       C.int32_t(c.WindowSize),
		kernel_size:       C.int32_t(c.KernelSize),
		sinks:             C.int32_t(c.Sinks),
		recent_tokens:     C.int32_t(c.RecentTokens),
		selection_unit:    C.int32_t(c.SelectionUnit),
		stage1_domain:     C.int32_t(c.Stage1Domain),
		selection_domain:  C.int32_t(c.SelectionDomain),
		pooling:           C.int32_t(c.Pooling),
		temperature:       C.int32_t(c.Temperature),
		key_as_query:      C.int32_t(c.KeyAsQuery),
		softmax_scale:     C.float(c.SoftmaxScale),
		logit_softcap:     C.float(c.LogitSoftcap),
	}
	for _, layer := range c.DenseLayers {
		if bits := int32(32 * len(to.dense_layers)); layer < 0 || layer >= bits {
			return refuse(ErrInvalidArgument, "config.DenseLayers has %d: a layer is 0 to %d", layer, bits-1)
		}
		to.dense_layers[layer/32] |= 1 << (layer % 32)
	}
	return nil
}

func (o *Options) write(to *C.rkv_sequence_options) *C.rkv_sequence_options {
	if o == nil {
		return nil
	}
	*to = C.rkv_sequence_options{
		struct_size:       C.sizeof_rkv_sequence_options,
		max_new_tokens:    C.int64_t(o.MaxNewTokens),
		token_budget:      C.int64_t(o.TokenBudget),
		compression_ratio: C.double(o.CompressionRatio),
	}
	return to
}

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}
