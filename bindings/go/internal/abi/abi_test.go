package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	rkv "github.com/librkv/librkv/bindings/go"
)

// command runs a program and gives its output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Sizes and offsets of every struct of the header: the C compiler's against cgo's.
func TestLayoutIsTheHeaders(t *testing.T) {
	var program, want strings.Builder
	program.WriteString("#include <rkv/rkv.h>\n#include <stdio.h>\nint main(void) {\n")
	names := make([]string, 0, len(Structs()))
	for name := range Structs() {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		of := Structs()[name]
		fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(%s));\n", name, name)
		fmt.Fprintf(&want, "%s %d\n", name, of.Size())
		for i := 0; i < of.NumField(); i++ {
			field := of.Field(i)
			if field.Name == "_" { // padding that cgo names
				continue
			}
			fmt.Fprintf(&program, "printf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
				name, field.Name, name, field.Name, name, field.Name)
			fmt.Fprintf(&want, "%s.%s %d %d\n", name, field.Name, field.Offset, field.Type.Size())
		}
	}
	program.WriteString("return 0;\n}\n")
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "layout.c"), filepath.Join(folder, "layout")
	if err := os.WriteFile(source, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := strings.Fields(command(t, "pkg-config", "--cflags", "rkv"))
	command(t, "cc", append([]string{"-o", binary, source}, flags...)...)
	if got := command(t, binary); got != strings.TrimSpace(want.String()) {
		t.Errorf("the C compiler says\n%s\ncgo says\n%s", got, want.String())
	}
}

// Every field of the structs that hold values has its field in the binding's struct, and no other.
func TestEveryFieldIsWrapped(t *testing.T) {
	for name, ours := range map[string]any{
		"rkv_cache_config": rkv.Config{}, "rkv_sequence_options": rkv.Options{}, "rkv_plan": rkv.Plan{},
		"rkv_memory": rkv.Memory{}, "rkv_sequence_stats": rkv.Stats{}, "rkv_audit_result": rkv.AuditResult{},
	} {
		var want, got []string
		theirs := Structs()[name]
		for i := 0; i < theirs.NumField(); i++ {
			field := theirs.Field(i).Name
			if field != "_" && field != "struct_size" && field != "reserved" {
				want = append(want, strings.ReplaceAll(field, "_", ""))
			}
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(ours)) {
			got = append(got, strings.ToLower(field.Name))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, the header has %v", name, got, want)
		}
	}
}

// The header has no struct that the list above lacks, and no function that the binding does not call.
func TestWholeHeader(t *testing.T) {
	header := command(t, "pkg-config", "--variable=includedir", "rkv") + "/rkv/rkv.h"
	text, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`typedef struct (\w+) \{`).FindAllSubmatch(text, -1) {
		if Structs()[string(found[1])] == nil {
			t.Errorf("struct %s is not checked", found[1])
		}
	}
	var sources strings.Builder
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	functions := regexp.MustCompile(`(?m)^RKV_API [\w ]+?[ *](rkv_\w+)\(`).FindAllSubmatch(text, -1)
	for _, found := range functions {
		if !strings.Contains(sources.String(), "C."+string(found[1])+"(") {
			t.Errorf("%s is not called", found[1])
		}
	}
	if len(functions) < 20 {
		t.Errorf("only %d functions found", len(functions))
	}
}

// The library that is loaded, its package and its header are of one version.
func TestVersionsAgree(t *testing.T) {
	if of := command(t, "pkg-config", "--modversion", "rkv"); of != rkv.Version() {
		t.Errorf("pkg-config says %s, the library %s", of, rkv.Version())
	}
}
