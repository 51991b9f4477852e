package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

// tool is the user's Go.
type tool struct {
	goCommand string
	root      string // GOROOT
	version   string
	cache     string // where coir keeps its files
	temp      string // a directory for temporary files, also those of the tests
	tempBase  string // the directory in which temp is made; empty: the default
	overlay   string
	env       []string
	base      time.Time // the virtual time at which the schedules of tests begin
}

// baseTime returns the virtual time at which the schedules of tests begin if they are run now. It is later than the
// times of files, earlier than the end of certificates, and not on an hour, month or year boundary, where programs may
// have work to do. It changes only once a month, because a program may do something else on another day.
func baseTime(now time.Time) time.Time {
	y, m, _ := now.UTC().Date()
	return time.Date(y, m+1, 15, 10, 20, 30, 0, time.UTC)
}

// toolchain asks the go command for its version and directories. The go command does not apply overlays to files in the
// module cache, so toolchain first copies a toolchain that was downloaded there.
func toolchain(ctx context.Context, errs io.Writer) (*tool, error) {
	t := &tool{goCommand: "go", env: os.Environ(), base: baseTime(time.Now())}
	text, err := t.command(ctx, "", "go", "env", "-json", "GOROOT", "GOVERSION", "GOMODCACHE", "GOTMPDIR")
	if err != nil {
		return nil, fmt.Errorf("go env does not work: %v\n%s", err, text)
	}
	var env struct{ GOROOT, GOVERSION, GOMODCACHE, GOTMPDIR string }
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		return nil, err
	}
	t.root, t.version, t.tempBase = env.GOROOT, env.GOVERSION, env.GOTMPDIR
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

// command runs a program and returns its output.
func (t *tool) command(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, t.env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := runCommand(c); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// pkg is a package, as printed by go list. The go command reports errors in a package when it builds it.
type pkg struct {
	ImportPath, Name, Dir string
	Module                *struct{ Path, Dir string }

	Imports, TestImports, XTestImports []string

	files []string // the arguments that name it, if they are files
}

// usesAtomics reports whether the package or its tests import sync/atomic.
func (p *pkg) usesAtomics() bool {
	return slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), "sync/atomic")
}

// args returns the arguments that name the package for the go command.
func (p *pkg) args() []string {
	if p.files != nil {
		return p.files
	}
	return []string{p.ImportPath}
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// binary returns the name that go test gives to the package's test binary. Some tests look at it.
func (p *pkg) binary() string {
	if p.files != nil {
		return p.Name + ".test"
	}
	dir, name := path.Split(p.ImportPath)
	if dir != "" && majorVersion.MatchString(name) {
		name = path.Base(dir)
	}
	return name + ".test"
}

func (t *tool) list(ctx context.Context, o *options) ([]*pkg, error) {
	args := append([]string{"list", "-e", "-json=ImportPath,Name,Dir,Module,Imports,TestImports,XTestImports"}, o.listFlags()...)
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
		if p.ImportPath == "command-line-arguments" || p.ImportPath == "" {
			p.files = o.packages
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(o.packages, " "))
	}
	return packages, nil
}

// listFlags returns the build flags that decide which files a package has.
func (o *options) listFlags() (flags []string) {
	for _, f := range o.build {
		name, _, _ := strings.Cut(f, "=")
		switch name {
		case "-tags", "-mod", "-modfile", "-race", "-msan", "-asan":
			flags = append(flags, f)
		}
	}
	return flags
}

// The lines around the output of the reported schedule.
const beginOutput, endOutput = "\x16coir begin\n", "\x16coir end\n"

// runTest runs one test in a process. If the test depends on earlier runs, each schedule gets a process of its own. If
// ctx ends first, runTest returns nil.
func (t *tool) runTest(ctx context.Context, o *options, p *pkg, binary, name string, i int) *result {
	if isFuzz(name) {
		if r := t.runSeeds(ctx, o, p, binary, name); ctx.Err() == nil {
			return r
		}
		return nil
	}
	mine := *o
	o = &mine
	o.saved, _ = saved(p.Dir, name)
	var all *result  // the result of earlier processes
	var once *record // a failure that did not happen again
	if !o.fresh && !strings.HasPrefix(o.replay, "f1.") {
		r := t.runOn(ctx, o, p, binary, name, i)
		if ctx.Err() != nil {
			return nil
		}
		if r.outcome == coir.VerdictAgain {
			replay := *o
			replay.replay, replay.run = r.token, r.pattern(o.run)
			again := t.runProcess(ctx, &replay, p, binary, name, i, -1)
			if again.failure != nil {
				again.failure.schedule = r.found
				again.schedules += r.schedules
				return again
			}
			r.outcome = coir.VerdictStateful // it failed because of something that earlier schedules left behind
		}
		if r.outcome == coir.VerdictDied && !r.timedOut { // some frameworks end the process on the second run
			r.outcome = coir.VerdictStateful
		}
		if r.failure != nil && o.replay == "" && t.dependsOnEarlier(ctx, o, p, binary, name, i, r.failure) {
			r.outcome = coir.VerdictStateful
		}
		if r.outcome == coir.VerdictSimulates {
			return t.runPlainly(ctx, o, p, binary, name)
		}
		if r.outcome != coir.VerdictStateful {
			return r
		}
		if r.failure != nil {
			once = &r.record
		}
		if r.uncontrolled > 0 {
			all = r
		}
	}
	if o.replay == "" {
		if r := t.failsAgain(ctx, o, p, binary, name, i); r != nil {
			return r
		}
	}
	began := time.Now()
	first := all.from()
	timeUp := false
	for n := first; n < o.schedules && ctx.Err() == nil; n++ {
		if timeUp = n > first && time.Since(began)-all.waited() >= o.budget; timeUp {
			break
		}
		o.patience = all.patience()
		r := t.runProcess(ctx, o, p, binary, name, i, n)
		if r.outcome == coir.VerdictEnd && all != nil {
			break
		}
		r.add(all)
		all = r
		if r.outcome != coir.VerdictPass && !r.goesOn(o) || o.replay != "" {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if all.outcome == coir.VerdictSimulates {
		return t.runPlainly(ctx, o, p, binary, name)
	}
	all.elapsed = time.Since(began)
	all.stopped = o.replay == "" && o.inOrder() // a process does not know the schedules of other processes
	all.once, all.timeUp = once, timeUp
	return all.settled()
}

// runPlainly runs a test as go test does, because the test itself explores schedules with package sim.
func (t *tool) runPlainly(ctx context.Context, o *options, p *pkg, binary, name string) *result {
	r := &result{record: record{tested: t.tested(p, binary, name)}, outcome: coir.VerdictSimulates}
	err := t.runOnce(ctx, o, p, binary, r)
	if ctx.Err() != nil {
		return nil
	}
	r.failed = err != nil
	return r
}

// runOnce runs a test in a process as go test does.
func (t *tool) runOnce(ctx context.Context, o *options, p *pkg, binary string, r *result) error {
	began := time.Now()
	c := exec.CommandContext(ctx, binary, o.testArgs(r)...)
	c.Dir = p.Dir
	c.Env = append(t.env[:len(t.env):len(t.env)], "PWD="+p.Dir, "GOTMPDIR="+t.temp)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := runCommand(c)
	r.elapsed, r.output = time.Since(began), out.String()
	return err
}

// dependsOnEarlier reports whether a test may have failed because of earlier schedules of its process. Either the same
// decisions did not lead to the same end, or the test failed in the plain order, but does not fail in the same way in a
// process that runs only the plain order.
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
	r := t.runProcess(ctx, &first, p, binary, name, i, 0)
	return r.failure == nil || r.failure.kind != f.kind
}

// runProcess runs a process that explores a test. If fresh is not negative, the process runs only the schedule with
// that number. If a schedule needs the kernel's network, runProcess runs another process on that network, and sets the
// options for later processes.
func (t *tool) runProcess(ctx context.Context, o *options, p *pkg, binary, name string, i, fresh int) *result {
	began := time.Now()
	r := &result{record: record{tested: t.tested(p, binary, name)}}
	record := fmt.Sprint(binary, ".", i, ".record")
	// The process appends to its record. Another process of the test may have used the same file.
	if err := os.Remove(record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.died(err)
		return r
	}
	defer func() { _ = os.Remove(record) }()
	c := exec.CommandContext(ctx, binary, o.testArgs(r)...)
	c.Dir = p.Dir
	c.Env = t.exploring(o, p, record, fresh)
	if !o.inOrder() { // the other strategies depend on their earlier schedules
		c.Env = append(c.Env, "COIR_FAILED="+strings.Join(o.saved, " "))
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := runCommand(c)
	text, readErr := os.ReadFile(record)
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		r.broken = readErr.Error()
	}
	if r.read(string(text)); r.failure != nil {
		r.failure.replayed = o.replay != "" || fresh >= 0
	}
	r.elapsed = time.Since(began)
	r.output = out.String()
	if at := strings.LastIndex(r.output, beginOutput); at >= 0 {
		r.shown, _, _ = strings.Cut(r.output[at+len(beginOutput):], endOutput)
	}
	switch {
	case r.outcome == "":
		r.died(err)
	case r.outcome == coir.VerdictSlow:
		slow := r.record
		r.outcome, r.failure, r.slow = coir.VerdictPass, nil, &slow
	case r.outcome == coir.VerdictKernel && o.network != "kernel" && ctx.Err() == nil:
		o.network, o.onKernel = "kernel", r.onKernel
		return t.runProcess(ctx, o, p, binary, name, i, fresh)
	}
	r.onKernel = o.onKernel
	return r
}

// tested returns what is known about a test before it runs.
func (t *tool) tested(p *pkg, binary, name string) *tested {
	of := &tested{test: name, goroot: t.root, path: p.ImportPath}
	if st, err := os.Stat(binary); err == nil {
		of.built = st.ModTime()
	}
	if p.Module != nil {
		of.modulePath, of.moduleDir = p.Module.Path, p.Module.Dir
	}
	return of
}

// exploring returns the environment of a process that explores a test, or, if fresh is not negative, runs only the
// schedule with that number.
func (t *tool) exploring(o *options, p *pkg, record string, fresh int) []string {
	faults, _ := faultBits(o.faults) // parse has checked them
	settings := fmt.Sprintf("strategy=%s,seed=%d,schedules=%d,budget=%s,bound=%d,racing=%v,replay=%s,network=%s,leaks=%v,"+
		"atomics=%v,fresh=%d,from=%d,base=%d,patience=%d,faults=%d,debug=%v",
		o.strategy, o.seed, o.schedules, o.budget, o.bound, o.racing, o.replay, o.network, o.leaks, o.atomics, fresh,
		o.from, t.base.Unix(), cmp.Or(o.patience, patience), faults, o.debug)
	return append(t.env[:len(t.env):len(t.env)], "PWD="+p.Dir, "COIR_TEST="+settings, "COIR_RECORD="+record,
		"COIR_KEPT="+o.kept, "GOTMPDIR="+t.temp,
		setting(t.env, "GODEBUG", ",", "asynctimerchan=0"),
		setting(t.env, "GORACE", " ", "suppress_equal_stacks=0 suppress_equal_addresses=0 atexit_sleep_ms=0"))
}

// testArgs returns the arguments of a process for one test. They have the form -flag=value that go test uses, because a
// test may check its arguments.
func (o *options) testArgs(r *result) []string {
	args := []string{"-test.paniconexit0", "-test.timeout=" + o.timeout.String(), "-test.run=" + r.pattern(o.run)}
	if o.skip != "" {
		args = append(args, "-test.skip="+o.skip)
	}
	if o.short {
		args = append(args, "-test.short=true")
	}
	if o.verbose {
		args = append(args, "-test.v=true")
	}
	if o.fullpath {
		args = append(args, "-test.fullpath=true")
	}
	return append(args, o.args...)
}

// setting returns a variable of the environment with an addition to its value. The tests need GODEBUG=asynctimerchan=0,
// because a module for a release before Go 1.23 has timers without a virtual clock. With GORACE, the race detector
// reports the same race again when a schedule is run again. And it does not sleep for a second at the end of a process,
// which would use up the budget of a test that runs each schedule in a process of its own.
func setting(env []string, name, separator, add string) string {
	value := add
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok && v != "" {
			value = v + separator + add
		}
	}
	return name + "=" + value
}
