package golden

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// files are those of the repository: the module alone does not carry them.
func files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../../../tests/golden/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("the golden vectors come with the repository")
	}
	return found
}

func TestGoldenVectors(t *testing.T) {
	result, err := Run(files(t)...)
	if err != nil {
		t.Fatal(err)
	}
	if result.Cases < 100 {
		t.Errorf("only %d cases", result.Cases)
	}
	t.Log(result)
}

// A changed value is found, whatever kind of line it stands in.
func TestChangedValuesAreFound(t *testing.T) {
	all := files(t)
	for name, change := range map[string]struct{ line, value, other string }{
		"field":     {`(?m)^= fields .* cap=\d+`, `cap=`, `cap=1`},
		"kept":      {`(?m)^= kept 0 \d+-`, `kept 0 `, `kept 0 0-1,`},
		"selection": {`(?m)^= selection 0 0 \d`, `selection 0 0 `, `selection 0 0 0,`},
		"out":       {`(?m)^= out 0 0 5e-05 -?\d`, `5e-05 `, `5e-05 1`},
		"lse":       {`(?m)^= lse 0 5e-05 -?\d`, `5e-05 `, `5e-05 1`},
		"status":    {`(?m)^.* ! INVALID_ARGUMENT \w`, `INVALID_ARGUMENT`, `BAD_STATE`},
		"text":      {`(?m)^.* ! INVALID_ARGUMENT \w`, `INVALID_ARGUMENT `, `INVALID_ARGUMENT xyz`},
		"success":   {`(?m)^create$`, `create`, `create ! BAD_STATE cache`},
	} {
		found := false
		for _, file := range all {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			at := regexp.MustCompile(change.line).FindIndex(text)
			if at == nil {
				continue
			}
			found = true
			old := string(text[at[0]:at[1]])
			changed := string(text[:at[0]]) + strings.Replace(old, change.value, change.other, 1) + string(text[at[1]:])
			path := filepath.Join(t.TempDir(), "changed.txt")
			if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			if result, err := Run(path); err == nil || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("%s: %v, %v", name, result, err)
			}
			break
		}
		if !found {
			t.Errorf("%s: no such line", name)
		}
	}
}
