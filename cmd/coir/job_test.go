package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/replay"
)

// aFailure is the record of a process that finds a failure in its schedule 5. switches is the number of its switches;
// stable says whether it happened again.
func aFailure(switches, stable string) string {
	return "failure\t\"fail\"\t\"\"\t5\t1\t" + switches + "\t\"\"\t" + stable + "\t0\t0\t0\t0\n" + aSummary(coir.VerdictFail)
}

// aToken returns a token with a head, a seed, a hash, and a decision.
func aToken(h coir.TokenHead) string {
	h.Seed, h.Hash = 1, 5
	return replay.Token(h.Prefix(), h.Numbers(), []int{1})
}

// The processes of a test, for typical flags, as far as their settings differ from those of the first process without
// flags. Each process has a record, or dies.
func TestSequencesOfProcesses(t *testing.T) {
	const (
		died     = ""
		noLimit  = "budget=2562047h47m16.854775807s "
		waits    = "uncontrolled\t2\t4\t1000000\n"
		waitsNow = "uncontrolled\t2\t-1\t1000000\n"
	)
	pass := aSummary(coir.VerdictPass)
	token, alone := aToken(coir.TokenHead{}), aToken(coir.TokenHead{Alone: true})
	for _, c := range []struct {
		name, flags string
		saved       bool     // a token of an earlier failure is in testdata
		records     []string // of the processes, in order
		want        []string // the settings of the processes
		verdict     coir.Verdict
	}{
		{name: "no flags", records: []string{pass}, want: []string{""}, verdict: coir.VerdictPass},
		{name: "a number of schedules", flags: "-schedules=5", records: []string{pass},
			want: []string{noLimit + "processor=true schedules=5 shrink=20s"}, verdict: coir.VerdictPass},
		{name: "a number and a budget", flags: "-schedules=5 -budget=1m", records: []string{pass},
			want: []string{"budget=1m0s schedules=5"}, verdict: coir.VerdictPass},
		{name: "a time to shrink", flags: "-schedules=5 -shrink=1m", records: []string{pass},
			want: []string{noLimit + "schedules=5 shrink=1m0s"}, verdict: coir.VerdictPass},
		{name: "dpor", flags: "-strategy=dpor", records: []string{pass},
			want: []string{"atomics=true strategy=dpor"}, verdict: coir.VerdictPass},
		{name: "settings", flags: "-seed=18446744073709551615 -bound=3 -racing -leaks=false -faults=net",
			records: []string{pass, pass},
			want: []string{"bound=3 budget=500ms leaks=false racing=true schedules=5000 seed=18446744073709551615",
				"bound=3 budget=500ms faults=31 leaks=false racing=true schedules=5000 seed=18446744073709551615"},
			verdict: coir.VerdictPass},
		{name: "faults", flags: "-schedules=5 -faults=test", saved: true,
			records: []string{aSummary(coir.VerdictNever), aFailure("3", "true")},
			want: []string{noLimit + "failed processor=true schedules=3 shrink=20s",
				noLimit + "faults=32 processor=true schedules=2 shrink=20s"},
			verdict: coir.VerdictFail},
		{name: "a failure without faults", flags: "-faults=test", records: []string{aFailure("3", "true")},
			want: []string{"budget=500ms schedules=5000"}, verdict: coir.VerdictFail},
		{name: "a failure", records: []string{aFailure("3", "true")}, want: []string{""}, verdict: coir.VerdictFail},
		{name: "a failure of the plain order, alone too",
			records: []string{aFailure("0", "true"), aFailure("0", "true")},
			want:    []string{"", "only=0 strategy=plain"}, verdict: coir.VerdictFail},
		{name: "a failure of the plain order, but not alone", flags: "-schedules=2 -budget=1h",
			records: []string{aFailure("0", "true"), pass, pass, pass},
			want: []string{"budget=1h0m0s schedules=2", "budget=1h0m0s only=0 schedules=2 strategy=plain",
				"budget=1h0m0s only=0 schedules=2", "budget=1h0m0s only=1 schedules=2"}, verdict: coir.VerdictPass},
		{name: "a failure that does not repeat", flags: "-schedules=3 -budget=1h",
			records: []string{aFailure("3", "false"), pass, aFailure("3", "true")},
			want: []string{"budget=1h0m0s schedules=3", "budget=1h0m0s only=0 schedules=3",
				"budget=1h0m0s only=1 schedules=3"}, verdict: coir.VerdictFail},
		{name: "a failure to run again", records: []string{"again\t\"c1.AB\"\t7\n" + aSummary(coir.VerdictAgain), aFailure("3", "true")},
			want: []string{"", "replay=c1.AB"}, verdict: coir.VerdictFail},
		{name: "a process that dies", flags: "-schedules=2 -budget=1h", records: []string{died, pass, died},
			want:    []string{"budget=1h0m0s schedules=2", "budget=1h0m0s only=0 schedules=2", "budget=1h0m0s only=1 schedules=2"},
			verdict: coir.VerdictDied},
		{name: "the kernel's network",
			records: []string{"network\t\"it dials\"\n" + aSummary(coir.VerdictKernel), waits + aSummary(coir.VerdictUncontrolled), pass},
			want:    []string{"", "network=kernel", "budget=999ms from=4 network=kernel patience=50 schedules=9999"},
			verdict: coir.VerdictPass},
		{name: "not controlled", records: []string{waits + aSummary(coir.VerdictUncontrolled), pass},
			want: []string{"", "budget=999ms from=4 patience=50 schedules=9999"}, verdict: coir.VerdictPass},
		{name: "not controlled, in order", flags: "-strategy=exhaustive", records: []string{waits + aSummary(coir.VerdictUncontrolled)},
			want: []string{"strategy=exhaustive"}, verdict: coir.VerdictUncontrolled},
		{name: "the plain schedule is not controlled", flags: "-schedules=3 -budget=1h",
			records: []string{waitsNow + aSummary(coir.VerdictUncontrolled), pass, pass},
			want: []string{"budget=1h0m0s schedules=3", "budget=1h0m0s only=1 patience=50 schedules=3",
				"budget=1h0m0s only=2 patience=50 schedules=3"}, verdict: coir.VerdictPass},
		{name: "more", records: []string{"more\t9\t1000000\n" + aSummary(coir.VerdictMore), pass},
			want: []string{"", "budget=999ms from=9 schedules=9999"}, verdict: coir.VerdictPass},
		{name: "alone", flags: "-fresh -schedules=2 -budget=1h", records: []string{pass, pass},
			want: []string{"budget=1h0m0s only=0 schedules=2", "budget=1h0m0s only=1 schedules=2"}, verdict: coir.VerdictPass},
		{name: "a token", flags: "-run=TestX -replay=" + token, saved: true, records: []string{aFailure("0", "false")},
			want: []string{"failed replay=" + token}, verdict: coir.VerdictFail},
		{name: "a token of a schedule that was alone", flags: "-run=TestX -replay=" + alone, records: []string{aFailure("0", "true")},
			want: []string{"only=0 replay=" + alone}, verdict: coir.VerdictFail},
		{name: "a saved failure", saved: true, records: []string{aFailure("3", "true")}, want: []string{"failed"},
			verdict: coir.VerdictFail},
		{name: "a saved failure, in order", flags: "-strategy=dpor", saved: true, records: []string{pass},
			want: []string{"atomics=true strategy=dpor"}, verdict: coir.VerdictPass},
		{name: "a saved failure, alone", flags: "-fresh", saved: true, records: []string{aFailure("3", "true")},
			want: []string{"failed only=0 replay=" + token}, verdict: coir.VerdictFail},
		{name: "a test that explores", records: []string{aSummary(coir.VerdictSimulates), pass}, want: []string{"", "as go test"},
			verdict: coir.VerdictSimulates},
	} {
		t.Run(c.name, func(t *testing.T) {
			tl, ran := fakeProcesses(t, c.records...)
			j := fakeJob(t, fakeBinary(t), strings.Fields(c.flags)...)
			if c.saved {
				j = withSaved(t, j, token)
			}
			first := fakeJob(t, j.binary).process()
			r := tl.runTest(t.Context(), j)
			var got []string
			for _, text := range ran() {
				got = append(got, different(text, first.settings(tl.base)))
			}
			if !slices.Equal(got, c.want) || r.outcome != c.verdict {
				t.Errorf("%s after the processes\n\t%s\nwant %s after\n\t%s", r.outcome, strings.Join(got, "\n\t"),
					c.verdict, strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// A process knows how many schedules have run before, so that its messages number its schedules as the report does.
func TestSchedulesBefore(t *testing.T) {
	j := fakeJob(t, "x.test", "-faults=net")
	j.before = 7
	without, with := j.halves()
	for _, of := range []*job{j, without, with} {
		if n := of.process().before; n != 7 {
			t.Errorf("the first process has %d schedules before it", n)
		}
	}
	if n := j.after(&result{tally: tally{schedules: 3, racing: 2}}).before; n != 12 {
		t.Errorf("the next process has %d schedules before it", n)
	}
}

// withSaved writes a token into testdata of the package of a job, and returns the job for that.
func withSaved(t *testing.T, j *job, token string) *job {
	t.Helper()
	dir := filepath.Join(j.p.Dir, "testdata", "coir", j.test)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fail-1"), []byte(token+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return newJob(j.options, j.p, j.binary, j.test, j.n)
}

// different returns the settings of a process that ran, as far as they differ from others, in order; and failed if it
// begins with earlier failures.
func different(ran, others string) string {
	settings, failed, _ := strings.Cut(ran, " ")
	if settings == "" {
		return "as go test"
	}
	var all []string
	for s := range strings.SplitSeq(settings, ",") {
		if !slices.Contains(strings.Split(others, ","), s) {
			all = append(all, s)
		}
	}
	if failed != "" {
		all = append(all, "failed")
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Each round has twice the budget of the round before, and another seed, and changes nothing else. The job of the test
// itself does not change.
func TestJobOfARound(t *testing.T) {
	j := fakeJob(t, "x.test", "-for=1h", "-seed=7", "-schedules=3")
	before := *j
	for _, c := range []struct {
		round        int
		left, budget time.Duration
		seed         uint64
	}{
		{0, time.Hour, time.Second, 7},
		{1, time.Hour, 2 * time.Second, 1<<32 + 7},
		{5, time.Hour, 32 * time.Second, 5<<32 + 7},
		{5, 3 * time.Second, 3 * time.Second, 5<<32 + 7},
		{90, 1000 * time.Hour, 1 << 20 * time.Second, 90<<32 + 7},
		{0, -time.Second, time.Millisecond, 7},
	} {
		got := j.inRound(c.round, c.left, "dir")
		if got.budget != c.budget || got.seed != c.seed || got.schedules != 1<<30 ||
			got.kept != filepath.Join("dir", "example.com_m.TestX.schedules") {
			t.Errorf("round %d with %v left: %+v, want %+v", c.round, c.left, got, c)
		}
	}
	if j.budget != before.budget || j.seed != before.seed || j.kept != "" || j.schedules != 3 {
		t.Errorf("the job has changed to %+v", j)
	}
}

// The arguments of a process, for the flags.
func TestArgumentsOfAProcess(t *testing.T) {
	for flags, want := range map[string]string{
		"":                             "-test.paniconexit0 -test.timeout=10m0s -test.run=^TestX$",
		"-run=Test.*/a|B -skip=X/b":    "-test.paniconexit0 -test.timeout=10m0s -test.run=^TestX$/a -test.skip=X/b",
		"-short -v -timeout=1s":        "-test.paniconexit0 -test.timeout=1s -test.run=^TestX$ -test.short=true -test.v=true",
		"-json -fullpath . -args -v x": "-test.paniconexit0 -test.timeout=10m0s -test.run=^TestX$ -test.v=true -test.fullpath=true -v x",
	} {
		proc := fakeJob(t, "x.test", strings.Fields(flags)...).process()
		if got := strings.Join(proc.args(), " "); got != want {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
	}
}
