package main

import (
	"math"
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// matrix is row-major and dense.
type matrix struct {
	rows, columns int
	data          []float32
}

func newMatrix(rows, columns int) matrix {
	return matrix{rows, columns, make([]float32, rows*columns)}
}

func (m matrix) row(i int) []float32 { return m.data[i*m.columns : (i+1)*m.columns] }

func (m matrix) general() blas32.General {
	return blas32.General{Rows: m.rows, Cols: m.columns, Stride: m.columns, Data: m.data}
}

// times is x times the transposed weights: [n, in] and [out, in] to [n, out]. gonum shares the work
// among the cores.
func (m matrix) times(weights matrix) matrix {
	y := newMatrix(m.rows, weights.rows)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, m.general(), weights.general(), 0, y.general())
	return y
}

func (m matrix) add(other matrix) {
	for i, x := range other.data {
		m.data[i] += x
	}
}

func (m matrix) normed(weight []float32, eps float64) matrix {
	y := newMatrix(m.rows, m.columns)
	for r := 0; r < m.rows; r++ {
		var squares float64
		for _, x := range m.row(r) {
			squares += float64(x) * float64(x)
		}
		scale := float32(1 / math.Sqrt(squares/float64(m.columns)+eps))
		out := y.row(r)
		for i, x := range m.row(r) {
			out[i] = x * scale * weight[i]
		}
	}
	return y
}

// rope turns rows of heads by their position; GGUF's rows pair the channels 2i and 2i + 1.
func (m matrix) rope(positions []int64, dim int, base float64) {
	for r, position := range positions {
		row := m.row(r)
		for i := 0; i < dim/2; i++ {
			angle := float64(position) * math.Pow(base, -2*float64(i)/float64(dim))
			sin, cos := math.Sincos(angle)
			for at := 2 * i; at < len(row); at += dim {
				even, odd := row[at], row[at+1]
				row[at] = even*float32(cos) - odd*float32(sin)
				row[at+1] = even*float32(sin) + odd*float32(cos)
			}
		}
	}
}

// inParallel runs body for 0 to n - 1 on all cores.
func inParallel(n int, body func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for worker := 0; worker < min(n, runtime.GOMAXPROCS(0)); worker++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				body(i)
			}
		}()
	}
	for i := 0; i < n; i++ {
		next <- i
	}
	close(next)
	wait.Wait()
}
