package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/internal/soak"
)

// coir test announces a slow build, and then says how long it took, unless it was interrupted. A fast build prints
// nothing.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		takes    time.Duration
		terminal bool
		complete bool
		want     string
	}{
		{900 * time.Millisecond, false, true, ""},
		{900 * time.Millisecond, true, true, ""},
		{900 * time.Millisecond, true, false, ""},
		{51 * time.Second, false, true, "coir test: building\ncoir test: that took 51 s\n"},
		{51 * time.Second, false, false, "coir test: building\n"},
		{2500 * time.Millisecond, true, true, "\r\x1b[Kcoir test: building: 1 s\r\x1b[Kcoir test: building: 2 s" +
			"\r\x1b[Kcoir test: building: took 2 s\n"},
		{2500 * time.Millisecond, true, false, "\r\x1b[Kcoir test: building: 1 s\r\x1b[Kcoir test: building: 2 s\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var errs bytes.Buffer
			stop := show(&errs, c.terminal, "building", slowTerminal)
			time.Sleep(c.takes)
			stop(c.complete)
			if errs.String() != c.want {
				t.Errorf("after %v it prints %q, want %q", c.takes, &errs, c.want)
			}
		})
	}
}

// The first build with some flags says that it compiles the standard library. Later ones do not.
func TestFirstBuild(t *testing.T) {
	dir := t.TempDir()
	began := func(flags string, ok bool) string {
		var errs bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			tool := &tool{overlay: filepath.Join(dir, "overlay.json"), env: []string{"GOARCH=arm64", "HOME=" + flags}}
			finish := tool.showBuild(&options{build: strings.Fields(flags)}, &pkg{ImportPath: "example.com/m"}, &errs)
			time.Sleep(11 * time.Second)
			finish(true, ok)
		})
		return errs.String()
	}
	const other = "coir test: building the tests of example.com/m\ncoir test: that took 11 s\n"
	const first = "coir test: " + firstBuild + "\ncoir test: that took 11 s\n"
	for i, c := range []struct {
		flags string
		ok    bool
		want  string
	}{
		{"", false, first}, {"", true, first}, {"", true, other}, {"-tags=x", true, other}, {"-race=true", true, first},
		{"-race=true", true, other},
	} {
		if got := began(c.flags, c.ok); got != c.want {
			t.Errorf("build %d, with %q, prints %q, want %q", i, c.flags, got, c.want)
		}
	}
}

// With an empty cache coir test says so on standard error, and only there.
func TestBuildWithAnEmptyCache(t *testing.T) {
	if !soak.On() {
		t.Skip("it builds the standard library, without a cache")
	}
	t.Setenv("GOCACHE", t.TempDir())
	module(t, map[string]string{"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\n"})
	for i := range 2 {
		var out, errs bytes.Buffer
		if code := run([]string{"test", "-json", "-schedules=10"}, &out, &errs); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, &out, &errs)
		}
		actions(t, &out) // it is JSON
		want := regexp.MustCompile("^coir test: " + regexp.QuoteMeta(firstBuild) + "\ncoir test: that took \\d+ s\n$")
		if text := errs.String(); i == 0 && !want.MatchString(text) || i == 1 && text != "" {
			t.Errorf("run %d prints %q", i, text)
		}
	}
}
