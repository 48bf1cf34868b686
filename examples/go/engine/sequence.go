package main

import (
	"encoding/binary"
	"fmt"
	"math"

	rkv "github.com/librkv/librkv/bindings/go"
)

// window is how many of a prompt's last queries librkv needs: Config.WindowSize's default.
const window = 32

// prefilled is what the engine's own prefill leaves of a prompt: per layer K and V, token-major
// [S, kvHeads, dim], and the last queries [w, qHeads, dim].
type prefilled struct {
	tokens  int
	k, v, q []matrix
	next    int // the model's first token of the answer
}

func (m *model) prefill(ids []int) (*prefilled, error) {
	p := &prefilled{tokens: len(ids)}
	positions := make([]int64, len(ids))
	for i := range positions {
		positions[i] = int64(i)
	}
	hidden, err := m.forward(ids, positions, func(_ int, q, k, v matrix) (matrix, error) {
		w := min(window, q.rows)
		last := matrix{w, q.columns, append([]float32(nil), q.data[(q.rows-w)*q.columns:]...)}
		p.k, p.v, p.q = append(p.k, k), append(p.v, v), append(p.q, last)
		return m.causal(q, k, v), nil
	})
	if err != nil {
		return nil, err
	}
	p.next = m.best(matrix{1, hidden.columns, hidden.row(hidden.rows - 1)})[0]
	return p, nil
}

// decoder runs decode steps of several sequences whose attention is librkv's.
type decoder struct {
	model *model
	cache *rkv.Cache
	step  rkv.DecodeArgs
	bf16  bool
}

// newDecoder makes a cache for these prompts and hands them over, as float32 or as bfloat16 bytes.
func newDecoder(m *model, prompts []*prefilled, newTokens, budget int64, bf16 bool) (*decoder, error) {
	config := rkv.Config{
		Layers: int32(len(m.layers)), QHeads: int32(m.qHeads), KVHeads: int32(m.kvHeads), HeadDim: int32(m.dim),
		KVDType: rkv.F32, QueryDType: rkv.F32, MaxSequences: int32(len(prompts)), MaxNewTokens: newTokens,
		TokenBudget: budget,
	}
	if bf16 {
		config.KVDType = rkv.BF16
	}
	for _, p := range prompts {
		config.MaxPromptTokens = max(config.MaxPromptTokens, int64(p.tokens))
	}
	cache, err := rkv.NewCache(config)
	if err != nil {
		return nil, err
	}
	d := &decoder{model: m, cache: cache, bf16: bf16}
	d.step.Seq, d.step.Positions = make([]int32, len(prompts)), make([]int64, len(prompts))
	for seq, p := range prompts {
		d.step.Seq[seq], d.step.Positions[seq] = int32(seq), int64(p.tokens)
		if err := d.take(int32(seq), p); err != nil {
			cache.Close()
			return nil, err
		}
	}
	return d, nil
}

// take is stage 1 of every layer; afterwards the engine's K and V of the prompt could go.
func (d *decoder) take(seq int32, p *prefilled) error {
	if err := d.cache.OpenSequence(seq, nil); err != nil {
		return err
	}
	for layer := range p.k {
		args := rkv.PrefillArgs{
			Seq: seq, Layer: int32(layer), Start: int64(p.tokens - p.q[layer].rows), PromptTokens: int64(p.tokens),
			Q: d.heads(p.q[layer], d.model.qHeads), K: d.stored(p.k[layer]), V: d.stored(p.v[layer]),
		}
		if err := d.cache.Prefill(&args); err != nil {
			return fmt.Errorf("layer %d: %w", layer, err)
		}
	}
	return nil
}

func (d *decoder) heads(of matrix, heads int) rkv.Tensor {
	return rkv.Float32s(of.data, int64(of.rows), int64(heads), int64(d.model.dim))
}

// stored views K or V in the engine's storage type.
func (d *decoder) stored(of matrix) rkv.Tensor {
	if !d.bf16 {
		return d.heads(of, d.model.kvHeads)
	}
	return rkv.View(rkv.BF16, bfloat16Bytes(of.data), int64(of.rows), int64(d.model.kvHeads), int64(d.model.dim))
}

// next feeds one token per sequence at the sequences' positions and gives the tokens that follow.
func (d *decoder) next(ids []int) ([]int, error) {
	hidden, err := d.model.forward(ids, d.step.Positions, func(layer int, q, k, v matrix) (matrix, error) {
		out := newMatrix(q.rows, q.columns)
		d.step.Layer = int32(layer)
		d.step.Q, d.step.Out = d.heads(q, d.model.qHeads), d.heads(out, d.model.qHeads)
		d.step.K, d.step.V = d.stored(k), d.stored(v)
		return out, d.cache.Decode(&d.step)
	})
	if err != nil {
		return nil, err
	}
	for i := range d.step.Positions {
		d.step.Positions[i]++
	}
	return d.model.best(hidden), nil
}

// bfloat16Bytes rounds to nearest, ties to even, as an engine that stores bfloat16 does.
func bfloat16Bytes(values []float32) []byte {
	out := make([]byte, 2*len(values))
	for i, x := range values {
		bits := math.Float32bits(x)
		bits += 0x7FFF + bits>>16&1
		binary.LittleEndian.PutUint16(out[2*i:], uint16(bits>>16))
	}
	return out
}
