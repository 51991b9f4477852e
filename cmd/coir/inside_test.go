package main

import (
	"regexp"
	"strings"
	"testing"
)

// A report leaves out what package context does inside. It keeps the steps that decide, and the cancels that others can
// notice.
func TestInsideOfLibraries(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "./testdata/inside")
	for test, want := range map[string][]string{
		"TestContext": {
			"the test fails: inside_test.go:48: counted to 1, want 2, in schedule ",
			"TestContext calls t.Errorf, at inside_test.go:48 (in inside.equal, at inside_test.go:35)\n",
			" locked c.mu first, at inside_test.go:18; in the schedule that passes, ", " | t.Errorf | | | :48\n",
		},
		"TestCause": {
			"the test fails: inside_test.go:64: context deadline exceeded, in schedule ",
			" cancelled a context first, at inside_test.go:59; ",
		},
		"TestFirst": {
			"diverges here: ", "therefore inside_test.go:72 sent to c, at inside_test.go:72, before inside_test.go:71 sent to c, " +
				"at inside_test.go:71; in the schedule that passes, it is the other way round\n",
		},
	} {
		o := got[test]
		if o.Failure == nil {
			t.Errorf("%s has not failed:\n%s", test, o.Output)
			continue
		}
		rest := regexp.MustCompile(` +`).ReplaceAllString(o.Output, " ")
		if strings.Contains(rest, "mutex#") || strings.Contains(rest, "in context") {
			t.Errorf("%s: the report shows what package context does inside:\n%s", test, o.Output)
		}
		for _, line := range want {
			_, after, ok := strings.Cut(rest, line)
			if !ok {
				t.Errorf("%s: there is no %q in\n%s", test, line, o.Output)
				break
			}
			rest = after
		}
	}
}
