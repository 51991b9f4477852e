package main

import (
	"bytes"
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
	shrinks   *shrinks  // nil: nothing is shown
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
	t := &tool{goCommand: "go", env: os.Environ(), base: baseTime(time.Now()), shrinks: newShrinks(errs)}
	stop := show(errs, isTerminal(errs), "waiting for go env, which may download a version of Go", slowOther)
	text, err := t.command(ctx, "", "go", "env", "-json", "GOROOT", "GOVERSION", "GOMODCACHE", "GOTMPDIR")
	stop(ctx.Err() == nil)
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

func (t *tool) list(ctx context.Context, o *options, errs io.Writer) ([]*pkg, error) {
	args := append([]string{"list", "-e", "-json=ImportPath,Name,Dir,Module,Imports,TestImports,XTestImports"}, o.listFlags()...)
	stop := show(errs, isTerminal(errs), "waiting for go list, which may download modules", slowOther)
	text, err := t.command(ctx, "", t.goCommand, append(args, o.packages...)...)
	stop(ctx.Err() == nil)
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
