package rkv

// #include "call.h"
import "C"

import "unsafe"

// Stats are the counters of one layer of one sequence: rkv_sequence_stats. All 0 before its prefill.
type Stats struct {
	Turn                 int32 // 0 before prefill
	WindowRows           int32 // query rows that scored the prompt; 0 where nothing had to go
	Fault                Status
	Nonfinite, Saturated bool  // an inf or NaN in the logits; an 8-bit summary saturated
	Position             int64 // the length: the next append
	MaxPosition          int64 // prompt and new tokens, exclusive
	Prompt, Kept         int64
	Generated, Pages     int64
	KBytes, VBytes       int64 // in use, all KV heads
	SummaryBytes         int64
	IndexBytes           int64
	FullKVBytes          int64 // of this length, uncompressed
	BytesReadPerStep     int64 // summaries and selected rows
	Plan                 Plan
}

// OpenSequence takes slot seq, 0 to MaxSequences - 1, for a new sequence; options nil = the config's
// sizes. ErrBadState where it is open.
func (c *Cache) OpenSequence(seq int32, options *Options) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	return k.done(C.rkv_sequence_open(c.handle, C.int32_t(seq), options.write(&k.c.options), &k.c.err))
}

// CloseSequence gives the slot back; its rows are gone. ErrBadState where it is not open.
func (c *Cache) CloseSequence(seq int32) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	return k.done(C.rkv_sequence_close(c.handle, C.int32_t(seq), c.queue(), &k.c.err))
}

// Rewind drops all rows at position and after, in every layer, so that the next append is there.
func (c *Cache) Rewind(seq int32, position int64) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	return k.done(C.rkv_sequence_rewind(c.handle, C.int32_t(seq), C.int64_t(position), c.queue(), &k.c.err))
}

// Fork makes the closed slot copyTo a copy of seq.
func (c *Cache) Fork(seq, copyTo int32) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	return k.done(C.rkv_sequence_fork(c.handle, C.int32_t(seq), C.int32_t(copyTo), c.queue(), &k.c.err))
}

// ExportSize says how many bytes Export would write.
func (c *Cache) ExportSize(args *TransferArgs) (int64, error) { return c.export(args, nil) }

// Export writes one layer's heads into out, for another cache, and says how many bytes it wrote.
func (c *Cache) Export(args *TransferArgs, out []byte) (int64, error) {
	if len(out) == 0 {
		out = make([]byte, 1) // NULL would ask for the size alone
		out = out[:0]
	}
	return c.export(args, out)
}

func (c *Cache) export(args *TransferArgs, out []byte) (int64, error) {
	k, err := c.enter()
	if err != nil {
		return 0, err
	}
	defer c.leave(k)
	a, err := k.putTransfer(args)
	if err != nil {
		return 0, err
	}
	k.c.number = 0
	to := unsafe.Pointer(unsafe.SliceData(out))
	err = k.done(C.rkv_sequence_export(c.handle, a, to, C.int64_t(len(out)), &k.c.number, c.queue(), &k.c.err))
	return int64(k.c.number), err
}

// Import takes exported bytes into an open slot that has not been prefilled. ErrABIMismatch,
// ErrCorruptData: the bytes; nothing has changed then.
func (c *Cache) Import(args *TransferArgs, in []byte) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	a, err := k.putTransfer(args)
	if err != nil {
		return err
	}
	from := unsafe.Pointer(unsafe.SliceData(in))
	return k.done(C.rkv_sequence_import(c.handle, a, from, C.int64_t(len(in)), c.queue(), &k.c.err))
}

// Stats gives the counters of one layer of one sequence. On CUDA it waits for the stream: not for the
// hot path. ErrBadState: not open.
func (c *Cache) Stats(seq, layer int32) (Stats, error) {
	k, err := c.enter()
	if err != nil {
		return Stats{}, err
	}
	defer c.leave(k)
	s := &k.c.stats
	*s = C.rkv_sequence_stats{struct_size: C.sizeof_rkv_sequence_stats, plan: &k.c.plan}
	k.c.plan = C.rkv_plan{struct_size: C.sizeof_rkv_plan}
	err = k.done(C.rkv_stats(c.handle, C.int32_t(seq), C.int32_t(layer), c.queue(), s, &k.c.err))
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Turn:             int32(s.turn),
		WindowRows:       int32(s.window_rows),
		Fault:            Status(s.fault),
		Nonfinite:        s.nonfinite != 0,
		Saturated:        s.saturated != 0,
		Position:         int64(s.position),
		MaxPosition:      int64(s.max_position),
		Prompt:           int64(s.prompt),
		Kept:             int64(s.kept),
		Generated:        int64(s.generated),
		Pages:            int64(s.pages),
		KBytes:           int64(s.k_bytes),
		VBytes:           int64(s.v_bytes),
		SummaryBytes:     int64(s.summary_bytes),
		IndexBytes:       int64(s.index_bytes),
		FullKVBytes:      int64(s.full_kv_bytes),
		BytesReadPerStep: int64(s.bytes_read_per_step),
		Plan:             readPlan(&k.c.plan),
	}, nil
}

// KeptPositions gives the original positions of all live rows, ascending, one slice per KV head.
// ErrBadState before prefill.
func (c *Cache) KeptPositions(seq, layer int32) ([][]int64, error) {
	k, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer c.leave(k)
	k.c.number = 0
	err = k.done(C.rkv_kept_positions(c.handle, C.int32_t(seq), C.int32_t(layer), c.queue(), nil, 0,
		&k.c.number, &k.c.err))
	if err != nil {
		return nil, err
	}
	count := int64(k.c.number)
	heads := make([][]int64, c.shape.kvHeads)
	all := make([]int64, count*int64(len(heads)))
	if len(all) > 0 {
		err = k.done(C.rkv_kept_positions(c.handle, C.int32_t(seq), C.int32_t(layer), c.queue(),
			(*C.int64_t)(&all[0]), C.int64_t(len(all)), &k.c.number, &k.c.err))
		if err != nil {
			return nil, err
		}
		count = int64(k.c.number) // less where another goroutine rewound in between
	}
	for i := range heads {
		heads[i] = all[int64(i)*count : int64(i+1)*count : int64(i+1)*count]
	}
	return heads, nil
}
