package sim

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// The tests check what sim.Test prints for the user of go test.

// listener is a testing.TB that keeps its messages.
type listener struct {
	testing.TB
	said   strings.Builder
	failed bool
}

type fatal struct{}

func (l *listener) Helper()      {}
func (l *listener) Failed() bool { return l.failed }
func (l *listener) Name() string { return "TestListener" }

func (l *listener) Log(args ...any)                   { fmt.Fprintln(&l.said, args...) }
func (l *listener) Logf(format string, args ...any)   { fmt.Fprintf(&l.said, format+"\n", args...) }
func (l *listener) Errorf(format string, args ...any) { l.Logf(format, args...) }
func (l *listener) Error(args ...any)                 { l.Log(args...) }
func (l *listener) Fatal(args ...any)                 { l.Log(args...); panic(fatal{}) }
func (l *listener) Fatalf(format string, args ...any) { l.Logf(format, args...); panic(fatal{}) }

// told returns what Test logs for fn, with flags set, and whether it is fatal.
func told(t *testing.T, flags map[*string]string, fn program, opts ...Option) (text string, failed bool) {
	l := &listener{TB: t}
	for at, value := range flags {
		was := *at
		*at = value
		defer func() { *at = was }()
	}
	defer func() {
		if p := recover(); p != nil {
			if _, failed = p.(fatal); !failed {
				panic(p)
			}
		}
		text = l.said.String()
	}()
	Test(l, fn, opts...)
	return "", false
}

func expect(t *testing.T, text string, failed, fails bool, parts ...string) {
	t.Helper()
	if failed != fails {
		t.Errorf("fatal is %v: %s", failed, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

func TestTestSaysWhenThatWasAll(t *testing.T) {
	all := WithStrategy(func(uint64) Strategy { return Exhaustive(-1) })
	text, failed := told(t, nil, idle(2, 0), all)
	expect(t, text, failed, false, " schedules, all orders of coir operations; code between two operations is one step; ")
	text, failed = told(t, nil, idle(2, 0), all, WithSchedules(1))
	if expect(t, text, failed, false, "1 schedule; "); strings.Contains(text, "all") {
		t.Error(text)
	}
	text, failed = told(t, map[*string]string{flagStrategy: "roundrobin"}, idle(2, 0))
	expect(t, text, failed, false, "1 schedule, all that strategy roundrobin has; ")
	for bound, want := range map[int]string{0: "without preemption", 1: "with at most 1 preemption", 2: "with at most 2 preemptions"} {
		text, failed = told(t, nil, idle(2, 0), WithStrategy(func(uint64) Strategy { return Exhaustive(bound) }))
		expect(t, text, failed, false, " schedules, all orders of coir operations "+want+"; code between two operations is one step; ")
	}
	text, failed = told(t, map[*string]string{flagStrategy: "dpor"}, idle(2, 0))
	expect(t, text, failed, false, "1 schedule, all orders of coir operations that conflict; code after an operation is one step with it; ")
}

func TestTestNamesTheStrategiesThereAre(t *testing.T) {
	text, failed := told(t, map[*string]string{flagStrategy: "chance"}, idle(1, 0))
	expect(t, text, failed, true, "-sim.strategy=chance: there are roundrobin, ")
}

func TestTestSaysHowToSeeItAgainFromAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	text, failed := told(t, map[*string]string{flagTrace: "charts"}, crossed)
	dir, err := filepath.Abs("charts")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, text, failed, true, "replay: go test github.com/coir-go/coir/sim -run '^TestListener$' -sim.replay=s3.",
		"chart: "+filepath.Join(dir, "TestListener.html"))
}

// Spec: SM-05 (a token replays its schedule)
func TestTestSaysThatTheProgramHasChanged(t *testing.T) {
	fn := func(wrong, more bool) program {
		return func(ctx context.Context, s *Sim) {
			_ = coir.Yield(ctx)
			if more {
				_ = coir.Yield(ctx)
			}
			if wrong {
				s.Errorf("wrong")
			}
		}
	}
	token := map[*string]string{flagReplay: found(t, KindError, fn(true, false)).Token}
	text, failed := told(t, token, fn(true, false))
	expect(t, text, failed, true, "error after ", "(replayed): wrong")
	text, failed = told(t, token, fn(false, false))
	expect(t, text, failed, false, "does not fail under this schedule any more")
	text, failed = told(t, token, fn(false, true))
	expect(t, text, failed, true, "diverged", "the program or its options have changed since: it does not fail under this schedule")
	text, failed = told(t, token, fn(true, true))
	expect(t, text, failed, true, "diverged", "the program or its options have changed since: it fails, but", "wrong")
}

// The failure occurs in a single run, and the next run differs: in its end, or in its operations.
func TestReportSaysThatTheProgramIsNotDeterministic(t *testing.T) {
	runs := 0
	once := func(ctx context.Context, s *Sim) {
		_ = coir.Yield(ctx)
		if runs++; runs == 3 {
			s.Errorf("by chance")
		}
	}
	f := found(t, KindError, once, WithStrategy(Random))
	says(t, f, "by chance", "the program is not deterministic: ", "math/rand", "replay: ")
	runs = -1 // the second run of a schedule that passed
	says(t, found(t, KindError, func(ctx context.Context, s *Sim) {
		_ = coir.Yield(ctx)
		if runs++; runs == guardEvery {
			s.Errorf("by chance")
		}
	}, WithStrategy(Random)), "the program is not deterministic: ")
	longer := 0
	says(t, found(t, KindError, func(ctx context.Context, s *Sim) {
		longer++
		for range longer {
			_ = coir.Yield(ctx)
		}
		s.Errorf("always")
	}), "the program is not deterministic: ")
	saysNot(t, found(t, KindError, lostUpdate(false)), "deterministic")
}

func TestReportOfADrawnScheduleSaysHowToSeeItAgain(t *testing.T) {
	f := Drawn(func(int) int { return 0 }, func(_ context.Context, s *Sim) { s.Errorf("wrong") })
	if f == nil {
		t.Fatal("it passes")
	}
	says(t, f, "(drawn): wrong", `replay: sim.Replay("`+f.Token+`", program)`)
	saysNot(t, f, "strategy", "seed", "-sim.")
}

func TestReportShowsNumbersAndTimes(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		n := s.Intn(3)
		_ = coir.Sleep(ctx, 2*time.Second)
		if s.Intn(5) == 4 && n == 2 {
			s.Errorf("four")
		}
	})
	says(t, f, "        | intn 3 → 2  |\n      1 | sleep 2s    | :167\n        | intn 5 → 4  |\n        | error: four | :169\n")
	again, err := Replay(f.Token, func(context.Context, *Sim) {})
	if err != nil || again == nil || again.Kind != KindDiverged {
		t.Error(again, err)
	}
	f = found(t, KindError, func(_ context.Context, s *Sim) { s.Errorf("%d", s.Intn(2)) })
	says(t, f, "intn 2 → 0 |\n")
}

func TestIntnOfNothing(t *testing.T) {
	says(t, found(t, KindPanic, func(_ context.Context, s *Sim) { s.Intn(0) }),
		"sim: Intn(0): the argument must be positive")
}

// A program whose sleeps differ under the same decisions is not deterministic, although its operations are the same.
func TestASleepOfAnotherLengthIsNotDeterministic(t *testing.T) {
	runs := 0
	lengths := func(ctx context.Context) {
		_ = coir.Yield(ctx)
		runs++
		_ = coir.Sleep(ctx, time.Duration(runs)*time.Second)
	}
	f := found(t, KindNondeterministic, func(ctx context.Context, _ *Sim) { lengths(ctx) }, WithStrategy(Random))
	says(t, f, "the same decisions gave a different run at step 2: sleep 16s once, and sleep 17s again", "=>2 | sleep ")
	runs = 0
	f = found(t, KindNondeterministic, func(_ context.Context, s *Sim) {
		runs++
		s.Advance(time.Duration(runs) * time.Second)
	}, WithStrategy(Random))
	says(t, f, "at step 1: advance 16s once, and advance 17s again")
	runs = 0
	f = found(t, KindError, func(ctx context.Context, s *Sim) {
		lengths(ctx)
		s.Errorf("wrong")
	})
	says(t, f, "the program is not deterministic")
}
