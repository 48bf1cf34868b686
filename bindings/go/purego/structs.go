package purego

import "unsafe"

// The structs of rkv.h that a plan, a prefill and a decode need, laid out as C lays them out on 64-bit
// targets; the test holds sizes and offsets against what cgo reads from the header.

// Error is rkv_error.
type Error struct {
	StructSize uint32
	Status     int32
	NativeCode int32
	_          int32
	Text       [240]byte
}

// Tensor is rkv_tensor.
type Tensor struct {
	StructSize   uint32
	DType        int32
	Data         unsafe.Pointer
	NDim         int32
	_            int32
	Shape        [6]int64
	Strides      [6]int64
	Scale        unsafe.Pointer
	ScaleStrides [6]int64
	_            [4]int64
}

// Config is rkv_cache_config.
type Config struct {
	StructSize                                     uint32
	DeviceType, Device, Layers, QHeads, KVHeads    int32
	HeadDim, HeadDimV                              int32
	KVDType, QueryDType, SummaryDType, Storage     int32
	MaxSequences, MaxRows, MaxPrefills, NumThreads int32
	MaxPromptTokens, MaxNewTokens, TokenBudget     int64
	CompressionRatio                               float64
	PromptBudget, TopK                             int64
	PageSize, NumChannels, WindowSize, KernelSize  int32
	Sinks, RecentTokens, SelectionUnit             int32
	Stage1Domain, SelectionDomain, Pooling         int32
	Temperature, KeyAsQuery                        int32
	SoftmaxScale, LogitSoftcap                     float32
	DenseLayers                                    [8]uint32
	_                                              [8]int32
}

// Plan is rkv_plan.
type Plan struct {
	StructSize                     uint32
	Raised, Dense                  int32
	PageSize, NumChannels, _       int32
	Cap, PromptBudget, Rows, Pages int64
	TopK, TokenBudget              int64
	Ratio, Split                   float64
	StorageRatio, TrafficRatio     float64
}

// PrefillArgs is rkv_prefill_args.
type PrefillArgs struct {
	StructSize          uint32
	Seq, Layer, _       int32
	Start, PromptTokens int64
	Q, K, V             *Tensor
	Paging              unsafe.Pointer
}

// DecodeArgs is rkv_decode_args.
type DecodeArgs struct {
	StructSize              uint32
	Layer, Rows, AttendOnly int32
	Seq                     *int32
	Positions               *int64
	Q, K, V                 *Tensor
	Paging, Selection       unsafe.Pointer
	Out                     *Tensor
	LSE                     *float32
	RowStatus               *int32
}
