package rkv_test

import (
	"runtime"
	"testing"
	"unsafe"

	rkv "github.com/librkv/librkv/bindings/go"
)

// addresses are the arrays of one row as an engine has them outside Go: known by number.
type addresses struct {
	rows      rkv.DeviceRows
	k         rkv.Tensor
	selection *rkv.Selection
	lse       func() []float32
	count     func() int32
}

func newAddresses(t *testing.T, a *rkv.DecodeArgs) addresses {
	var pin runtime.Pinner
	t.Cleanup(pin.Unpin)
	address := func(p any, first unsafe.Pointer) uintptr {
		pin.Pin(p)
		return uintptr(first)
	}
	seq, positions := a.Seq, a.Positions
	lse, k := make([]float32, qHeads), random(5, kvHeads*dim) // step(4) has these keys
	indices, counts := make([]int32, kvHeads*1000), make([]int32, kvHeads)
	return addresses{
		rows: rkv.DeviceRows{
			Rows:      1,
			Seq:       address(&seq[0], unsafe.Pointer(&seq[0])),
			Positions: address(&positions[0], unsafe.Pointer(&positions[0])),
			LSE:       address(&lse[0], unsafe.Pointer(&lse[0])),
		},
		k: rkv.DeviceTensor(rkv.F32, address(&k[0], unsafe.Pointer(&k[0])), 1, kvHeads, dim),
		selection: &rkv.Selection{
			Capacity:      1000,
			DeviceIndices: address(&indices[0], unsafe.Pointer(&indices[0])),
			DeviceCounts:  address(&counts[0], unsafe.Pointer(&counts[0])),
		},
		lse:   func() []float32 { return lse },
		count: func() int32 { return counts[0] },
	}
}
