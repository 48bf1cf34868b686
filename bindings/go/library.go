package rkv

// #cgo pkg-config: rkv
// #include "call.h"
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Plan says all sizes for one prompt: rkv_plan.
type Plan struct {
	Raised                     bool  // the request is short: Cap was raised to window + sinks + new tokens
	Dense                      bool  // everything kept is attended to, nothing is scored
	PageSize, NumChannels      int32 // P and r
	Cap                        int64 // tokens stored per KV head at most
	PromptBudget               int64 // of them from the prompt
	Rows, Pages                int64 // the most live rows this prompt reaches, and their pages (0 = dense)
	TopK                       int64 // tokens selected per step
	TokenBudget                int64 // t
	Ratio, Split               float64
	StorageRatio, TrafficRatio float64 // of full KV, by the paper's formulas
}

// Memory is what a cache of a config needs: rkv_memory, bytes where no other unit is named.
type Memory struct {
	Alignment                    int64 // of both buffers
	StorageBytes, WorkspaceBytes int64
	SelectionCapacity            int64 // least Selection.Capacity, token rows
	KBytes, VBytes, SummaryBytes int64 // what StorageBytes is made of, all slots
	IndexBytes, WindowBytes      int64
	TableBytes                   int64
}

// Version is the release of the loaded library, "0.1.0".
func Version() string { return C.GoString(C.rkv_version_string()) }

// ABIVersion is the ABI of the loaded library: major * 1000 + minor.
func ABIVersion() int32 { return int32(C.rkv_abi_version()) }

// DeviceCount says how many devices of a kind this build and this machine serve.
func DeviceCount(device DeviceType) (int32, error) {
	s := takeSetup()
	if s == nil {
		return 0, refuse(ErrOutOfMemory, "the process is out of memory")
	}
	defer s.free()
	if status := C.rkv_device_count(C.int32_t(device), &s.count, &s.err); status != C.RKV_OK {
		return 0, newError(status, &s.err)
	}
	return int32(s.count), nil
}

// MakePlan says all sizes for a prompt of promptTokens. options nil = the config's sizes. Fields of
// the config that only size a cache may be 0. Needs no cache; safe in any goroutine.
func MakePlan(config Config, options *Options, promptTokens int64) (Plan, error) {
	s, err := newSetup(&config)
	if err != nil {
		return Plan{}, err
	}
	defer s.free()
	s.plan.struct_size = C.sizeof_rkv_plan
	status := C.rkv_plan_make(&s.config, options.write(&s.options), C.int64_t(promptTokens), &s.plan, &s.err)
	if status != C.RKV_OK {
		return Plan{}, newError(status, &s.err)
	}
	return readPlan(&s.plan), nil
}

// CacheMemory says what a cache of this config needs. Touches no device; safe in any goroutine.
func CacheMemory(config Config) (Memory, error) {
	s, err := newSetup(&config)
	if err != nil {
		return Memory{}, err
	}
	defer s.free()
	return s.readMemory()
}

// setup is the C memory of one call that needs no cache. One is kept for the next such call.
type setup C.rkvgo_setup

var spare atomic.Pointer[setup]

func takeSetup() *setup {
	s := spare.Swap(nil)
	if s == nil {
		s = (*setup)(C.calloc(1, C.sizeof_rkvgo_setup))
	}
	if s != nil {
		s.err.struct_size = C.sizeof_rkv_error
	}
	return s
}

func newSetup(config *Config) (*setup, error) {
	s := takeSetup()
	if s == nil {
		return nil, refuse(ErrOutOfMemory, "the process is out of memory")
	}
	if err := config.write(&s.config); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

func (s *setup) free() {
	if !spare.CompareAndSwap(nil, s) {
		C.free(unsafe.Pointer(s))
	}
}

func (s *setup) readMemory() (Memory, error) {
	s.memory.struct_size = C.sizeof_rkv_memory
	if status := C.rkv_cache_memory(&s.config, &s.memory, &s.err); status != C.RKV_OK {
		return Memory{}, newError(status, &s.err)
	}
	m := &s.memory
	return Memory{
		Alignment:         int64(m.alignment),
		StorageBytes:      int64(m.storage_bytes),
		WorkspaceBytes:    int64(m.workspace_bytes),
		SelectionCapacity: int64(m.selection_capacity),
		KBytes:            int64(m.k_bytes),
		VBytes:            int64(m.v_bytes),
		SummaryBytes:      int64(m.summary_bytes),
		IndexBytes:        int64(m.index_bytes),
		WindowBytes:       int64(m.window_bytes),
		TableBytes:        int64(m.table_bytes),
	}, nil
}

func readPlan(p *C.rkv_plan) Plan {
	return Plan{
		Raised:       p.raised != 0,
		Dense:        p.dense != 0,
		PageSize:     int32(p.page_size),
		NumChannels:  int32(p.num_channels),
		Cap:          int64(p.cap),
		PromptBudget: int64(p.prompt_budget),
		Rows:         int64(p.rows),
		Pages:        int64(p.pages),
		TopK:         int64(p.top_k),
		TokenBudget:  int64(p.token_budget),
		Ratio:        float64(p.ratio),
		Split:        float64(p.split),
		StorageRatio: float64(p.storage_ratio),
		TrafficRatio: float64(p.traffic_ratio),
	}
}
