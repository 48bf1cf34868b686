package golden

import (
	"encoding/binary"
	"math"

	rkv "github.com/librkv/librkv/bindings/go"
)

type tensorKind uint64

const (
	q tensorKind = iota
	k
	v
	out
)

// array is a contiguous [rows, heads, channels] tensor in its storage type, little-endian.
type array struct {
	dtype                 rkv.DType
	rows, heads, channels int64
	bytes                 []byte
}

// source is what the values of a row come from.
type source struct {
	seed, layer uint64
	position    int64
}

// element is a `set` line.
type element struct {
	tensor                  tensorKind
	position, head, channel int64
	value                   float32
}

func newArray(c *rkv.Config, kind tensorKind, rows int64) *array {
	a := &array{dtype: c.KVDType, rows: rows, heads: int64(c.KVHeads), channels: int64(c.HeadDim)}
	if kind == q || kind == out {
		a.heads = int64(c.QHeads)
		if c.QueryDType != 0 {
			a.dtype = c.QueryDType
		}
	}
	if (kind == v || kind == out) && c.HeadDimV != 0 {
		a.channels = int64(c.HeadDimV)
	}
	a.bytes = make([]byte, rows*a.heads*a.channels*a.size())
	return a
}

func (a *array) size() int64 {
	if a.dtype == rkv.F32 {
		return 4
	}
	return 2
}

func (a *array) tensor() rkv.Tensor {
	return rkv.View(a.dtype, a.bytes, a.rows, a.heads, a.channels)
}

func (a *array) at(row, head, channel int64) []byte {
	return a.bytes[((row*a.heads+head)*a.channels+channel)*a.size():]
}

func (a *array) put(to []byte, x float32) {
	switch a.dtype {
	case rkv.F32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(x))
	case rkv.F16:
		binary.LittleEndian.PutUint16(to, half(x))
	default:
		binary.LittleEndian.PutUint16(to, uint16(math.Float32bits(x)>>16))
	}
}

func (a *array) get(row, head, channel int64) float64 {
	from := a.at(row, head, channel)
	switch a.dtype {
	case rkv.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(from)))
	case rkv.F16:
		return fromHalf(binary.LittleEndian.Uint16(from))
	}
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(from)) << 16))
}

// fill writes one row of the generator's values, then the case's own elements.
func (a *array) fill(kind tensorKind, row int64, from source, set []element) {
	first := uint64(from.position * a.heads * a.channels)
	line := a.at(row, 0, 0)
	for i := int64(0); i < a.heads*a.channels; i++ {
		a.put(line[i*a.size():], generated(from, kind, first+uint64(i)))
	}
	for _, e := range set {
		if e.tensor == kind && e.position == from.position {
			a.put(a.at(row, e.head, e.channel), e.value)
		}
	}
}

func generated(from source, kind tensorKind, index uint64) float32 {
	z := ((from.seed*256+from.layer)*4+uint64(kind))<<40 + index
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return (float32(z>>56) - 128) / 64
}

// half takes what F16 holds exactly, an infinity or NaN.
func half(x float32) uint16 {
	sign := uint16(math.Float32bits(x) >> 16 & 0x8000)
	magnitude := math.Abs(float64(x))
	switch {
	case math.IsNaN(magnitude):
		return 0x7E00
	case math.IsInf(magnitude, 0):
		return sign | 0x7C00
	case magnitude < 1.0/16384: // a multiple of 2^-24
		return sign | uint16(math.Ldexp(magnitude, 24))
	}
	fraction, exponent := math.Frexp(magnitude) // 1/2 <= fraction < 1
	return sign | uint16((exponent+14)<<10) | uint16(math.Ldexp(fraction, 11))&1023
}

func fromHalf(h uint16) float64 {
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1024+mantissa, exponent-25)
	switch {
	case exponent == 31 && mantissa != 0:
		return math.NaN()
	case exponent == 31:
		x = math.Inf(1)
	case exponent == 0:
		x = math.Ldexp(mantissa, -24)
	}
	if h&0x8000 != 0 {
		return -x
	}
	return x
}
