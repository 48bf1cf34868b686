package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// model is SmolLM2 (Llama's architecture) with float32 weights.
type model struct {
	layers          []layer
	embedding       matrix // [vocabulary, hidden], the output projection too
	outputNorm      []float32
	qHeads, kvHeads int
	dim             int
	eps, ropeBase   float64
	words           []string
}

type layer struct {
	attnNorm, ffnNorm []float32
	q, k, v, output   matrix // [out, in]
	gate, up, down    matrix
}

// attention gives a layer's attention output [n, qHeads * dim] for q [n, qHeads * dim] and the new
// tokens' k and v [n, kvHeads * dim], all after RoPE.
type attention func(layer int, q, k, v matrix) (matrix, error)

func loadModel(path string) (*model, error) {
	g, err := openGGUF(path)
	if err != nil {
		return nil, err
	}
	number := func(name string) int { n, _ := g.settings["llama."+name].(uint32); return int(n) }
	real := func(name string) float64 { x, _ := g.settings["llama."+name].(float32); return float64(x) }
	m := &model{
		layers:   make([]layer, number("block_count")),
		qHeads:   number("attention.head_count"),
		kvHeads:  number("attention.head_count_kv"),
		dim:      number("rope.dimension_count"),
		eps:      real("attention.layer_norm_rms_epsilon"),
		ropeBase: real("rope.freq_base"),
	}
	m.words, _ = g.settings["tokenizer.ggml.tokens"].([]string)
	var failed error
	read := func(format string, args ...any) matrix {
		tensor, err := g.matrix(fmt.Sprintf(format, args...) + ".weight")
		if err != nil && failed == nil {
			failed = err
		}
		return tensor
	}
	m.embedding = read("token_embd")
	m.outputNorm = read("output_norm").data
	for i := range m.layers {
		m.layers[i] = layer{
			attnNorm: read("blk.%d.attn_norm", i).data, ffnNorm: read("blk.%d.ffn_norm", i).data,
			q: read("blk.%d.attn_q", i), k: read("blk.%d.attn_k", i), v: read("blk.%d.attn_v", i),
			output: read("blk.%d.attn_output", i), gate: read("blk.%d.ffn_gate", i),
			up: read("blk.%d.ffn_up", i), down: read("blk.%d.ffn_down", i),
		}
	}
	if failed == nil && (len(m.layers) == 0 || m.dim == 0 || m.kvHeads == 0) {
		failed = fmt.Errorf("%s is no Llama model", path)
	}
	return m, failed
}

// forward runs tokens at their positions through all layers and gives the final hidden rows.
func (m *model) forward(ids []int, positions []int64, attend attention) (matrix, error) {
	x := newMatrix(len(ids), m.embedding.columns)
	for i, id := range ids {
		copy(x.row(i), m.embedding.row(id))
	}
	for i := range m.layers {
		l := &m.layers[i]
		normed := x.normed(l.attnNorm, m.eps)
		q, k, v := normed.times(l.q), normed.times(l.k), normed.times(l.v)
		q.rope(positions, m.dim, m.ropeBase)
		k.rope(positions, m.dim, m.ropeBase)
		heads, err := attend(i, q, k, v)
		if err != nil {
			return matrix{}, err
		}
		x.add(heads.times(l.output))
		normed = x.normed(l.ffnNorm, m.eps)
		gate, up := normed.times(l.gate), normed.times(l.up)
		for j, g := range gate.data {
			gate.data[j] = g / float32(1+math.Exp(-float64(g))) * up.data[j]
		}
		x.add(gate.times(l.down))
	}
	return x, nil
}

// best gives the most likely next token of each row.
func (m *model) best(hidden matrix) []int {
	logits := hidden.normed(m.outputNorm, m.eps).times(m.embedding)
	best := make([]int, logits.rows)
	for r := range best {
		row := logits.row(r)
		for id, x := range row {
			if x > row[best[r]] {
				best[r] = id
			}
		}
	}
	return best
}

// causal is dense attention of a prompt over itself: every token looks at itself and those before.
func (m *model) causal(q, k, v matrix) matrix {
	n, group := q.rows, m.qHeads/m.kvHeads
	out := newMatrix(n, q.columns)
	view := func(of matrix, head int) blas32.General {
		return blas32.General{Rows: n, Cols: m.dim, Stride: of.columns, Data: of.data[head*m.dim:]}
	}
	inParallel(m.qHeads, func(head int) {
		weights := newMatrix(n, n)
		scale := float32(1 / math.Sqrt(float64(m.dim)))
		blas32.Gemm(blas.NoTrans, blas.Trans, scale, view(q, head), view(k, head/group), 0, weights.general())
		for r := 0; r < n; r++ {
			softmax(weights.row(r), r+1)
		}
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, weights.general(), view(v, head/group), 0, view(out, head))
	})
	return out
}

// softmax of the first n; the rest is the future and gets 0.
func softmax(row []float32, n int) {
	largest, sum := row[0], float32(0)
	for _, x := range row[:n] {
		largest = max(largest, x)
	}
	for i, x := range row[:n] {
		row[i] = float32(math.Exp(float64(x - largest)))
		sum += row[i]
	}
	for i := range row[:n] {
		row[i] /= sum
	}
	clear(row[n:])
}
