// Command pack writes this module as a proxy in a folder would serve it: pack FOLDER v0.1.0. A test
// then takes it by GOPROXY=file://FOLDER, as another project would.
package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const module = "github.com/librkv/librkv/bindings/go"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack FOLDER VERSION")
		os.Exit(1)
	}
	if err := run(filepath.Join(os.Args[1], module, "@v"), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder, version string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf("{\"Version\":%q,\"Time\":\"2020-01-01T00:00:00Z\"}\n", version),
		version + ".mod":  string(mod),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	if err := add(archive, module+"@"+version+"/"); err != nil {
		return err
	}
	return archive.Close()
}

// add writes the module's files; a folder with a go.mod of its own is another module.
func add(archive *zip.Writer, prefix string) error {
	return filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && err == nil {
				return fs.SkipDir
			}
			return nil
		}
		bytes, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to, err := archive.Create(prefix + filepath.ToSlash(path))
		if err != nil {
			return err
		}
		_, err = to.Write(bytes)
		return err
	})
}
