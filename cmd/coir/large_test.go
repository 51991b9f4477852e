package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the reports of testdata/large anew: go test -run TestLargeReports -update")

// The reports of large failures, word for word: hundreds of steps, more than ten goroutines, tickers and selects. Someone
// who does not know the program must find the cause on the first screen, so look at them when they change.
func TestLargeReports(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-schedules=1000", "./testdata/large")
	compare(t, got, expected(t, "testdata/large"))
	for _, test := range []string{"TestPool", "TestCrawler"} {
		o := got[test].told
		if o == nil {
			continue
		}
		if o.Steps < 300 {
			t.Errorf("%s: %d steps", test, o.Steps)
		}
		path := filepath.Join("testdata", "large", test+".txt")
		text := o.Headline + "\n" + o.Report
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != text {
			t.Errorf("%s has another report; write it anew with -update if this one is right:\n%s", path, text)
		}
	}
}
