package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

// built is the test binary of a package, or the reason why there is none.
type built struct {
	p      *pkg
	binary string
	output string   // the output of the go command
	events []string // the output as events of -json, one line each
	failed string   // the package that could not be built, perhaps not p; empty if unknown
	why    string   // if no binary was built: the text for the last line of the package
}

// buildEvent is a line of go build -json, or of go test -json.
type buildEvent struct {
	ImportPath string `json:",omitempty"`
	Action     string
	Output     string `json:",omitempty"`
}

// noIntrinsics makes the compiler call the functions of package sync/atomic, instead of using single instructions.
const noIntrinsics = "-d=ssa/intrinsics/off=1"

// build builds the tests of a package. If there are none, it builds the package itself, as go test does, and binary is
// empty.
func (t *tool) build(ctx context.Context, o *options, p *pkg, binary string, errs io.Writer) *built {
	args := append([]string{"test", "-c", "-json", "-vet=off", "-overlay=" + t.overlay, "-o", binary}, o.build...)
	if o.atomicPoints() {
		// The standard library's own atomics are not points. But a method of sync/atomic runs as compiled in its own
		// package if it is not inlined, such as in a closure of an inlined function.
		args = append(args, "-gcflags=all="+noIntrinsics, "-gcflags=std=", "-gcflags=sync/atomic="+noIntrinsics)
	}
	c := exec.CommandContext(ctx, t.goCommand, append(args, p.args()...)...)
	c.Env = append(t.env[:len(t.env):len(t.env)], "GODEBUG="+jsonBuild(t.env))
	if !slices.Contains(o.build, "-work=true") {
		c.Env = append(c.Env, "GOTMPDIR="+t.temp)
	}
	var out, text bytes.Buffer
	c.Stdout, c.Stderr = &out, &text
	finish := t.showBuild(o, p, errs)
	err := runCommand(c)
	finish(ctx.Err() == nil && ended(err), err == nil)
	b := &built{p: p, binary: binary}
	if err != nil {
		b.why = "build failed"
	}
	for line := range strings.Lines(out.String()) {
		b.read(line, o.json && err == nil, &text)
	}
	b.output = text.String()
	if err != nil && b.output == "" {
		b.output = err.Error()
	}
	if err != nil && (strings.Contains(b.output, t.cache) || libraryBroken(b.output)) {
		const bug = "The edited standard library does not build. This is a bug in coir test: report it with this " +
			"output and the output of `go version`.\n"
		b.output = bug + b.output
		line, _ := json.Marshal(buildEvent{ImportPath: b.failed, Action: "build-output", Output: bug})
		b.events = slices.Insert(b.events, 0, string(line)+"\n")
	}
	if _, err := os.Stat(binary); err != nil {
		b.binary = ""
	}
	if err == nil {
		fmt.Fprint(errs, b.output)
	}
	return b
}

// read reads a line that go test -c -json printed. It keeps the events of the build, and their text unless quiet is
// set. It ignores the events of the package, because coir test writes its own.
func (b *built) read(line string, quiet bool, text *bytes.Buffer) {
	var e buildEvent
	if json.Unmarshal([]byte(line), &e) != nil {
		text.WriteString(line)
		return
	}
	switch e.Action {
	case "build-output":
		if !quiet {
			text.WriteString(e.Output)
		}
		b.events = append(b.events, line)
	case "build-fail":
		b.failed = e.ImportPath
		b.events = append(b.events, line)
	case "output":
		if strings.Contains(e.Output, "[setup failed]") {
			b.why = "setup failed"
		}
	}
}

// jsonBuild returns the value of GODEBUG without the setting that makes go test -json print builds as text.
func jsonBuild(env []string) string {
	return strings.TrimPrefix(setting(env, "GODEBUG", ",", "gotestjsonbuildtext=0"), "GODEBUG=")
}

// libraryBroken reports whether the go command could not build an edited package of the standard library.
func libraryBroken(out string) bool {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok && overlay.Edits(name) {
			return true
		}
	}
	return false
}
