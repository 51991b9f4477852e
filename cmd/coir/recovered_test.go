package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// A report names the panic of a handler, which net/http recovers. A test that passes has a note, whose command shows
// how. A panic with ErrAbortHandler, or one that the handler recovers itself, is not mentioned.
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
		note := got[test].Note
		if !strings.HasPrefix(note, "a handler panicked in ") || !strings.Contains(note, "and net/http recovered it: "+what) ||
			!strings.Contains(got[""].Output, "note: "+test+": "+note+"\n") {
			t.Errorf("%s has the note %q\n%s", test, note, got[""].Output)
			continue
		}
		_, token, _ := strings.Cut(strings.TrimSuffix(note, ")"), " -replay ")
		again := explored(t, "-run=^"+test+"$", "-replay="+token, dir)[test]
		if again.Failure == nil || again.Failure.Kind != "recovered" || !strings.Contains(again.Failure.Report, what) ||
			again.Failure.Switches > 5 {
			t.Errorf("%s: replayed, it is\n%s", test, again.Output)
		}
	}
	for _, test := range []string{"TestAborts", "TestRecovers"} {
		if note := got[test].Note; note != "" {
			t.Errorf("%s has the note %q", test, note)
		}
	}
	if n := strings.Count(got[""].Output, "note: "); n != 2 {
		t.Errorf("there are %d notes:\n%s", n, got[""].Output)
	}
}
