// Command modules runs `coir test` on the tests of well-known modules, as the module proxy serves them, and prints the
// results as a Markdown table with one line for each module.
//
//	go run ./cmd/coir/measure/modules -dir /tmp/modules
//
// The list is in modules.txt: a module, its version, the packages (all, if none are named), and flags of coir test. The
// command copies each module from the module cache to the directory -dir, and does not change the copy. It also runs
// each flagged test once with plain go test, to find out which fail anyway. If a test leaves goroutines behind, the
// command explores it again with -leaks=false, because an alarm ends the exploration of a test. It keeps the output in
// -dir. With -old it makes the table from that output and runs nothing.
//
// Each alarm has been read. triage.txt contains the verdicts: the package, the test, the class, and a sentence that
// says why. The table counts the verdicts, and lists the alarms without one.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
)

//go:embed modules.txt
var modulesText string

//go:embed triage.txt
var triageText string

var (
	dir    = flag.String("dir", "", "directory for the copies of the modules, the output and the alarms")
	which  = flag.String("modules", "", "measure the modules that match this regular expression")
	budget = flag.Duration("budget", 500*time.Millisecond, "time for each test")
	limit  = flag.Duration("cap", 5*time.Minute, "time limit for each of the two runs of a module; the remaining tests are left out")
	old    = flag.Bool("old", false, "run nothing: make the table of the output in -dir")
)

// module is a line of modules.txt.
type module struct {
	path, version string
	packages      []string
	flags         []string // for coir test
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run() error {
	if *dir == "" {
		return errors.New("-dir is required")
	}
	where, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	want, err := regexp.Compile(*which)
	if err != nil {
		return err
	}
	verdicts, err := readTriage(triageText)
	if err != nil {
		return err
	}
	coir := ""
	if !*old {
		if err := os.MkdirAll(where, 0o777); err != nil {
			return err
		}
		if coir, err = build.Coir(where); err != nil {
			return err
		}
	}
	var rows []*row
	modules := readModules(modulesText)
	for i, m := range modules {
		if !want.MatchString(m.path) {
			continue
		}
		home := filepath.Join(where, strings.ReplaceAll(m.path, "/", "_"))
		if !*old {
			fmt.Fprintf(os.Stderr, "%d of %d: %s\n", i+1, len(modules), m.path)
			if err := m.measure(coir, home); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", m.path, err)
			}
		}
		r, err := m.read(home, verdicts)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %v", m.path, err)
		}
		fmt.Fprintf(os.Stderr, "%s\n", r)
		rows = append(rows, r)
	}
	printTable(rows)
	if *which == "" {
		for key, v := range verdicts {
			if !v.used {
				fmt.Fprintf(os.Stderr, "a verdict, and no alarm: %s: %s\n", key, v.class)
			}
		}
	}
	return nil
}

func readModules(text string) (all []module) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") {
			continue
		}
		m := module{path: f[0], version: f[1]}
		for _, w := range f[2:] {
			if strings.HasPrefix(w, "-") {
				m.flags = append(m.flags, w)
			} else {
				m.packages = append(m.packages, w)
			}
		}
		if len(m.packages) == 0 {
			m.packages = []string{"./..."}
		}
		all = append(all, m)
	}
	return all
}

// measure runs the tests of a module, and writes the output to files in the directory home.
func (m *module) measure(coir, home string) error {
	source := filepath.Join(home, "source")
	if err := m.copyTo(source); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	args := append([]string{"test", "-json", "-v", "-timeout=90s", "-budget=" + budget.String()}, m.flags...)
	first, err := command(ctx, source, coir, append(args, m.packages...)...)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		first = append(first, "{\"Action\":\"cut\"}\n"...)
	}
	if err := os.WriteFile(filepath.Join(home, "first.json"), first, 0o666); err != nil {
		return err
	}
	tests, _, err := readEvents(first)
	if err != nil {
		return err
	}
	flagged, leaks := map[string][]string{}, map[string][]string{}
	for _, t := range tests {
		if t.outcome == "flagged" || t.outcome == "died" {
			flagged[t.pkg] = append(flagged[t.pkg], t.name)
		}
		if t.kind == "leak" {
			leaks[t.pkg] = append(leaks[t.pkg], t.name)
		}
	}
	var second, plain bytes.Buffer
	ctx, cancel = context.WithTimeout(context.Background(), *limit)
	defer cancel()
	for _, pkg := range slices.Sorted(maps.Keys(leaks)) {
		out, err := command(ctx, source, coir, append(args, "-leaks=false", "-run="+anyOf(leaks[pkg]), pkg)...)
		if err != nil {
			return err
		}
		second.Write(out)
	}
	if err := os.WriteFile(filepath.Join(home, "second.json"), second.Bytes(), 0o666); err != nil {
		return err
	}
	for _, pkg := range slices.Sorted(maps.Keys(flagged)) {
		for _, name := range flagged[pkg] { // each in its own process, because a test that panics ends the others
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			args := []string{"test", "-json", "-count=1", "-vet=off", "-timeout=60s", "-run=" + anyOf([]string{name})}
			if slices.Contains(m.flags, "-short") {
				args = append(args, "-short")
			}
			out, err := command(ctx, source, "go", append(args, pkg)...)
			cancel()
			if err != nil {
				return err
			}
			plain.Write(out)
		}
	}
	return os.WriteFile(filepath.Join(home, "plain.json"), plain.Bytes(), 0o666)
}

// copyTo copies the module from the module cache to source, unless source exists.
func (m *module) copyTo(source string) error {
	if _, err := os.Stat(source); err == nil {
		return nil
	}
	out, err := command(context.Background(), "", "go", "mod", "download", "-json", m.path+"@"+m.version)
	if err != nil {
		return err
	}
	var cached struct{ Dir, Error string }
	if err := json.Unmarshal(out, &cached); err != nil || cached.Error != "" {
		return fmt.Errorf("go mod download: %v %s", err, cached.Error)
	}
	temp := source + ".new"
	_ = os.RemoveAll(temp)
	if err := os.CopyFS(temp, os.DirFS(cached.Dir)); err != nil {
		return err
	}
	err = filepath.WalkDir(temp, func(path string, d fs.DirEntry, err error) error { // files from the cache are read-only
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o777)
		} else if err == nil {
			err = os.Chmod(path, 0o666)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(temp, "go.mod")); errors.Is(err, fs.ErrNotExist) { // the version predates modules
		for _, args := range [][]string{{"mod", "init", m.path}, {"mod", "tidy"}} {
			if _, err := command(context.Background(), temp, "go", args...); err != nil {
				return err
			}
		}
	}
	return os.Rename(temp, source)
}

// command runs a command and returns its output. Exit code 1 is not an error, because it means that a test failed. When
// ctx ends, the command is interrupted and prints the results so far.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off") // some go.sum files lack modules that the tests need
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 || ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}

func anyOf(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }
