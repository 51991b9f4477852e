package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// A report names the panic of a handler, which net/http recovers, and which fails a test that ignores it. If the
// handler panics in the plain order too, there is a note, whose command shows the panic. A panic with ErrAbortHandler,
// or one that the handler recovers itself, is not mentioned.
func TestHandlersThatPanic(t *testing.T) {
	onMemory(t)
	const dir = "./testdata/handlers"
	got := explored(t, "-schedules=500", dir)
	coirtest.Compare(t, got, coirtest.Expected(t, dir))
	const what = "send on closed channel, at handlers_test.go:16"
	if f := got["TestPay"].Failure; f != nil {
		lines := regexp.MustCompile(`\b(server|transport)\.go:\d+`) // they differ between releases of Go
		golden(t, "testdata/handlers/TestPay.txt", lines.ReplaceAllString(f.Headline+"\n"+f.Report, "$1.go:N"))
		if !strings.HasPrefix(f.Report, "handler GET /pay panics: "+what+"; net/http recovered it\n") {
			t.Errorf("the report begins without the panic:\n%s", f.Report)
		}
		again := explored(t, "-run=^TestPay$", "-replay="+f.Token, dir)["TestPay"]
		if again.Failure == nil || again.Failure.Report != f.Report {
			t.Errorf("replayed, it is\n%s\nand was\n%s", again.Output, f.Report)
		}
	}
	for _, test := range []string{"TestIgnores", "TestHTTP2"} {
		f := got[test].Failure
		if f == nil || f.Kind != "recovered" || !strings.Contains(f.Report, what) || f.Switches > 5 {
			t.Errorf("%s:\n%s", test, got[test].Output)
			continue
		}
		if again := explored(t, "-run=^"+test+"$", "-replay="+f.Token, dir)[test].Failure; again == nil || again.Report != f.Report {
			t.Errorf("%s: replayed, it is not\n%s", test, f.Report)
		}
	}
	note := got["TestAlways"].Note
	if !strings.HasPrefix(note, "a handler panicked in ") || !strings.Contains(note, "and net/http recovered it: "+what) ||
		!strings.Contains(got[""].Output, "note: TestAlways: "+note+"\n") {
		t.Errorf("TestAlways has the note %q\n%s", note, got[""].Output)
	}
	_, token, _ := strings.Cut(strings.TrimSuffix(note, ")"), " -replay ")
	if again := explored(t, "-run=^TestAlways$", "-replay="+token, dir)["TestAlways"]; again.Failure == nil ||
		again.Failure.Kind != "recovered" || !strings.Contains(again.Failure.Report, what) {
		t.Errorf("TestAlways: replayed, it is\n%s", again.Output)
	}
	for _, test := range []string{"TestAborts", "TestRecovers"} {
		if note := got[test].Note; note != "" {
			t.Errorf("%s has the note %q", test, note)
		}
	}
	if n := strings.Count(got[""].Output, "note: "); n != 1 {
		t.Errorf("there are %d notes:\n%s", n, got[""].Output)
	}
}
