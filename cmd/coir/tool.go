package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

// tool is the user's Go.
type tool struct {
	goCommand string
	root      string // GOROOT
	version   string
	cache     string // where coir keeps its files
	overlay   string
	env       []string
}

// toolchain asks the go command for its version and directories. The go command does not apply overlays to files in the
// module cache, so a toolchain that it has downloaded there is copied first.
func toolchain(ctx context.Context, errs io.Writer) (*tool, error) {
	t := &tool{goCommand: "go", env: os.Environ()}
	text, err := t.command(ctx, "", "go", "env", "-json", "GOROOT", "GOVERSION", "GOMODCACHE")
	if err != nil {
		return nil, fmt.Errorf("go env does not work: %v\n%s", err, text)
	}
	var env struct{ GOROOT, GOVERSION, GOMODCACHE string }
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		return nil, err
	}
	t.root, t.version = env.GOROOT, env.GOVERSION
	if !overlay.Supported(t.version) {
		return nil, &overlay.Unsupported{Version: t.version}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	t.cache = filepath.Join(cache, "coir")
	if in, err := filepath.Rel(env.GOMODCACHE, t.root); err == nil && filepath.IsLocal(in) {
		if err := t.copyRoot(errs); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// copyRoot copies the sources of GOROOT to the cache, and links to everything else.
func (t *tool) copyRoot(errs io.Writer) error {
	to := filepath.Join(t.cache, "goroot-"+t.version)
	if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(errs, "coir test: copying the sources of %s to %s, once\n", t.version, to)
		temp := fmt.Sprint(to, ".", os.Getpid())
		defer func() { _ = os.RemoveAll(temp) }()
		if err := os.CopyFS(filepath.Join(temp, "src"), os.DirFS(filepath.Join(t.root, "src"))); err != nil {
			return err
		}
		entries, err := os.ReadDir(t.root)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() == "src" {
				continue
			}
			if err := os.Symlink(filepath.Join(t.root, e.Name()), filepath.Join(temp, e.Name())); err != nil {
				return err
			}
		}
		if err := os.Rename(temp, to); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	t.root = to
	t.goCommand = filepath.Join(to, "bin", "go")
	t.env = append(t.env, "GOROOT="+to, "GOTOOLCHAIN=local")
	return nil
}

// command runs a program and returns what it has printed.
func (t *tool) command(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, t.env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// pkg is a package, as printed by go list.
type pkg struct {
	ImportPath                string
	Dir                       string
	TestGoFiles, XTestGoFiles []string
	Error                     *struct{ Err string }
}

func (p *pkg) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// binary returns the name that go test gives to the package's test binary. Some tests look at it.
func (p *pkg) binary() string {
	dir, name := path.Split(p.ImportPath)
	if dir != "" && majorVersion.MatchString(name) {
		name = path.Base(dir)
	}
	return name + ".test"
}

func (t *tool) list(ctx context.Context, o *options) ([]*pkg, error) {
	args := append([]string{"list", "-e", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Error"}, o.listFlags()...)
	text, err := t.command(ctx, "", t.goCommand, append(args, o.packages...)...)
	if err != nil {
		return nil, fmt.Errorf("go list: %v\n%s", err, text)
	}
	var packages []*pkg
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		p := new(pkg)
		if err := d.Decode(p); err != nil {
			return nil, err
		}
		if p.Error != nil {
			return nil, errors.New(p.Error.Err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// listFlags returns those of the build flags that decide which files a package has.
func (o *options) listFlags() (flags []string) {
	for _, f := range o.build {
		name, _, _ := strings.Cut(f, "=")
		switch name {
		case "-tags", "-mod", "-modfile", "-race", "-msan", "-asan", "-C":
			flags = append(flags, f)
		}
	}
	return flags
}

func (t *tool) build(ctx context.Context, o *options, p *pkg, binary string) (string, error) {
	args := append([]string{"test", "-c", "-vet=off", "-overlay=" + t.overlay, "-o", binary}, o.build...)
	if o.atomics { // else the compiler replaces calls of package sync/atomic by single instructions
		args = append(args, "-gcflags=all=-d=ssa/intrinsics/off=1", "-gcflags=std=")
	}
	out, err := t.command(ctx, "", t.goCommand, append(args, p.ImportPath)...)
	if err != nil && (strings.Contains(out, t.cache) || libraryBroken(out)) {
		out = "The edited standard library does not build. That is a fault of coir test: report it with this output, " +
			"and with what `go version` says.\n" + out
	}
	return out, err
}

// libraryBroken reports whether the go command says that a package of the standard library that has edits does not
// build.
func libraryBroken(out string) bool {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok && overlay.Edits(name) {
			return true
		}
	}
	return false
}

// The lines around the output of the reported schedule.
const beginOutput, endOutput = "\x16coir begin\n", "\x16coir end\n"

// runTest runs one test in a process. If the test notices earlier runs, each schedule gets a process of its own. A test
// that the end of ctx interrupted has no result.
func (t *tool) runTest(ctx context.Context, o *options, p *pkg, binary, name string, i int) *result {
	if !o.fresh && !strings.HasPrefix(o.replay, "f1.") {
		r := t.runProcess(ctx, o, p, binary, name, i, -1)
		if ctx.Err() != nil {
			return nil
		}
		if r.outcome == "again" {
			replay := *o
			replay.replay, replay.run = r.token, r.pattern(o.run)
			again := t.runProcess(ctx, &replay, p, binary, name, i, -1)
			if again.failure != nil {
				again.failure.schedule = r.found
				again.schedules += r.schedules
				return again
			}
			r.outcome = "stateful" // it failed because of what earlier schedules left
		}
		if r.outcome == "died" && !r.timedOut { // some frameworks end the process when they are run again
			r.outcome = "stateful"
		}
		if r.failure != nil && o.replay == "" && t.dependsOnEarlier(ctx, o, p, binary, name, i, r.failure) {
			r.outcome = "stateful"
		}
		if r.outcome != "stateful" {
			return r
		}
	}
	began := time.Now()
	var all *result
	for n := 0; n < o.schedules && (n == 0 || time.Since(began) < o.budget) && ctx.Err() == nil; n++ {
		r := t.runProcess(ctx, o, p, binary, name, i, n)
		if r.outcome == "end" && all != nil {
			break
		}
		if all != nil {
			r.schedules += all.schedules
			r.left += all.left
			h := fnv.New64a()
			_, _ = io.WriteString(h, all.trace+r.trace)
			r.trace = strconv.FormatUint(h.Sum64(), 16)
		}
		all = r
		if r.outcome != "pass" || o.replay != "" {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	all.elapsed = time.Since(began)
	return all
}

// dependsOnEarlier reports whether a test may have failed because of what earlier schedules of its process left: the
// same decisions did not lead to the same end, or it failed in the plain order but not in a process that runs only
// that.
func (t *tool) dependsOnEarlier(
	ctx context.Context, o *options, p *pkg, binary, name string, i int, f *failure,
) bool {
	if f.outside > 0 || f.stable && f.switches > 0 {
		return false
	}
	if !f.stable {
		return true
	}
	if racing, _ := readToken(f.token); racing { // not the plain order
		return false
	}
	first := *o
	first.strategy = "stay"
	return t.runProcess(ctx, &first, p, binary, name, i, 0).outcome == "pass"
}

// runProcess runs a process, which explores, or runs only the schedule with the number fresh.
func (t *tool) runProcess(ctx context.Context, o *options, p *pkg, binary, name string, i, fresh int) *result {
	began := time.Now()
	r := &result{test: name, goroot: t.root, path: p.ImportPath}
	record := fmt.Sprint(binary, ".", i, ".record")
	defer func() { _ = os.Remove(record) }()
	// With =, and nothing else, as go test does: a test may look at its arguments.
	args := []string{"-test.paniconexit0", "-test.timeout=" + o.timeout.String(), "-test.run=" + r.pattern(o.run)}
	if strings.Contains(o.skip, "/") {
		args = append(args, "-test.skip="+o.skip)
	}
	if o.short {
		args = append(args, "-test.short=true")
	}
	if o.verbose || o.json {
		args = append(args, "-test.v=true")
	}
	c := exec.CommandContext(ctx, binary, append(args, o.args...)...)
	c.Dir = p.Dir
	settings := fmt.Sprintf("strategy=%s,seed=%d,schedules=%d,budget=%s,bound=%d,racing=%v,replay=%s,leaks=%v,"+
		"atomics=%v,fresh=%d",
		o.strategy, o.seed, o.schedules, o.budget, o.bound, o.racing, o.replay, o.leaks, o.atomics, fresh)
	c.Env = append(t.env[:len(t.env):len(t.env)], "PWD="+p.Dir, "COIR_TEST="+settings, "COIR_RECORD="+record,
		"COIR_KEPT="+o.kept,
		setting(t.env, "GODEBUG", ",", "asynctimerchan=0"),
		setting(t.env, "GORACE", " ", "suppress_equal_stacks=0 suppress_equal_addresses=0"))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second // a process that the test has started may hold the pipe
	err := c.Run()
	text, readErr := os.ReadFile(record)
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		r.broken = readErr.Error()
	}
	if r.read(string(text)); r.failure != nil {
		r.failure.replayed = o.replay != "" || fresh >= 0
	}
	r.elapsed = time.Since(began)
	r.output = out.String()
	if _, shown, ok := strings.Cut(r.output, beginOutput); ok {
		r.shown, _, _ = strings.Cut(shown, endOutput)
	}
	if r.outcome == "" {
		r.died(err)
	}
	return r
}

// setting adds to a variable of the environment. The tests need GODEBUG=asynctimerchan=0, because a module below go
// 1.23 asks for timers that have no virtual clock; and the race detector must report the same race again when a
// schedule is run again.
func setting(env []string, name, separator, add string) string {
	value := add
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok && v != "" {
			value = v + separator + add
		}
	}
	return name + "=" + value
}
