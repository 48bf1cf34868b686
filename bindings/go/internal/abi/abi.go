// Package abi shows the structs of rkv.h as cgo lays them out, for the test that holds them against
// the C compiler's.
package abi

// #cgo pkg-config: rkv
// #include <rkv/rkv.h>
import "C"

import "reflect"

// Structs are all structs of the header, by their C names.
func Structs() map[string]reflect.Type {
	return map[string]reflect.Type{
		"rkv_error":            reflect.TypeOf(C.rkv_error{}),
		"rkv_tensor":           reflect.TypeOf(C.rkv_tensor{}),
		"rkv_cache_config":     reflect.TypeOf(C.rkv_cache_config{}),
		"rkv_sequence_options": reflect.TypeOf(C.rkv_sequence_options{}),
		"rkv_plan":             reflect.TypeOf(C.rkv_plan{}),
		"rkv_memory":           reflect.TypeOf(C.rkv_memory{}),
		"rkv_buffers":          reflect.TypeOf(C.rkv_buffers{}),
		"rkv_paging":           reflect.TypeOf(C.rkv_paging{}),
		"rkv_prefill_args":     reflect.TypeOf(C.rkv_prefill_args{}),
		"rkv_selection":        reflect.TypeOf(C.rkv_selection{}),
		"rkv_decode_args":      reflect.TypeOf(C.rkv_decode_args{}),
		"rkv_transfer_args":    reflect.TypeOf(C.rkv_transfer_args{}),
		"rkv_sequence_stats":   reflect.TypeOf(C.rkv_sequence_stats{}),
		"rkv_audit_result":     reflect.TypeOf(C.rkv_audit_result{}),
	}
}
