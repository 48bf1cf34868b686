package golden

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"os"
	"strings"

	rkv "github.com/librkv/librkv/bindings/go"
)

// Result is what a run over all files ends with; every language's is the same on one machine.
type Result struct {
	Cases    int
	Checksum uint64
}

func (r Result) String() string {
	return fmt.Sprintf("golden: %d cases, checksum %016x", r.Cases, r.Checksum)
}

// runner is the state of a case, and the checksum over all.
type runner struct {
	cases    int
	checksum hash.Hash64

	config  rkv.Config
	options *rkv.Options
	set     []element
	cache   *rkv.Cache
	seeds   map[int32]uint64

	fields    any // of the last action, for the expectations
	kept      [][]int64
	selection *rkv.Selection
	rows      int64 // of the selection
	out       *array
	lse       []float32
	selected  bool // the last action wrote the selection
	attended  bool
}

// Run takes the files in this order. An error says FILE:LINE and what differs.
func Run(files ...string) (result Result, err error) {
	r := &runner{checksum: fnv.New64a()}
	defer func() {
		r.cache.Close()
		if what := recover(); what != nil {
			text, ours := what.(complaint)
			if !ours {
				panic(what)
			}
			err = errors.New(string(text))
		}
	}()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return Result{}, err
		}
		for i, directive := range strings.Split(string(text), "\n") {
			l := parse(file, i+1, directive)
			switch {
			case i == 0 && directive != "rkv-golden 1":
				l.fail("the first line must be rkv-golden 1")
			case i > 0 && len(l.words) > 0:
				r.do(l)
			}
		}
	}
	return Result{r.cases, r.checksum.Sum64()}, nil
}

func (r *runner) do(l *line) {
	name := l.words[0]
	if name != "case" && r.cases == 0 {
		l.fail("%s before the first case", name)
	}
	switch name {
	case "case":
		if err := r.cache.Close(); err != nil {
			l.fail("Close: %v", err)
		}
		*r = runner{cases: r.cases + 1, checksum: r.checksum, seeds: map[int32]uint64{}}
	case "config":
		for _, word := range l.words[1:] {
			l.set(&r.config, word)
		}
	case "options":
		r.options = nil
		for _, word := range l.words[1:] {
			if r.options == nil {
				r.options = &rkv.Options{}
			}
			l.set(r.options, word)
		}
	case "set":
		kind := strings.Index("qkv", l.word(1))
		if kind < 0 {
			l.fail("%s is no tensor", l.word(1))
		}
		r.set = append(r.set, element{tensorKind(kind), l.at(2), l.at(3), l.at(4), float32(l.real(l.word(5)))})
	case "=":
		r.expect(l)
	default:
		r.fields, r.kept, r.selected, r.attended = nil, nil, false, false
		r.act(l, name)
	}
}

// settle compares the end of a call with the line's; true: it succeeded, as it should.
func (r *runner) settle(l *line, err error) bool {
	var e *rkv.Error
	switch {
	case err == nil && l.status != "":
		l.fail("%s succeeds, expected %s", l.words[0], l.status)
	case err == nil:
		return true
	case !errors.As(err, &e) || e.Status.Error() != l.status:
		l.fail("%s gives %v, expected %s", l.words[0], err, l.status)
	case !strings.Contains(e.Text, l.text):
		l.fail("the text %q lacks %s", e.Text, l.text)
	}
	r.add32(uint32(e.Status))
	return false
}

func (r *runner) add32(x uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], x)
	r.checksum.Write(b[:])
}

func (r *runner) addSelection(l *line) {
	capacity := int(r.selection.Capacity)
	for i, count := range r.selection.Counts {
		r.add32(uint32(count))
		list := r.selection.Indices[i*capacity : (i+1)*capacity]
		if count < 0 || int(count) > capacity {
			l.fail("a selection has the count %d", count)
		}
		for j, row := range list {
			if j < int(count) {
				r.add32(uint32(row))
			} else if row != -1 {
				l.fail("a selection is not padded with -1")
			}
		}
	}
}

func (r *runner) addOutput() {
	r.checksum.Write(r.out.bytes)
	for _, x := range r.lse {
		r.add32(math.Float32bits(x))
	}
}

func (r *runner) expect(l *line) {
	kind := l.word(1)
	known := kind == "fields" && r.fields != nil || kind == "kept" && r.kept != nil ||
		kind == "selection" && r.selected || (kind == "out" || kind == "lse") && r.attended
	if !known {
		l.fail("the last action gives no %s", kind)
	}
	switch kind {
	case "fields":
		for _, word := range l.words[3:] {
			l.compare(r.fields, word, l.real(l.word(2)))
		}
	case "kept":
		l.sameList(r.kept[l.at(2)], l.list(l.word(3)))
	case "selection":
		var got []int64
		for _, row := range r.selection.List(int(l.at(2)), int(l.at(3)), int(r.config.KVHeads)) {
			got = append(got, int64(row))
		}
		l.sameList(got, l.list(l.word(4)))
	case "out":
		l.sameValues(l.words[5:], r.out.channels, l.real(l.word(4)), func(i int64) float64 {
			return r.out.get(l.at(2), l.at(3), i)
		})
	case "lse":
		heads := int64(r.config.QHeads)
		l.sameValues(l.words[4:], heads, l.real(l.word(3)), func(i int64) float64 {
			return float64(r.lse[l.at(2)*heads+i])
		})
	}
}

func (l *line) sameList(got, want []int64) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.fail("expected %v, got %v", want, got)
	}
}

func (l *line) sameValues(words []string, count int64, tolerance float64, got func(int64) float64) {
	if int64(len(words)) != count {
		l.fail("%d values, expected %d", len(words), count)
	}
	for i, word := range words {
		if x := got(int64(i)); !near(x, l.real(word), tolerance) {
			l.fail("value %d is %v, expected %s", i, x, word)
		}
	}
}
