package sim

import (
	"context"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// A token that was printed on one machine must replay on another, so a seed must give the same schedule everywhere:
// with any Go release, with the race detector and without, on any processor and with each switcher. This test runs on
// all of these, is skipped on none, and compares the schedules with one file, which the first of them has written. A
// change of the decisions, of the order of ways, or of a generator changes the file: then old tokens no longer replay,
// and tokenVersion must change too.

var update = flag.Bool("update", false, "write testdata/traces.txt and the tables of the guide anew: go test ./sim -run 'TestTheSameEverywhere|Corpus' -update")

const golden = "testdata/traces.txt"

// Spec: SM-03 (the same decisions give the same run)
func TestTheSameEverywhere(t *testing.T) {
	var b strings.Builder
	h := fnv.New64a()
	res := exploreAll(t, Random(3), 50, allSorts, func(_ *observed, w *world) { hashTrace(h, w) },
		WithClock(ClockRacing), WithFaults("slow"))
	fmt.Fprintf(&b, "all sorts of decisions\n  %-10s %2d schedules, %4d steps, %016x\n", "random", res.Schedules, res.Steps, h.Sum64())
	for _, c := range corpus {
		fmt.Fprintf(&b, "%s\n", c.name)
		for _, strategy := range []func(uint64) Strategy{
			func(uint64) Strategy { return RoundRobin() },
			Random,
			Uniform,
			func(seed uint64) Strategy { return PCT(seed, 3) },
			func(uint64) Strategy { return Exhaustive(2) },
			func(uint64) Strategy { return DPOR() },
		} {
			// Each schedule of the corrected twin ends, and all are compared.
			h := fnv.New64a()
			res := exploreAll(t, strategy(7), 8, c.make(true), func(_ *observed, w *world) { hashTrace(h, w) }, c.opts...)
			fmt.Fprintf(&b, "  %-10s %2d schedules, %4d steps, %016x\n", strategy(7).Name(), res.Schedules, res.Steps, h.Sum64())
		}
		// For the other program, the first failure and its smaller form are compared. A failure that does not end is not made
		// smaller, because that takes too long in some builds.
		if c.kind == KindLivelock {
			continue
		}
		res := Explore(c.make(false), append(c.opts, WithSeed(7), WithSchedules(10_000))...)
		if res.Failure == nil {
			t.Fatalf("%s: no failure", c.name)
		}
		h := fnv.New64a()
		_, _ = io.WriteString(h, operations(res.Failure))
		fmt.Fprintf(&b, "  %-10s %2d schedules, %4d steps, %016x %s\n", res.Failure.Kind, res.Schedules, res.Failure.Steps, h.Sum64(), res.Failure.Token)
	}
	got := b.String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	program := ""
	is, was := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range is {
		if !strings.HasPrefix(is[i], " ") {
			program = is[i]
		}
		if i >= len(was) || is[i] != was[i] {
			t.Fatalf("%s: line %d is %q, and %s has %q. If it should be so, write that file anew with -update; if not, something that is not a decision "+
				"has led the program another way", program, i+1, is[i], golden, strings.Join(was[min(i, len(was)):min(i+1, len(was))], ""))
		}
	}
	t.Fatalf("%s has more than the %d lines that it should have", golden, len(is))
}

// hashTrace adds all that is known about a schedule: the operations of each fiber, their objects with names and times,
// and the decisions.
func hashTrace(h hash.Hash, w *world) {
	for _, e := range w.trace[:w.nsteps] {
		fmt.Fprintf(h, "%d %v %d %q %d\n", e.fiber, e.op.Kind, e.object, e.op.Name, e.at)
	}
	for _, d := range w.decisions[:w.ndec] {
		fmt.Fprintf(h, "%d of %d at %d\n", d.chosen, d.of, d.step)
	}
}

// allSorts is a program with everything that makes a decision: a select among ready cases, a Selector, a fault,
// numbers, and time, if it races.
func allSorts(ctx context.Context, s *Sim) {
	a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
	nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
		n.Go("a", func(ctx context.Context) error {
			if s.Fault("slow") {
				_ = coir.Sleep(ctx, time.Second)
			}
			return a.Send(ctx, s.Intn(5))
		})
		n.Go("b", func(ctx context.Context) error { return b.SendTimeout(ctx, s.Intn(5), time.Second) })
		n.Go("late", func(ctx context.Context) error { return coir.Sleep(ctx, 3*time.Second) })
		var v int
		_, _ = coir.Select(ctx, a.RecvCase(&v), b.RecvCase(&v), coir.After(2*time.Second))
		sel := coir.NewSelector()
		defer sel.Clear()
		sel.Add(a.RecvCase(&v))
		sel.Add(b.RecvCase(&v))
		ctx, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = sel.Wait(ctx)
	})
}
