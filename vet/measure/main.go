// Command measure runs coir-vet over well-known modules, as the module proxy serves them. They do not use coir, so each
// report is a false alarm. It prints a line for each module. It exits with 1 if there was a report, or if an analyzer
// failed. It counts packages that do not compile here.
//
//	go run ./measure -dir /tmp/modules
//
// The list of modules is that of the command cmd/coir/measure/modules. Run measure in the directory of module vet.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	list  = flag.String("list", "../cmd/coir/measure/modules/modules.txt", "file: a module and its version in each line")
	dir   = flag.String("dir", "", "directory for the copies of the modules")
	which = flag.String("modules", "", "only the modules that match this regular expression")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run() error {
	if *dir == "" {
		return errors.New("-dir is needed")
	}
	where, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	want, err := regexp.Compile(*which)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(*list)
	if err != nil {
		return err
	}
	tool := filepath.Join(where, "coir-vet")
	if out, err := exec.Command("go", "build", "-o", tool, "./cmd/coir-vet").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %v\n%s", err, out)
	}
	var alarms []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") || !want.MatchString(f[0]) {
			continue
		}
		source := filepath.Join(where, strings.ReplaceAll(f[0], "/", "_"))
		if err := copyModule(f[0], f[1], source); err != nil {
			fmt.Printf("%s %s: not there: %v\n", f[0], f[1], err)
			continue
		}
		r, err := look(tool, source)
		if err != nil {
			return fmt.Errorf("%s: %w", f[0], err)
		}
		fmt.Printf("%s %s: %d packages, %d do not compile, %d reports\n", f[0], f[1], r.packages, r.broken, len(r.alarms))
		alarms = append(alarms, r.alarms...)
	}
	if len(alarms) > 0 {
		return fmt.Errorf("false alarms:\n%s", strings.Join(alarms, "\n"))
	}
	return nil
}

// result is the result of go vet with the analyzers for a module.
type result struct {
	packages, broken int
	alarms           []string
}

// look runs go vet in a module. With -json, go vet prints an object for each package with reports; everything else is
// an error.
func look(tool, source string) (*result, error) {
	names, err := command(source, "list", "-e", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	cmd := command(source, "vet", "-json", "-vettool="+tool, "./...")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // fails if a package does not compile
	r := &result{packages: len(bytes.Fields(names))}
	for line := range strings.Lines(errs.String()) {
		switch {
		case strings.HasPrefix(line, "# "):
			r.broken++
		case strings.Contains(line, "panic:"), strings.Contains(line, "internal error"):
			r.alarms = append(r.alarms, source+": "+line)
		}
	}
	for in := json.NewDecoder(&out); ; {
		var found map[string]map[string]json.RawMessage // by package and analyzer
		if err := in.Decode(&found); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return nil, fmt.Errorf("the output of go vet is not JSON: %w", err)
		}
		for pkg, by := range found {
			for analyzer, text := range by {
				r.alarms = append(r.alarms, fmt.Sprintf("%s: %s: %s", pkg, analyzer, text))
			}
		}
	}
}

// copyModule copies a module from the module cache, unless the copy exists.
func copyModule(path, version, source string) error {
	if _, err := os.Stat(source); err == nil {
		return nil
	}
	out, err := command("", "mod", "download", "-json", path+"@"+version).Output()
	var cached struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &cached); bad != nil || cached.Error != "" {
		return fmt.Errorf("go mod download: %v %s", err, cached.Error)
	}
	temp := source + ".new"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.CopyFS(temp, os.DirFS(cached.Dir)); err != nil {
		return err
	}
	err = filepath.WalkDir(temp, func(path string, _ fs.DirEntry, err error) error { // the cache is read-only
		if err == nil {
			err = os.Chmod(path, 0o777)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(temp, "go.mod")); errors.Is(err, fs.ErrNotExist) { // from before modules
		for _, args := range [][]string{{"mod", "init", path}, {"mod", "tidy"}} {
			if out, err := command(temp, args...).CombinedOutput(); err != nil {
				return fmt.Errorf("go %s: %v\n%s", args[1], err, out)
			}
		}
	}
	return os.Rename(temp, source)
}

// command returns a go command in a module. It may add to go.sum, because some go.sum files lack dependencies of tests.
func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	return cmd
}
