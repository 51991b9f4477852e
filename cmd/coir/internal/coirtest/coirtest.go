// Package coirtest helps to test coir test. It runs the command, and compares the outcomes with those expected.
package coirtest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/internal/soak"
)

// Command runs coir with arguments, and returns the exit code.
type Command func(args []string, out, errs io.Writer) int

// Explore runs coir test, and returns the last event of each test, by name. Its Output is that of all events of the
// test.
func (run Command) Explore(t *testing.T, args ...string) map[string]events.Event {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append([]string{"test", "-json"}, args...), &out, &errs)
	if code == 2 {
		t.Fatalf("coir test %s: %s", strings.Join(args, " "), &errs)
	}
	all := map[string]events.Event{}
	failed := false
	for d := json.NewDecoder(&out); d.More(); {
		var e events.Event
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if strings.Count(e.Output, "\n") > 1 {
			t.Errorf("an event has several lines: %q", e.Output)
		}
		was := all[e.Test]
		if e.Action == "output" {
			was.Output += e.Output
			e = was
		}
		e.Output = was.Output
		failed = failed || e.Action == "fail"
		all[e.Test] = e
	}
	if failed != (code == 1) {
		t.Errorf("the exit code is %d", code)
	}
	return all
}

// Expected reads the expected kind of each test from the sources of a package, where it is in a comment above the test,
// such as `// Expect: deadlock`. Tests without such a comment are expected to pass.
func Expected(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	want := map[string]string{}
	expect := regexp.MustCompile(`(?m)^// Expect: (.+)$|^func (Test\w+)\(\w* ?\*testing\.T\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := "pass"
		for _, m := range expect.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				kind = m[1]
				continue
			}
			want[m[2]] = kind
			kind = "pass"
		}
	}
	return want
}

// Compare compares the outcomes with those expected.
func Compare(t *testing.T, got map[string]events.Event, want map[string]string) {
	t.Helper()
	for test, kind := range want {
		o, ok := got[test]
		switch {
		case !ok:
			t.Errorf("%s was not run", test)
		case kind == "pass" || kind == "skip":
			if o.Action != kind {
				t.Errorf("%s: %s, want %s\n%s", test, o.Action, kind, o.Output)
			}
		case strings.Contains(kind, " at "):
			if o.Action != "skip" || !strings.Contains(o.Output, "not controlled: "+kind) {
				t.Errorf("%s: %s, and %q as not controlled is wanted\n%s", test, o.Action, kind, o.Output)
			}
		case kind == "died":
			if o.Action != "fail" || o.Failure != nil {
				t.Errorf("%s: %s, and a process that died is wanted\n%s", test, o.Action, o.Output)
			}
		case o.Action != "fail" || o.Failure == nil || o.Failure.Kind != kind:
			t.Errorf("%s: %s, want %s\n%s", test, o.Action, kind, o.Output)
		}
	}
}

// Replay runs failures again from their tokens, each in a new process, and checks that the reports are the same. It
// replays all failures under make soak, and otherwise only some.
func (run Command) Replay(t *testing.T, got map[string]events.Event, args ...string) {
	t.Helper()
	most := 5
	for test, o := range got {
		if o.Failure == nil || most == 0 && !soak.On() {
			continue
		}
		most--
		_, only, _ := strings.Cut(o.Failure.Replay, "-run '")
		only, _, _ = strings.Cut(only, "'")
		again := run.Explore(t, append(args, "-run="+only, "-replay="+o.Failure.Token)...)[test]
		if again.Failure == nil || again.Failure.Kind != o.Failure.Kind || again.Failure.Token != o.Failure.Token ||
			again.Failure.Report != o.Failure.Report {
			t.Errorf("%s: replayed, it is\n%s\nand was\n%s", test, again.Output, o.Output)
		}
	}
}

// InMemory reports whether coir test supports sockets in memory on this platform.
func InMemory() bool {
	return runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")
}
