package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The tokens that the guides show replay the failures that they are shown with.
func TestTheTokensOfTheDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	shown := regexp.MustCompile(`replay: coir test (bank|three) -run '(\S+)' -replay (c1\.[\w-]+)`)
	for _, file := range []string{"../../docs/guide/coir-test.md", "../../docs/guide/reports.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := shown.FindAllStringSubmatch(string(text), -1)
		if found == nil {
			t.Errorf("%s shows no token", file)
		}
		for _, m := range found {
			var out, errs bytes.Buffer
			code := run([]string{"test", "-run", m[2], "-replay", m[3], "./testdata/" + m[1]}, &out, &errs)
			if code != 1 || !strings.Contains(out.String(), "-replay "+m[3]+"\n") {
				t.Errorf("%s shows the token %s of %s in %s; replayed, exit code %d:\n%s%s", file, m[3], m[2], m[1], code, &out, &errs)
			}
		}
	}
}

// README shows lines of the report about its service. Numbers in them differ from run to run, because the network is not
// under control.
func TestTheReportInREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "    $ coir test .\n")
	shown, _, _ = strings.Cut(shown, "\n\n")
	if !found {
		t.Fatal("README shows no report")
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "./testdata/pay"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	plain := func(text string) string {
		text = regexp.MustCompile(`(server\.go:|#|schedule |seed |step |\()\d+(\.\d+s)?`).ReplaceAllString(text, "$1")
		return regexp.MustCompile(`shrunk to .*`).ReplaceAllString(text, "")
	}
	report := plain(out.String())
	for line := range strings.Lines(shown) {
		if line = strings.TrimSpace(plain(line)); line != "..." && !strings.Contains(report, line) {
			t.Errorf("README has %q, which is not in the report:\n%s", line, report)
		}
	}
}
