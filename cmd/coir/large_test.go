package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
	"github.com/coir-go/coir/cmd/coir/internal/events"
)

var update = flag.Bool("update", false, "write the reports of large failures, and the strategies in the guide: go test -run TestLargeReports -update")

// The reports of large failures, word for word: hundreds of steps, more than ten goroutines, tickers and selects.
// Someone who does not know the program must find the cause on the first screen, so look at them when they change. The
// bugs of verify/large are in modules from outside.
func TestLargeReports(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	for _, dir := range []string{"testdata/large", "../../verify/large"} {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Chdir(dir)
			got := explored(t, "-schedules=1000", "-tags=corpus", ".")
			want := coirtest.Expected(t, ".")
			coirtest.Compare(t, got, want)
			for test, kind := range want {
				if o := got[test].Failure; o != nil && kind != "pass" {
					sameReport(t, test, o)
				}
			}
		})
	}
}

// sameReport compares the report of a test with its golden file.
func sameReport(t *testing.T, test string, o *events.Failure) {
	t.Helper()
	if o.Steps < 200 {
		t.Errorf("%s: %d steps", test, o.Steps)
	}
	for line := range strings.Lines(o.Report) {
		line = "    " + strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); strings.Contains(line, " | ") && n > reportWidth {
			t.Errorf("%s: a line has %d letters:\n%s", test, n, line)
		}
	}
	golden(t, test+".txt", o.Headline+"\n"+o.Report)
}

// golden compares a report with a file. With -update, it writes the file.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s has another report; write it anew with -update if this one is right:\n%s", path, text)
	}
}
