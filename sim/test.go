package sim

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/report"
)

var (
	flagN        = flag.Int("sim.n", 0, "schedules of each sim.Test; 0: as the test says")
	flagSeed     = flag.Uint64("sim.seed", 0, "seed of each sim.Test; 0: as the test says")
	flagReplay   = flag.String("sim.replay", "", "a token: run that schedule alone")
	flagTrace    = flag.String("sim.trace", "", "a directory: draw each failure there, as HTML")
	flagStrategy = flag.String("sim.strategy", "", "strategy: roundrobin, random, uniform, pct, exhaustive, dpor; empty: as the test says")
)

// Test explores fn as a test. If a schedule fails, the test fails with a report and the command that replays it.
func Test(t testing.TB, fn func(ctx context.Context, s *Sim), opts ...Option) {
	t.Helper()
	opts = append(opts, func(set *settings) {
		set.covers = true
		if !t.Failed() {
			set.failed = t.Failed
		}
		set.quit = func(f *Failure) {
			if !t.Skipped() {
				t.Helper()
				t.Error(reportOf(t, f))
			}
		}
	})
	if *flagReplay != "" {
		f, err := Replay(*flagReplay, fn, opts...)
		switch {
		case err != nil:
			t.Fatal(err)
		case f != nil:
			fail(t, f)
		case t.Failed():
			return // the failure has been reported
		}
		t.Log("the program does not fail under this schedule any more; its operations are those that were recorded")
		return
	}
	if *flagN > 0 {
		opts = append(opts, WithSchedules(*flagN))
	}
	if *flagSeed != 0 {
		opts = append(opts, WithSeed(*flagSeed))
	}
	if *flagStrategy != "" {
		strategy := named(*flagStrategy)
		if strategy == nil {
			t.Fatalf("-sim.strategy=%s: there are roundrobin, random, uniform, pct, exhaustive and dpor", *flagStrategy)
		}
		opts = append(opts, WithStrategy(strategy))
	}
	res := Explore(fn, append(opts, func(set *settings) { set.sometimes = sometimesIn(fn) })...)
	if res.Failure != nil {
		fail(t, res.Failure)
	}
	for _, name := range res.Never {
		t.Errorf("in %d schedules this was never so: %s", res.Schedules, name)
	}
	all := ""
	if res.Complete {
		all = ", " + res.Covered
	}
	t.Logf("%s%s; %d steps, %.0f schedules a second%s", report.Count(res.Schedules, "schedule"), all, res.Steps,
		float64(res.Schedules)/res.Elapsed.Seconds(), res.orders.text(res.Schedules))
}

// fail ends the test with the report.
func fail(t testing.TB, f *Failure) {
	t.Helper()
	t.Fatal(reportOf(t, f))
}

// reportOf returns the report of a failure in a test, and draws the failure if -sim.trace is set.
func reportOf(t testing.TB, f *Failure) string {
	t.Helper()
	f.test = t.Name()
	text := f.Error()
	if *flagTrace != "" {
		path, err := f.draw(*flagTrace)
		if err != nil {
			t.Error(err)
		}
		text += "  chart: " + path + "\n"
	}
	return strings.TrimRight(text, "\n")
}

// draw writes the chart of a failure into a directory, and returns its path.
func (f *Failure) draw(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.NewReplacer("/", "_", "\\", "_", ":", "_").Replace(f.test)+".html")
	w, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.WriteHTML(w), w.Close())
}

// named returns the strategy with the given name, or nil.
func named(name string) func(uint64) Strategy {
	switch name {
	case "roundrobin":
		return func(uint64) Strategy { return RoundRobin() }
	case "random":
		return Random
	case "pct":
		return func(seed uint64) Strategy { return PCT(seed, 3) }
	case "uniform":
		return Uniform
	case "exhaustive":
		return func(uint64) Strategy { return Exhaustive(-1) }
	case "dpor":
		return func(uint64) Strategy { return DPOR() }
	}
	return nil
}
