// Package golden runs the golden vectors of tests/golden: every action is a call of the binding, and
// what it gives is compared and added to the checksum. The format is that of tests/golden/README.md.
package golden

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// line is one directive.
type line struct {
	file   string
	number int
	words  []string // before "!"
	status string   // expected, "" = success
	text   string   // in the text of the error
}

// complaint ends a run: FILE:LINE: what differs.
type complaint string

func (l *line) fail(format string, args ...any) {
	panic(complaint(fmt.Sprintf("%s:%d: ", l.file, l.number) + fmt.Sprintf(format, args...)))
}

func parse(file string, number int, text string) *line {
	l := &line{file: file, number: number}
	if !strings.HasPrefix(text, "#") {
		l.words = strings.Fields(text)
	}
	if n := len(l.words); n >= 3 && l.words[n-3] == "!" {
		l.status, l.text = l.words[n-2], l.words[n-1]
		l.words = l.words[:n-3]
	}
	return l
}

func (l *line) word(i int) string {
	if i >= len(l.words) {
		l.fail("%s: a word is missing", l.words[0])
	}
	return l.words[i]
}

func (l *line) integer(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		l.fail("%s is no integer", word)
	}
	return n
}

func (l *line) at(i int) int64 { return l.integer(l.word(i)) }

func (l *line) id(i int) int32 { return int32(l.at(i)) }

func (l *line) real(word string) float64 {
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		l.fail("%s is no number", word)
	}
	return x
}

// list reads 0-3,7 or "-", the empty list.
func (l *line) list(word string) []int64 {
	var out []int64
	if word == "-" {
		return out
	}
	for _, run := range strings.Split(word, ",") {
		first, last, isRange := strings.Cut(run, "-")
		if !isRange {
			last = first
		}
		for n := l.integer(first); n <= l.integer(last); n++ {
			out = append(out, n)
		}
	}
	return out
}

// row reads SEQ:POSITION.
func (l *line) row(word string) (int32, int64) {
	seq, position, ok := strings.Cut(word, ":")
	if !ok {
		l.fail("%s: SEQ:POSITION expected", word)
	}
	return int32(l.integer(seq)), l.integer(position)
}

// field finds FIELD of FIELD=VALUE, a C name, in a struct of the binding: kv_dtype is KVDType.
func (l *line) field(object reflect.Value, word string) (reflect.Value, string) {
	name, value, ok := strings.Cut(word, "=")
	goName := strings.ReplaceAll(name, "_", "")
	field := object.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, goName) })
	if !ok || !field.IsValid() {
		l.fail("%s: no such field", word)
	}
	return field, value
}

func (l *line) set(object any, word string) {
	field, value := l.field(reflect.ValueOf(object).Elem(), word)
	switch field.Kind() {
	case reflect.Int32, reflect.Int64:
		field.SetInt(l.integer(value))
	case reflect.Float32, reflect.Float64:
		field.SetFloat(l.real(value))
	case reflect.Slice:
		var list []int32
		for _, n := range l.list(value) {
			list = append(list, int32(n))
		}
		field.Set(reflect.ValueOf(list))
	default:
		l.fail("%s: a field of kind %v", word, field.Kind())
	}
}

func (l *line) compare(object any, word string, tolerance float64) {
	field, value := l.field(reflect.ValueOf(object), word)
	var got float64
	switch field.Kind() {
	case reflect.Int32, reflect.Int64:
		got = float64(field.Int())
	case reflect.Float64:
		got = field.Float()
	case reflect.Bool:
		if field.Bool() {
			got = 1
		}
	default:
		l.fail("%s: not a result", word)
	}
	if !near(got, l.real(value), tolerance) {
		l.fail("%s, got %v", word, got)
	}
}

func near(got, want, tolerance float64) bool {
	switch {
	case math.IsNaN(want):
		return math.IsNaN(got)
	case math.IsInf(want, 0):
		return got == want
	}
	return math.Abs(got-want) <= tolerance*math.Max(1, math.Abs(want))
}
