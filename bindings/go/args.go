package rkv

// #include "call.h"
import "C"

import (
	"errors"
	"math"
	"math/bits"
)

// PrefillArgs hands one layer of one sequence's prompt over: rkv_prefill_args.
type PrefillArgs struct {
	Seq, Layer   int32
	Start        int64  // position of Q's first row
	PromptTokens int64  // S, the same in every call of a prompt
	Q            Tensor // [n, QHeads, HeadDim]: rows Start to Start + n - 1
	K, V         Tensor // [S, KVHeads, HeadDim], [S, KVHeads, HeadDimV]: the last call alone needs them
	Paging       *Paging
}

// DecodeArgs are the rows of one step in one layer: rkv_decode_args. Seq and Positions have one entry
// per row; Seq -1 is a padding row. Reuse it: a step changes little.
type DecodeArgs struct {
	Layer      int32
	AttendOnly bool    // a layer that shares the K and V of Layer, after that one's call
	Seq        []int32 // [rows]
	Positions  []int64 // [rows], true position of the row's token
	Q          Tensor  // [rows, QHeads, HeadDim]
	K, V       Tensor  // [rows, KVHeads, HeadDim], [rows, KVHeads, HeadDimV]: the new tokens'
	Paging     *Paging
	Selection  *Selection // written by DecodeSelect and Decode, read by Attend and Audit
	Out        Tensor     // [rows, QHeads, HeadDimV], written
	LSE        []float32  // [rows, QHeads], written; nil = not wanted
	RowStatus  []Status   // [rows], written for refused rows only; nil = not wanted
	Device     *DeviceRows
}

// DeviceRows gives the addresses of the rows' arrays in device memory, in place of the slices of the
// same names; 0 = not given.
type DeviceRows struct {
	Rows                           int32
	Seq, Positions, LSE, RowStatus uintptr
}

// Selection is the engine's memory for the lists that stage 2 writes: per row and KV head the live
// rows to attend to, ascending, padded with -1. Cache.NewSelection makes one of the right size.
type Selection struct {
	Space    int32   // SpaceLiveRow, SpacePosition, SpaceSlot; attention reads SpaceLiveRow alone
	Indices  []int32 // [rows, KVHeads, Capacity]
	Counts   []int32 // [rows, KVHeads]
	Capacity int64   // at least Memory.SelectionCapacity

	DeviceIndices, DeviceCounts uintptr // device memory in place of the slices
}

// Values of Selection.Space.
const (
	SpaceLiveRow  int32 = C.RKV_SPACE_LIVE_ROW
	SpacePosition int32 = C.RKV_SPACE_POSITION
	SpaceSlot     int32 = C.RKV_SPACE_SLOT
)

// Paging says where the blocks of an engine's paged K and V are: rkv_paging.
type Paging struct {
	BlockTokens, MaxBlocks, RowStride int64
	BlockTable                        []int32   // [rows, MaxBlocks], negative = absent; or block addresses:
	KBlocks, VBlocks                  []uintptr // [rows, MaxBlocks], memory that Go does not move or free

	DeviceBlockTable, DeviceKBlocks, DeviceVBlocks uintptr // device memory in place of the slices
}

// TransferArgs name what Export writes and Import takes: rkv_transfer_args.
type TransferArgs struct {
	Seq, Layer         int32
	HeadBegin, HeadEnd int32
	K, V               Tensor
	Paging             *Paging
}

// List is the selection of one row and KV head of a cache with so many KV heads, a view into Indices;
// nil where there is none.
func (s *Selection) List(row, head, kvHeads int) []int32 {
	i := row*kvHeads + head
	if s == nil || row < 0 || head < 0 || head >= kvHeads || i >= len(s.Counts) || s.Capacity < 0 {
		return nil
	}
	begin, count := int64(i)*s.Capacity, int64(s.Counts[i])
	if count < 0 || count > s.Capacity || begin+count > int64(len(s.Indices)) {
		return nil
	}
	return s.Indices[begin : begin+count]
}

func (k *call) putPrefill(a *PrefillArgs) (to *C.rkv_prefill_args, err error) {
	if a == nil {
		return nil, nil
	}
	c := k.c
	to = &c.prefill
	to.seq, to.layer = C.int32_t(a.Seq), C.int32_t(a.Layer)
	to.start, to.prompt_tokens = C.int64_t(a.Start), C.int64_t(a.PromptTokens)
	if to.q, err = k.put(&c.q, &a.Q, "args.q"); err != nil {
		return nil, err
	}
	if to.k, err = k.put(&c.k, &a.K, "args.k"); err != nil {
		return nil, err
	}
	if to.v, err = k.put(&c.v, &a.V, "args.v"); err != nil {
		return nil, err
	}
	to.paging, err = k.putPaging(a.Paging, 1)
	return to, err
}

func (k *call) putDecode(a *DecodeArgs, shape *shape) (to *C.rkv_decode_args, err error) {
	if a == nil {
		return nil, nil
	}
	c := k.c
	to = &c.decode
	to.layer, to.attend_only = C.int32_t(a.Layer), flag(a.AttendOnly)
	rows := int64(min(len(a.Seq), math.MaxInt32)) // more than any cache has; the library refuses it
	if d := a.Device; d != nil {
		rows = int64(d.Rows)
		store(&to.seq, d.Seq)
		store(&to.positions, d.Positions)
		store(&to.lse, d.LSE)
		store(&to.row_status, d.RowStatus)
	} else {
		if a.Positions != nil && len(a.Positions) != len(a.Seq) {
			return nil, refuse(ErrInvalidArgument, "args.positions has %d entries: args.seq has %d",
				len(a.Positions), len(a.Seq))
		}
		if err = holds(len(a.LSE), rows*int64(shape.qHeads), "args.lse"); err != nil {
			return nil, err
		}
		if err = holds(len(a.RowStatus), rows, "args.row_status"); err != nil {
			return nil, err
		}
		if err = k.putRows(a.Seq, a.Positions); err != nil {
			return nil, err
		}
		putSlice(k, &to.lse, a.LSE)
		putSlice(k, &to.row_status, a.RowStatus)
	}
	to.rows = C.int32_t(rows)
	if to.q, err = k.put(&c.q, &a.Q, "args.q"); err != nil {
		return nil, err
	}
	if to.k, err = k.put(&c.k, &a.K, "args.k"); err != nil {
		return nil, err
	}
	if to.v, err = k.put(&c.v, &a.V, "args.v"); err != nil {
		return nil, err
	}
	if to.out, err = k.put(&c.out, &a.Out, "args.out"); err != nil {
		return nil, err
	}
	if to.selection, err = k.putSelection(a.Selection, rows, shape); err != nil {
		return nil, err
	}
	to.paging, err = k.putPaging(a.Paging, rows)
	return to, err
}

func (k *call) putSelection(s *Selection, rows int64, shape *shape) (*C.rkv_selection, error) {
	if s == nil {
		return nil, nil
	}
	to := &k.c.selection
	to.space, to.capacity = C.int32_t(s.Space), C.int64_t(s.Capacity)
	if s.DeviceIndices != 0 || s.DeviceCounts != 0 {
		store(&to.indices, s.DeviceIndices)
		store(&to.counts, s.DeviceCounts)
		return to, nil
	}
	lists := rows * int64(shape.kvHeads)
	if err := holds(len(s.Counts), lists, "args.selection.counts"); err != nil {
		return nil, err
	}
	need := int64(math.MaxInt64)
	over, product := bits.Mul64(uint64(max(lists, 0)), uint64(max(s.Capacity, 0)))
	if over == 0 && product < math.MaxInt64 {
		need = int64(product)
	}
	if err := holds(len(s.Indices), need, "args.selection.indices"); err != nil {
		return nil, err
	}
	putSlice(k, &to.indices, s.Indices)
	putSlice(k, &to.counts, s.Counts)
	return to, nil
}

func (k *call) putPaging(p *Paging, rows int64) (*C.rkv_paging, error) {
	if p == nil {
		return nil, nil
	}
	to := &k.c.paging
	to.block_tokens, to.max_blocks = C.int64_t(p.BlockTokens), C.int64_t(p.MaxBlocks)
	to.row_stride = C.int64_t(p.RowStride)
	if p.DeviceBlockTable != 0 || p.DeviceKBlocks != 0 || p.DeviceVBlocks != 0 {
		store(&to.block_table, p.DeviceBlockTable)
		store(&to.k_blocks, p.DeviceKBlocks)
		store(&to.v_blocks, p.DeviceVBlocks)
		return to, nil
	}
	fits := func(length int, name string) error {
		if length == 0 {
			return nil
		}
		table := Tensor{length: int64(length), axes: 2, steps: 2}
		table.shape = [maxAxes]int64{rows, p.MaxBlocks}
		table.strides = [maxAxes]int64{p.RowStride, 1}
		return table.check(name)
	}
	if err := errors.Join(
		fits(len(p.BlockTable), "args.paging.block_table"),
		fits(len(p.KBlocks), "args.paging.k_blocks"),
		fits(len(p.VBlocks), "args.paging.v_blocks"),
	); err != nil {
		return nil, err
	}
	putSlice(k, &to.block_table, p.BlockTable)
	putSlice(k, &to.k_blocks, p.KBlocks)
	putSlice(k, &to.v_blocks, p.VBlocks)
	return to, nil
}

func (k *call) putTransfer(a *TransferArgs) (to *C.rkv_transfer_args, err error) {
	if a == nil {
		return nil, nil
	}
	c := k.c
	to = &c.transfer
	to.seq, to.layer = C.int32_t(a.Seq), C.int32_t(a.Layer)
	to.head_begin, to.head_end = C.int32_t(a.HeadBegin), C.int32_t(a.HeadEnd)
	if to.k, err = k.put(&c.k, &a.K, "args.k"); err != nil {
		return nil, err
	}
	if to.v, err = k.put(&c.v, &a.V, "args.v"); err != nil {
		return nil, err
	}
	to.paging, err = k.putPaging(a.Paging, 1)
	return to, err
}

// holds refuses a slice that is given but shorter than what the library would read or write.
func holds(length int, need int64, name string) error {
	if length > 0 && int64(length) < need {
		return refuse(ErrBufferTooSmall, "%s holds %d elements: %d are needed", name, length, need)
	}
	return nil
}
