package golden

import (
	"encoding/binary"
	"math"

	rkv "github.com/librkv/librkv/bindings/go"
)

// act makes the call of one directive.
func (r *runner) act(l *line, name string) {
	switch name {
	case "plan":
		plan, err := rkv.MakePlan(r.config, r.options, l.at(1))
		if r.settle(l, err) {
			r.fields = plan
		}
	case "memory":
		memory, err := rkv.CacheMemory(r.config)
		if r.settle(l, err) {
			r.fields = memory
		}
	case "create":
		cache, err := rkv.NewCache(r.config)
		if r.settle(l, err) {
			r.cache.Close()
			r.cache = cache
		}
	default:
		if r.cache == nil {
			l.fail("%s without a cache", name)
		}
		r.actInside(l, name)
	}
}

func (r *runner) actInside(l *line, name string) {
	heads := rkv.TransferArgs{Seq: l.id(1), HeadEnd: r.config.KVHeads}
	switch name {
	case "open":
		if r.settle(l, r.cache.OpenSequence(l.id(1), r.options)) {
			r.seeds[l.id(1)] = uint64(l.at(2))
		}
	case "close":
		r.settle(l, r.cache.CloseSequence(l.id(1)))
	case "rewind":
		r.settle(l, r.cache.Rewind(l.id(1), l.at(2)))
	case "fork":
		r.settle(l, r.cache.Fork(l.id(1), l.id(2)))
	case "export":
		heads.Layer = l.id(2)
		_, err := r.cache.ExportSize(&heads)
		r.settle(l, err)
	case "import":
		heads.Layer = l.id(2)
		r.settle(l, r.cache.Import(&heads, make([]byte, 16)))
	case "prefill":
		r.prefill(l)
	case "kept":
		kept, err := r.cache.KeptPositions(l.id(1), l.id(2))
		if r.settle(l, err) {
			r.kept = kept
			for _, positions := range kept {
				binary.Write(r.checksum, binary.LittleEndian, positions)
			}
		}
	case "stats":
		stats, err := r.cache.Stats(l.id(1), l.id(2))
		if r.settle(l, err) {
			r.fields = stats
		}
	case "select", "attend", "decode", "audit":
		r.step(l, name)
	default:
		l.fail("no directive %s", name)
	}
}

func (r *runner) prefill(l *line) {
	start, end := l.at(4), l.at(5)
	args := &rkv.PrefillArgs{Seq: l.id(1), Layer: l.id(2), PromptTokens: l.at(3), Start: start}
	from := source{seed: r.seeds[args.Seq], layer: uint64(args.Layer)}
	rows := func(kind tensorKind, start, end int64) rkv.Tensor {
		a := newArray(&r.config, kind, end-start)
		for from.position = start; from.position < end; from.position++ {
			a.fill(kind, from.position-start, from, r.set)
		}
		return a.tensor()
	}
	if end > start {
		args.Q = rows(q, start, end)
	}
	if end == args.PromptTokens {
		args.K, args.V = rows(k, 0, end), rows(v, 0, end)
	}
	r.settle(l, r.cache.Prefill(args))
}

// step is LAYER SEQ:POSITION ... of select, attend, decode and audit.
func (r *runner) step(l *line, name string) {
	rows := int64(len(l.words) - 2)
	args := &rkv.DecodeArgs{Layer: l.id(1), Seq: make([]int32, rows), Positions: make([]int64, rows)}
	arrays := [3]*array{}
	for kind := range arrays {
		arrays[kind] = newArray(&r.config, tensorKind(kind), rows)
	}
	for i := range args.Seq {
		args.Seq[i], args.Positions[i] = l.row(l.words[i+2])
		from := source{r.seeds[args.Seq[i]], uint64(args.Layer), args.Positions[i]}
		if args.Seq[i] == -1 {
			from.seed, from.position = 0, 0
		}
		for kind, a := range arrays {
			a.fill(tensorKind(kind), int64(i), from, r.set)
		}
	}
	args.Q, args.K, args.V = arrays[q].tensor(), arrays[k].tensor(), arrays[v].tensor()
	if name == "select" || name == "decode" {
		r.selection, r.rows = r.cache.NewSelection(int(rows)), rows
	}
	if name != "audit" {
		args.Selection = r.selection
	}
	if name == "attend" && rows > r.rows {
		l.fail("no select of as many rows")
	}
	if name == "attend" || name == "decode" {
		r.newOutput(args, rows)
	}
	var err error
	switch name {
	case "select":
		err = r.cache.DecodeSelect(args)
	case "attend":
		err = r.cache.Attend(args)
	case "decode":
		err = r.cache.Decode(args)
	case "audit":
		r.fields, err = r.cache.Audit(args)
	}
	if !r.settle(l, err) {
		return
	}
	if name == "select" || name == "decode" {
		r.addSelection(l)
		r.selected = true
	}
	if name == "attend" || name == "decode" {
		r.addOutput()
		r.attended = true
	}
}

// newOutput makes out and lse, full of NaN, so that what a call does not write is seen.
func (r *runner) newOutput(args *rkv.DecodeArgs, rows int64) {
	nan := float32(math.NaN())
	r.out = newArray(&r.config, out, rows)
	for i := int64(0); i < int64(len(r.out.bytes)); i += r.out.size() {
		r.out.put(r.out.bytes[i:], nan)
	}
	r.lse = make([]float32, rows*int64(r.config.QHeads))
	for i := range r.lse {
		r.lse[i] = nan
	}
	args.Out, args.LSE = r.out.tensor(), r.lse
}
