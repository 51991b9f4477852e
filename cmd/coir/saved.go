package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/events"
)

// The directory testdata/coir keeps the schedules of failures: below the name of the test, a file for each schedule,
// with its token. go test keeps the inputs of fuzz tests in the same way. coir test runs these schedules first. If the
// program has changed, a token may no longer fit, so coir test also runs schedules that begin in the same way. A saved
// schedule that still fails is reported as it is: it was shrunk before it was saved.

// saved returns the tokens of earlier failures of a test, and the files that contain them.
func saved(dir, test string) (tokens, files []string) {
	for _, name := range entries(filepath.Join(dir, "testdata", "coir", test), "", "") {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if _, ok := readToken(line); ok {
				tokens, files = append(tokens, line), append(files, name)
			}
		}
	}
	return tokens, files
}

// failsAgain runs the schedules of earlier failures of a test, each in a process of its own. It returns the result of
// the first that fails, or nil.
func (x *runner) failsAgain(ctx context.Context) *result {
	for _, token := range x.job.saved {
		if r := x.run(ctx, x.job.savedAgain(token)); ctx.Err() == nil && r.failure != nil {
			r.saved = true
			return r
		}
	}
	return nil
}

// keepFailure writes the files of -save and -emit. If a file exists, it only prints that.
func (w *writer) keepFailure(p *pkg, r *result, f *events.Failure) {
	if f.Token == "" {
		return
	}
	tokens, files := saved(p.Dir, r.test)
	before := slices.Index(tokens, f.Token)
	if before >= 0 {
		w.line(p, r.test, "    saved before: %s\n", relative(p.Dir, files[before]))
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.Token))
	id := fmt.Sprintf("%s-%08x", f.Kind, h.Sum32())
	if w.o.save && before < 0 {
		name := filepath.Join(p.Dir, "testdata", "coir", r.test, id)
		text := fmt.Sprintf("# %s\n# %s\n%s\n", f.Headline, f.Replay, f.Token)
		w.wrote(p, r, "saved", name, text, nil)
	}
	if w.o.emit {
		name := filepath.Join(p.Dir, "coir_"+r.test+"_"+strings.ReplaceAll(id, "-", "_")+"_test.go")
		if _, err := os.Stat(name); err == nil {
			w.line(p, r.test, "    emitted before: %s\n", relative(p.Dir, name))
			return
		}
		text, err := emitted(p, r, f, id)
		w.wrote(p, r, "emitted", name, text, err)
	}
}

// wrote writes a file and prints its name. If err is not nil, wrote only prints err.
func (w *writer) wrote(p *pkg, r *result, done, name, text string, err error) {
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o777)
	}
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o666)
	}
	if err != nil {
		w.line(p, r.test, "    not %s: %v\n", done, err)
		return
	}
	w.line(p, r.test, "    %s: %s\n", done, relative(p.Dir, name))
}

// relative returns a path relative to a directory, if it is below that.
func relative(dir, name string) string {
	if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return name
}

// emitted returns the source of a test that runs the failed test in the order in which it failed.
func emitted(p *pkg, r *result, f *events.Failure, id string) (string, error) {
	if r.part != "" {
		return "", errors.New("only a part of the test was explored: call explore.Replay with the token instead of explore.Test")
	}
	name, err := packageOf(p.Dir, r.test)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`package %s

import (
	"testing"

	"github.com/coir-go/coir/explore"
)

// %s
func %s_%s(t *testing.T) {
	explore.Replay(t, %q, %s)
}
`, name, f.Headline, r.test, strings.ReplaceAll(id, "-", "_"), f.Token, r.test), nil
}

// packageOf returns the name of the package that declares a test. A directory may have tests in a package of their own.
func packageOf(dir, test string) (string, error) {
	for _, name := range entries(dir, "", "_test.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == test {
				return file.Name.Name, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", test, fs.ErrNotExist)
}
