package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// gguf is a model file in memory: its settings and where its tensors lie. Little-endian, version 3.
type gguf struct {
	settings map[string]any // uint32, float32, string, []string; other kinds are left out
	tensors  map[string]tensorInfo
	data     []byte // from the first tensor on
}

type tensorInfo struct {
	format        uint32
	rows, columns int // columns are contiguous
	offset        uint64
}

// The formats that SmolLM2's file uses.
const (
	formatF32  = 0
	formatQ4_1 = 3 // blocks of 32: scale and minimum as F16, 16 bytes of nibbles
	formatQ8_0 = 8 // blocks of 32: scale as F16, 32 signed bytes
)

// Kinds of setting.
const (
	kindUint32  = 4
	kindFloat32 = 6
	kindString  = 8
	kindArray   = 9
)

var kindBytes = map[uint32]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// cursor reads a file's head; past the end it remembers that and gives zeros.
type cursor struct {
	bytes []byte
	at    int
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.bytes)-c.at {
		c.short = true
		return make([]byte, min(max(n, 0), 8))
	}
	c.at += n
	return c.bytes[c.at-n : c.at]
}

func (c *cursor) uint32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) uint64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }
func (c *cursor) string() string { return string(c.take(int(c.uint64()))) }

func (c *cursor) value(kind uint32) any {
	switch kind {
	case kindUint32:
		return c.uint32()
	case kindFloat32:
		return math.Float32frombits(c.uint32())
	case kindString:
		return c.string()
	case kindArray:
		inner, n := c.uint32(), c.uint64()
		var texts []string
		for i := uint64(0); i < n && !c.short; i++ {
			if text, ok := c.value(inner).(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	if kindBytes[kind] == 0 {
		c.short = true
	}
	c.take(kindBytes[kind])
	return nil
}

func openGGUF(path string) (*gguf, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &cursor{bytes: bytes}
	if magic := string(c.take(4)); magic != "GGUF" || c.uint32() != 3 {
		return nil, fmt.Errorf("%s is no GGUF file of version 3", path)
	}
	tensors, settings := c.uint64(), c.uint64()
	g := &gguf{settings: map[string]any{}, tensors: map[string]tensorInfo{}}
	for i := uint64(0); i < settings && !c.short; i++ {
		name := c.string()
		g.settings[name] = c.value(c.uint32())
	}
	for i := uint64(0); i < tensors && !c.short; i++ {
		name := c.string()
		axes := c.uint32()
		info := tensorInfo{rows: 1}
		for axis := uint32(0); axis < axes && !c.short; axis++ {
			if n := int(c.uint64()); axis == 0 {
				info.columns = n
			} else {
				info.rows *= n
			}
		}
		info.format = c.uint32()
		info.offset = c.uint64()
		g.tensors[name] = info
	}
	const alignment = 32
	if start := (c.at + alignment - 1) / alignment * alignment; !c.short && start <= len(bytes) {
		g.data = bytes[start:]
		return g, nil
	}
	return nil, fmt.Errorf("%s ends inside its head", path)
}

// matrix gives a tensor as float32, [rows, columns].
func (g *gguf) matrix(name string) (matrix, error) {
	info, ok := g.tensors[name]
	if !ok {
		return matrix{}, fmt.Errorf("the model has no tensor %s", name)
	}
	n := info.rows * info.columns
	bytes := map[uint32]int{formatF32: 4 * n, formatQ4_1: n / 32 * 20, formatQ8_0: n / 32 * 34}[info.format]
	if bytes == 0 || info.offset > uint64(len(g.data)) || bytes > len(g.data)-int(info.offset) {
		return matrix{}, fmt.Errorf("tensor %s: format %d, %d elements", name, info.format, n)
	}
	m := newMatrix(info.rows, info.columns)
	from := g.data[info.offset:][:bytes]
	switch info.format {
	case formatF32:
		for i := range m.data {
			m.data[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
		}
	case formatQ4_1:
		for b := 0; b < n/32; b++ {
			block, to := from[20*b:][:20], m.data[32*b:][:32]
			scale, least := half(block), half(block[2:])
			for i, nibbles := range block[4:] {
				to[i] = scale*float32(nibbles&15) + least
				to[i+16] = scale*float32(nibbles>>4) + least
			}
		}
	case formatQ8_0:
		for b := 0; b < n/32; b++ {
			block, to := from[34*b:][:34], m.data[32*b:][:32]
			scale := half(block)
			for i, x := range block[2:] {
				to[i] = scale * float32(int8(x))
			}
		}
	}
	return m, nil
}

// half reads an F16.
func half(b []byte) float32 {
	h := binary.LittleEndian.Uint16(b)
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1024+mantissa, exponent-25)
	if exponent == 0 {
		x = math.Ldexp(mantissa, -24)
	}
	if h&0x8000 != 0 {
		x = -x
	}
	return float32(x)
}
