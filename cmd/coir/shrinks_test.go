package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// aFound is what a process writes that has found a failure in its schedule 17, with 152 switches.
const aFound = "failure\t\"panic\"\t\"oh no\"\t17\t3\t152\t\"c1.AA\"\ttrue\t0\t0\t0\t0\n"

// If shrinking a failure takes long, a message says what has failed. A terminal also shows how far shrinking has come,
// until it ends or something else is printed.
func TestShrinkingIsShown(t *testing.T) {
	const message = "coir test: TestPay: panic: oh no, in schedule 97 (seed 3), with 152 switches; shrinking it\n"
	for _, c := range []struct {
		name     string
		found    string
		takes    time.Duration // from when the failure was found
		terminal bool
		want     string
	}{
		{"fast", aFound, 900 * time.Millisecond, true, ""},
		{"no failure", "", 5 * time.Second, true, ""},
		{"half a file", "failure\t\"panic\"", 5 * time.Second, false, ""},
		{"not a terminal", aFound, 5 * time.Second, false, message},
		{"a terminal", aFound, 1600 * time.Millisecond, true, message + "\r\x1b[Kshrinking TestPay: 152 switches, 1 s" +
			"\r\x1b[Kshrinking TestPay: 8 switches, 2 s\r\x1b[K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "record")
			synctest.Test(t, func(t *testing.T) {
				var errs bytes.Buffer
				s := &shrinks{errs: &errs, terminal: c.terminal}
				stop := s.follow(name, &tested{test: "TestPay"}, "/p", 80)
				if c.found != "" {
					writeAt(t, name+foundFile, c.found)
				}
				time.Sleep(c.takes / 8 * 7)
				writeAt(t, name+shrunkFile, "8\n")
				time.Sleep(c.takes / 8)
				stop()
				if got := errs.String(); got != c.want {
					t.Errorf("it prints %q, want %q", got, c.want)
				}
			})
			if err := removeRecord(name); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(name + "*"); left != nil {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// writeAt writes a file, with the present time of the bubble.
func writeAt(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// A terminal shows the failure that has been shrunk for the longest time, and how many others there are. The line fits.
func TestSeveralAreShrunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		s := &shrinks{errs: &errs, terminal: true, width: 40}
		last := func() string {
			text := errs.String()
			errs.Reset()
			return text[strings.LastIndex(text, "\x1b[K")+len("\x1b[K"):]
		}
		dir := t.TempDir()
		var all []*shrink
		for i := range 3 {
			name := filepath.Join(dir, fmt.Sprint(i))
			writeAt(t, name, aFound)
			all = append(all, s.begin(name, &tested{test: fmt.Sprint("TestA", i)}, "/p", 0, time.Now()))
		}
		if got := last(); got != "shrinking TestA0: 152 switches, 0 s; an" {
			t.Errorf("three are shown as %q", got)
		}
		s.width = 80
		s.end(all[0])
		if got := last(); got != "shrinking TestA1: 152 switches, 0 s; and 1 other" {
			t.Errorf("two are shown as %q", got)
		}
		s.clear()
		if got := last(); got != "" || s.line != "" {
			t.Errorf("after clear, the line is %q", got)
		}
		s.end(all[1])
		s.end(all[2])
		if got := last(); got != "" || len(s.all) > 0 {
			t.Errorf("at the end, the line is %q", got)
		}
	})
}

// The time to shrink a failure is real time, unless only the number of schedules was given.
func TestTimeToShrink(t *testing.T) {
	for flags, want := range map[string]string{
		"":                          "10s false",
		"-budget=1m":                "10s false",
		"-schedules=5":              "20s true",
		"-schedules=5 -budget=1m":   "10s false",
		"-schedules=5 -shrink=1m":   "1m0s false",
		"-shrink=0":                 "0s false",
		"-schedules=5 -shrink=0":    "0s false",
		"-schedules=5 -for=1h":      "10s false",
		"-shrink=1m -strategy=dpor": "1m0s false",
	} {
		o, err := parse(strings.Fields(flags))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintln(o.shrinking()); got != want+"\n" {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
	}
	if _, err := parse([]string{"-shrink=-1s"}); err == nil {
		t.Error("-shrink=-1s is accepted")
	}
	if _, err := parse([]string{"-shrink", "5"}); err == nil ||
		err.Error() != "-shrink 5 has no unit: write -shrink 5s for 5 seconds" {
		t.Errorf("the error of -shrink 5 is %v", err)
	}
}

// A report says that shrinking was stopped, and how to go on.
func TestNotFullyShrunk(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""},
		{"stopped\t10000000000\tfalse\t60000000000\t153\n", "not fully shrunk: stopped after 10s; to continue, use -shrink 1m\n"},
		{"stopped\t10000000000\tfalse\t60000000000\t152\n", "not shrunk: stopped after 10s; to continue, use -shrink 1m\n"},
		{"stopped\t20000000000\ttrue\t120000000000\t153\n", "not fully shrunk: stopped after 20s of processor time; to continue, use -shrink 2m\n"},
		{"stopped\t600000000000\tfalse\t3600000000000\t153\n", "not fully shrunk: stopped after 10m; to continue, use -shrink 1h\n"},
	} {
		r := &result{record: record{tested: &tested{test: "TestPay"}}}
		r.read(c.line + aFound + aSummary(coir.VerdictFail))
		if got := r.explain("/p"); got != c.want || r.broken != "" {
			t.Errorf("after %q the report says %q, want %q; %s", c.line, got, c.want, r.broken)
		}
	}
}

// A failure with a server is shrunk in the time of -shrink, or not at all; the schedules for that are counted apart.
func TestShrinkFlag(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	onMemory(t)
	name := filepath.Join(t.TempDir(), "report.xml")
	of := func(flags ...string) (headline, report, last string, switches int) {
		t.Helper()
		got := explored(t, append(flags, "-seed=5001", "-schedules=1000", "-junit="+name, "./testdata/pay")...)
		o := got["TestPay"]
		if o.Failure == nil {
			t.Fatalf("%q: it is\n%s", flags, o.Output)
		}
		c := readJUnit(t, name).Suites[0].Cases[0]
		if o.Schedules != o.Failure.Schedule || c.property("schedules") != fmt.Sprint(o.Schedules) ||
			c.property("shrinking") != fmt.Sprint(o.Shrinking) {
			t.Errorf("%q: %d schedules and %d to shrink; JUnit has %+v", flags, o.Schedules, o.Shrinking, c.Properties)
		}
		return o.Failure.Headline, o.Failure.Report, got[""].Output, o.Failure.Switches
	}
	const cut = "shrunk: stopped after "
	headline, report, last, few := of()
	if !strings.Contains(headline, "shrunk to ") || strings.Contains(report, cut) || few > 3 ||
		!strings.Contains(last, " to shrink failures, ") {
		t.Errorf("shrunk to %d switches, it is %s\n%s\n%s", few, headline, report, last)
	}
	headline, report, last, all := of("-shrink=0")
	if !strings.HasSuffix(headline, fmt.Sprintf(", with %d switches, not shrunk", all)) || strings.Contains(report, cut) || all <= few ||
		!strings.Contains(last, " to find a similar one that passes, ") {
		t.Errorf("not shrunk, it is %s\n%s\n%s", headline, report, last)
	}
	headline, report, _, some := of("-shrink=1ms")
	if !strings.Contains(report, cut+"1ms; to continue, use -shrink 6ms\n") || some < few || some > all {
		t.Errorf("after a moment, it is %s\n%s", headline, report)
	}
}

// With -v, coir test says that it has run the schedules of earlier failures.
func TestSavedSchedulesAreSaid(t *testing.T) {
	w := newWriter(io.Discard, &options{})
	r := &result{record: record{tested: &tested{test: "TestX"}}}
	r.read("beside\t0\t0\t2\t0\t0\n" + aSummary(coir.VerdictPass))
	r.schedules = 5
	if got := w.ran(r); got != "5 schedules, the first 2 of them saved in testdata/coir" {
		t.Errorf("it is %q", got)
	}
	r.tally.add(tally{schedules: 95, ofKept: 7})
	if got := w.ran(r); got != "100 schedules, the first 2 of them saved in testdata/coir, 7 of them kept by -for" {
		t.Errorf("it is %q", got)
	}
	r = &result{record: record{tested: &tested{test: "TestX"}}}
	r.read("beside\t0\t0\t0\t1\t0\n" + aSummary(coir.VerdictPass))
	r.schedules = 51
	if got := w.ran(r); got != "51 schedules, the first of them that of explore.Replay" {
		t.Errorf("it is %q", got)
	}
}
