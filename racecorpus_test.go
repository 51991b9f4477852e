//go:build !race && !coirtrampoline && !purego && !coirinvariants

package coir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// corpusRounds is the number of times that each program runs, because the detector's report must not depend on the
// schedule.
const corpusRounds = 3

// TestRacesAreSeen builds the programs under testdata/race with the race detector and runs each in a separate process.
// In the racy ones nothing orders two accesses to a variable of the program, and the detector must report that and
// nothing else. In the ordered ones coir orders the accesses, and the detector must report nothing. The first line of
// each program says why.
//
// It is not part of a race build, because the programs are race builds themselves and one run is enough.
//
// Spec: FB-29 (the race detector sees fibers as goroutines)
// Spec: PK-43 (the claim orders memory)
func TestRacesAreSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a hundred programs, and they are the same in each configuration of the tests")
	}
	env := raceEnv(t)
	parts := []struct {
		kind, verdict string
		check         func(string, corpusRun) error
		programs      []string
	}{
		{"racy", "racy found", checkRacy, corpus(t, "racy")},
		{"ordered", "ordered silent", checkOrdered, corpus(t, "ordered")},
	}
	bin := buildCorpus(t, env, slices.Concat(parts[0].programs, parts[1].programs))
	for _, part := range parts {
		right := 0
		for _, name := range part.programs {
			ok := t.Run(name, func(t *testing.T) {
				var all sync.WaitGroup // the rounds run concurrently: a program mostly sleeps
				for range corpusRounds {
					all.Go(func() {
						run, err := runProgram(t.Context(), bin, name, env)
						if err == nil {
							err = part.check("testdata/race/"+name+"/main.go", run)
						}
						if err != nil {
							t.Errorf("%v\n\n%s", err, run.output)
						}
					})
				}
				all.Wait()
			})
			if ok {
				right++
			}
		}
		t.Logf("%s %d/%d", part.verdict, right, len(part.programs))
	}
}

// corpus returns the programs of a kind, such as racy/13-map.
func corpus(t *testing.T, kind string) []string {
	dirs, err := filepath.Glob(filepath.Join("testdata", "race", kind, "*"))
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d %s programs, %v; there should be 20 at least", len(dirs), kind, err)
	}
	for i, dir := range dirs {
		dirs[i] = kind + "/" + filepath.Base(dir)
	}
	return dirs
}

// raceEnv returns the environment for building and running the programs. It skips the test where there is no race
// detector.
func raceEnv(t *testing.T) []string {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the programs with: ", err)
	}
	env := append(os.Environ(), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOFLAGS=",
		"GORACE=halt_on_error=0 exitcode=66 atexit_sleep_ms=0")
	host, err := exec.Command("go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(host)); len(got) != 2 || got[0] != runtime.GOOS || got[1] != runtime.GOARCH {
		t.Skipf("the go command is of %s, the test of %s %s", got, runtime.GOOS, runtime.GOARCH)
	}
	// The smallest package that shows whether -race is supported, cgo is on and there is a C compiler.
	probe := exec.Command("go", "build", "-race", "runtime/cgo")
	probe.Env = env
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no race detector here: %s", bytes.TrimSpace(out))
	}
	return env
}

// buildCorpus builds all programs into one and returns its path; it runs the program that its argument names, such as
// racy/13-map. To link each of them would take minutes. In an overlay, each is a package with a function Main.
func buildCorpus(t *testing.T, env []string, programs []string) string {
	dir := t.TempDir()
	replace := make(map[string]string)
	add := func(file, text string) {
		file, err := filepath.Abs(file)
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := errors.Join(err, os.WriteFile(to, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		replace[file] = to
	}
	var imports, cases strings.Builder
	for i, name := range programs {
		file := filepath.Join("testdata", "race", filepath.FromSlash(name), "main.go")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("\npackage main\n"), []byte("\npackage program\n"), 1)
		add(file, string(bytes.Replace(text, []byte("\nfunc main() {"), []byte("\nfunc Main() {"), 1)))
		fmt.Fprintf(&imports, "import p%d %q\n", i, "github.com/coir-go/coir/testdata/race/"+name)
		fmt.Fprintf(&cases, "case %q:\np%d.Main()\n", name, i)
	}
	add(filepath.Join("testdata", "race", "main.go"), "package main\nimport \"os\"\n"+imports.String()+
		"func main() {\nswitch os.Args[1] {\n"+cases.String()+"default: panic(os.Args[1])\n}\n}\n")
	list, err := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, os.WriteFile(overlay, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "corpus.exe")
	build := exec.Command("go", "build", "-race", "-ldflags=-s -w", "-overlay", overlay, "-o", bin, "./testdata/race")
	build.Env = env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

type corpusRun struct {
	code   int
	output string
}

func runProgram(ctx context.Context, bin, name string, env []string) (corpusRun, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, name)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	run := corpusRun{cmd.ProcessState.ExitCode(), string(out)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return run, errors.New("it hangs")
	case err != nil && !errors.As(err, &exit):
		return run, err
	}
	return run, nil
}

// checkOrdered checks that there is no report. On a slow machine coir may log a stall; there must be no other output.
func checkOrdered(_ string, run corpusRun) error {
	for line := range strings.Lines(run.output) {
		if !strings.Contains(line, "a fiber has run for a long time") {
			return fmt.Errorf("output %q; should be none", line)
		}
	}
	if run.code != 0 {
		return fmt.Errorf("exit code %d; should be 0", run.code)
	}
	return nil
}

// access matches an access in a report, with its stack: two lines a frame.
var access = regexp.MustCompile(`(?m)^(?:Previous )?(?:[Rr]ead|[Ww]rite|[Aa]tomic read|[Aa]tomic write) at 0x.*:\n((?:  .+\n)*)`)

// checkRacy checks that there is at least one report, and that each report has two accesses by file itself.
func checkRacy(file string, run corpusRun) error {
	reports := strings.Split(run.output, "WARNING: DATA RACE")[1:]
	if run.code != 66 || len(reports) == 0 {
		return fmt.Errorf("exit code %d, %d races reported; should be 66, with at least one", run.code, len(reports))
	}
	for _, report := range reports {
		found := access.FindAllStringSubmatch(report, -1)
		if len(found) != 2 {
			return fmt.Errorf("a report has %d accesses; should be 2", len(found))
		}
		for _, a := range found {
			if at := raceSite(a[1]); !strings.Contains(at, file+":") {
				return fmt.Errorf("an access is reported at %q; should be in %s", at, file)
			}
		}
	}
	return nil
}

// raceSite returns the file and line of the topmost frame that is not the Go runtime's, which accesses maps. coir
// reports the memory that it reads and writes for a program as a range: for such an access raceSite returns the frame
// that called coir.
func raceSite(stack string) string {
	pass := []string{"runtime.", "internal/runtime/"}
	if top := strings.TrimSpace(stack); strings.HasPrefix(top, "runtime.raceread") || strings.HasPrefix(top, "runtime.racewrite") {
		pass = append(pass, "github.com/coir-go/coir.", "github.com/coir-go/coir/internal/channel.")
	}
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		f := strings.TrimSpace(lines[i])
		if !slices.ContainsFunc(pass, func(prefix string) bool { return strings.HasPrefix(f, prefix) }) {
			return filepath.ToSlash(strings.TrimSpace(lines[i+1]))
		}
	}
	return ""
}
