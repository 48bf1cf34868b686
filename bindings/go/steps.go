package rkv

// #include "call.h"
import "C"

// AuditResult says what a selection misses, over rows and query heads: rkv_audit_result. No rows: all
// NaN.
type AuditResult struct {
	Rows              int32
	MassMean, MassMin float64 // share of the attention mass of all live rows that was selected
	PromptMassMean    float64 // of the whole prompt; NaN in compact storage
	ErrorMean         float64 // |out - out of all live rows| / |out of all live rows|
	ErrorMax          float64
}

// Prefill is stage 1 of one layer of one sequence: it keeps the tokens that the prompt's last queries
// look at. A prompt may come in chunks; the call that ends it carries K and V of the whole prompt.
//
// ErrBadState: not open, or already prefilled. ErrOutOfCapacity: a prompt or plan beyond the slot.
func (c *Cache) Prefill(args *PrefillArgs) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	a, err := k.putPrefill(args)
	if err != nil {
		return err
	}
	return k.done(C.rkv_prefill(c.handle, a, c.queue(), &k.c.err))
}

// DecodeSelect appends the rows' K and V, then writes per row and KV head which live rows to attend
// to. Needs Q, K, V and Selection. Errors as Decode.
func (c *Cache) DecodeSelect(args *DecodeArgs) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	a, err := k.putDecode(args, &c.shape)
	if err != nil {
		return err
	}
	return k.done(C.rkv_decode_select(c.handle, a, c.queue(), &k.c.err))
}

// Attend is exact attention of each row over its Selection, or with none over all live rows up to the
// row's position. Never appends: the row must be stored already (ErrBadState).
func (c *Cache) Attend(args *DecodeArgs) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	a, err := k.putDecode(args, &c.shape)
	if err != nil {
		return err
	}
	return k.done(C.rkv_attend(c.handle, a, c.queue(), &k.c.err))
}

// Decode is one step of one layer, instead of the engine's attention: DecodeSelect and Attend in one.
// A row at the layer's length appends; at a lower position, not before the prompt's end, it first
// drops all rows from there on. It allocates nothing.
//
// ErrBadState: no open, prefilled sequence, or a gap. ErrInvalidArgument: before the prompt's end.
// ErrOutOfCapacity: beyond the new tokens of the sequence, or more rows than the cache takes. On the
// CPU a refused call has changed nothing.
func (c *Cache) Decode(args *DecodeArgs) error {
	k, err := c.enter()
	if err != nil {
		return err
	}
	defer c.leave(k)
	a, err := k.putDecode(args, &c.shape)
	if err != nil {
		return err
	}
	return k.done(C.rkv_decode(c.handle, a, c.queue(), &k.c.err))
}

// Audit says what the selection misses, for rows that are stored already. Out is not touched.
func (c *Cache) Audit(args *DecodeArgs) (AuditResult, error) {
	k, err := c.enter()
	if err != nil {
		return AuditResult{}, err
	}
	defer c.leave(k)
	a, err := k.putDecode(args, &c.shape)
	if err != nil {
		return AuditResult{}, err
	}
	r := &k.c.audit
	if err := k.done(C.rkv_audit(c.handle, a, r, c.queue(), &k.c.err)); err != nil {
		return AuditResult{}, err
	}
	return AuditResult{
		Rows:           int32(r.rows),
		MassMean:       float64(r.mass_mean),
		MassMin:        float64(r.mass_min),
		PromptMassMean: float64(r.prompt_mass_mean),
		ErrorMean:      float64(r.error_mean),
		ErrorMax:       float64(r.error_max),
	}, nil
}
