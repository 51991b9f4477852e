package sim

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/replay"
	"github.com/coir-go/coir/internal/search"
	"github.com/coir-go/coir/internal/soak"
)

// Replaying failures: a token gives the same run, operation by operation; a smaller schedule fails in the same way; a
// token that does not fit says so, and never silently runs something else; and a seed gives the same run every time, on
// any number of processors.

// failing explores fn until it fails. It returns the failure as it was found, and shrunk, or nil if there is none.
func failing(fn program, opts ...Option) (found, small *Failure) {
	set := settle(opts)
	return newWorld(set.mode, set.limit).failing(fn, &set)
}

func (w *world) failing(fn program, set *settings) (found, small *Failure) {
	w.strategy = set.strategy(set.seed)
	s := &Sim{w: w}
	_ = w.runInFiber(func(ctx context.Context) {
		for i := range set.schedules {
			if !w.strategy.Begin(i) {
				return
			}
			if found = w.schedule(ctx, s, fn); found != nil {
				small = w.shrink(ctx, s, fn, found)
				return
			}
		}
	})
	return found, small
}

// operations returns the trace of a failure, one line for each operation. The numbers of fibers and objects are the
// world's: those of the process differ from run to run.
func operations(f *Failure) string {
	var b strings.Builder
	for _, e := range f.trace {
		fmt.Fprintf(&b, "%d: %v %s #%d\n", e.fiber, e.op.Kind, e.op.Name, e.object)
	}
	return b.String()
}

// sameRun checks that a failure was replayed as it was.
func sameRun(t *testing.T, was, is *Failure, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Errorf("token %s: %v", was.Token, err)
	case is == nil:
		t.Errorf("token %s: was %s, and passes", was.Token, was.Kind)
	case is.Kind != was.Kind || is.hash != was.hash || is.Steps != was.Steps || is.Switches != was.Switches:
		t.Errorf("token %s: was %s, %d steps, %d switches, hash %x; is %s, %d steps, %d switches, hash %x: %s", was.Token,
			was.Kind, was.Steps, was.Switches, was.hash, is.Kind, is.Steps, is.Switches, is.hash, is.Text)
	case operations(is) != operations(was):
		t.Errorf("token %s: other operations, and the same hash:\n%s\n%s", was.Token, operations(was), operations(is))
	case is.Token != was.Token:
		t.Errorf("token %s: the replay has another one, %s", was.Token, is.Token)
	}
}

// TestEachFailureReplaysFromItsToken replays failures as they were found and shrunk, by several strategies and many
// seeds.
//
// Spec: SM-05 (a token replays its schedule)
func TestEachFailureReplaysFromItsToken(t *testing.T) {
	strategies := []func(uint64) Strategy{
		Random,
		func(seed uint64) Strategy { return PCT(seed, 2) },
		func(seed uint64) Strategy { return PCT(seed, 4) },
		Default,
	}
	failures, switches, left := 0, 0, 0
	for seed, want := uint64(1), scaled(sized(100, 1_000)); failures < want; seed++ {
		if seed > 200 {
			t.Fatalf("only %d failures", failures)
		}
		for i, b := range corpus {
			strategy := strategies[(int(seed)+i)%len(strategies)]
			fn, opts := b.make(false), append(b.opts, WithSeed(seed), WithStrategy(strategy), WithSchedules(300))
			found, small := failing(fn, opts...)
			if found == nil {
				continue
			}
			failures++
			switches, left = switches+found.Switches, left+small.Switches
			if small.Kind != found.Kind || small.Switches > found.Switches {
				t.Errorf("%s, seed %d: %s with %d switches was made %s with %d", b.name, seed, found.Kind, found.Switches,
					small.Kind, small.Switches)
			}
			for _, f := range []*Failure{found, small} {
				again, err := Replay(f.Token, fn, opts...)
				sameRun(t, f, again, err)
			}
			if t.Failed() {
				t.Fatalf("%s, seed %d", b.name, seed)
			}
		}
	}
	t.Logf("%d failures, with %d switches; made smaller, %d", failures, switches, left)
}

func TestATokenThatCannotBeReadIsAnError(t *testing.T) {
	_, f := failing(lostUpdate(false))
	letters := strings.TrimPrefix(f.Token, tokenVersion)
	for _, c := range []struct{ name, token, text string }{
		{"empty", "", "version"},
		{"no token", "hello", "version"},
		{"of another version", "s9." + letters, "version"},
		{"without version", letters, "version"},
		{"cut off in the head", f.Token[:len(tokenVersion)+4], "damaged"},
		{"not base64", f.Token[:len(f.Token)-1] + "!", "damaged"},
		{"a number without its end", f.Token[:len(tokenVersion)] + base64.RawURLEncoding.EncodeToString([]byte{0, 1, 2, 3, 4, 0x80}), "damaged"},
		{"zeros without a choice", f.Token[:len(tokenVersion)] + base64.RawURLEncoding.EncodeToString([]byte{0, 1, 2, 3, 4, 1}), "damaged"},
		{"too long to be true", f.Token[:len(tokenVersion)] +
			base64.RawURLEncoding.EncodeToString([]byte{0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}), "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			again, err := Replay(c.token, func(context.Context, *Sim) { t.Error("something has been run") })
			if err == nil || again != nil {
				t.Fatalf("no error, and %v", again)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("the error does not say %q: %v", c.text, err)
			}
		})
	}
}

// A changed token is damaged, or it does not fit. No token with one bit changed may replay as the original failure,
// unless it has the same decisions.
func TestAChangedTokenDoesNotReplay(t *testing.T) {
	fn := oppositeOrder(false)
	_, f := failing(fn)
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(f.Token, tokenVersion))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		token := tokenVersion + base64.RawURLEncoding.EncodeToString(b)
		b[i/8] ^= 1 << (i % 8)
		again, err := Replay(token, fn)
		switch {
		case err != nil:
		case again == nil:
			t.Errorf("bit %d: token %s passes", i, token)
		case again.Kind == KindDiverged:
		case again.hash != f.hash:
			t.Errorf("bit %d: token %s runs other operations, and says %s", i, token, again.Kind)
		}
	}
}

// Spec: SM-05 (a token replays its schedule)
func TestAChangedProgramDiverges(t *testing.T) {
	was := func(extra func(ctx context.Context, c *coir.Chan[int])) program {
		return func(ctx context.Context, s *Sim) {
			c := coir.NewChan[int](1, coir.WithName("c"))
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				for i := range 2 {
					n.Go("setter", func(ctx context.Context) error {
						extra(ctx, c)
						_, _ = c.TryRecv()
						return c.Send(ctx, i)
					}, coir.WithIndex(i))
				}
			})
			if v, _ := c.TryRecv(); v == 0 {
				s.Errorf("the first came last")
			}
		}
	}
	nothing := func(context.Context, *coir.Chan[int]) {}
	_, f := failing(was(nothing))
	if f == nil {
		t.Fatal("not found")
	}
	for _, c := range []struct {
		name string
		fn   program
	}{
		{"an operation more", was(func(ctx context.Context, _ *coir.Chan[int]) { _ = coir.Yield(ctx) })},
		{"another object", was(func(context.Context, *coir.Chan[int]) { _ = coir.NewChan[int](1).TrySend(1) })},
		{"no fibers any more", func(context.Context, *Sim) {}},
		{"another program", lostUpdate(false)},
		{"its fix", func(ctx context.Context, s *Sim) { idle(2, 0)(ctx, s) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			again, err := Replay(f.Token, c.fn)
			if err != nil {
				t.Fatal(err)
			}
			if again == nil || again.Kind != KindDiverged {
				t.Fatalf("not seen: %v", again)
			}
			t.Log(again.Text)
		})
	}
	again, err := Replay(f.Token, was(nothing))
	sameRun(t, f, again, err)
}

// A schedule of which only the end is recorded can be replayed, made smaller and reported like others. The hash also
// covers the part that is not recorded.
//
// Spec: SM-05 (a token replays its schedule)
func TestALongScheduleIsReplayedAndTold(t *testing.T) {
	if !coro.Assembly {
		large(t, "schedules of 66,000 steps")
	}
	long := func(yields int) program {
		return func(ctx context.Context, s *Sim) {
			for range yields {
				_ = coir.Yield(ctx)
			}
			crossed(ctx, s)
		}
	}
	fn, opts := long(mostKept), []Option{WithSteps(4 * mostKept), WithStrategy(Random)}
	found, small := failing(fn, opts...)
	if found == nil {
		t.Fatal("not found")
	}
	for _, f := range []*Failure{found, small} {
		again, err := Replay(f.Token, fn, opts...)
		sameRun(t, f, again, err)
		if f.Steps <= mostKept || len(f.trace) != mostKept {
			t.Errorf("of %d steps %d were kept", f.Steps, len(f.trace))
		}
	}
	if small.Kind != found.Kind || small.Switches >= found.Switches { // their number depends on time
		t.Errorf("%s with %d choices was made %s with %d", found.Kind, found.Switches, small.Kind, small.Switches)
	}
	says(t, small, "likely cycle:", fmt.Sprintf("... %d steps before\n", small.before), "... main yield: ",
		fmt.Sprintf("main    waits for its children to end (step %d, at ", small.before+small.fibers[0].step+1),
		fmt.Sprintf("%d | ", small.Steps))
	saysNot(t, small, "no fiber is left")
	if page := chartOf(t, small); !strings.Contains(page, fmt.Sprintf(`"Before":%d,`, small.before)) ||
		!strings.Contains(page, `"Folds":[{`) {
		t.Error("the chart does not say that it begins late, or that a step is there many times")
	}
	again, err := Replay(small.Token, func(ctx context.Context, s *Sim) {
		_ = coir.Sleep(ctx, 1) // instead of a yield
		long(mostKept-1)(ctx, s)
	}, opts...)
	if err != nil || again == nil || again.Kind != KindDiverged {
		t.Errorf("another beginning is not seen: %v", again)
	}
}

// A token may have any number of zeros in a row.
func TestATokenKeepsVeryManyZeros(t *testing.T) {
	script := make([]int, 3<<20+5)
	script[len(script)-1] = 2
	r, err := decode(encode(ClockIdle, script, 1, nil))
	if err != nil || len(r.script) != len(script) || !slices.Equal(r.script, script) {
		t.Errorf("%d decisions of %d, %v", len(r.script), len(script), err)
	}
}

// digest is a strategy that hashes all questions to another strategy, and its answers, over all schedules.
type digest struct {
	Strategy
	sum search.RNG
}

//go:norace
func (d *digest) Choose(p *Fork) int {
	way := d.Strategy.Choose(p)
	d.sum ^= search.RNG(p.Step())<<32 | search.RNG(p.N<<16|way)
	d.sum = search.RNG(d.sum.Next())
	return way
}

// TestTheSameSeedGivesTheSameTrace repeats whole explorations and compares every decision in them, and the report of
// the failure at their end, byte for byte.
//
// Spec: SM-03 (the same decisions give the same run)
func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer func(was replay.Limits) { twinLimits = was }(twinLimits)
	twinLimits = replay.Limits{Steps: 3000, Schedules: 20, All: 500}
	for _, c := range []struct {
		name    string
		repeats int
	}{
		{"lost update", 1_000},
		{"timeout taken for a failure", 1_000},
		{"pool that waits in itself", 1_000},
		{"semaphore released twice", sized(100, 1_000)}, // many schedules before it fails
	} {
		if (race.Enabled || testing.Short()) && !soak.On() {
			c.repeats /= 10
		}
		t.Run(c.name, func(t *testing.T) {
			b := find(t, c.name)
			var trace string // without the places in files, so that it can be compared with that of another machine
			run := func() string {
				d := new(digest)
				strategy := WithStrategy(func(seed uint64) Strategy {
					d.Strategy = Default(seed)
					return d
				})
				res := Explore(b.make(false), append(b.opts, WithSeed(7), WithSchedules(10_000), strategy)...)
				if res.Failure == nil {
					t.Fatal("not found")
				}
				trace = fmt.Sprintf("%d schedules, %d steps, decisions %x\n%s", res.Schedules, res.Steps, uint64(d.sum), operations(res.Failure))
				return trace + res.Failure.Error()
			}
			want := run()
			for i := range max(1, scaled(c.repeats)/4) {
				for procs := 1; procs <= 4; procs++ {
					runtime.GOMAXPROCS(procs)
					if got := run(); got != want {
						t.Fatalf("run %d on %d processors is another one:\n%s\nwas:\n%s", i, procs, got, want)
					}
				}
			}
			h := fnv.New64a()
			_, _ = h.Write([]byte(trace))
			t.Logf("hash of the trace: %x", h.Sum64())
		})
	}
}

// TestAFailureIsShrunkToTheFewestChoices starts from random schedules, full of switches. Two decisions are enough, and
// for most of the corpus one decision; exhaustive exploration finds the same. Only the starved stop needs one for each
// round.
//
// Spec: SM-07 (a failing schedule is made smaller)
func TestAFailureIsShrunkToTheFewestChoices(t *testing.T) {
	for _, b := range corpus {
		if b.name == "select starves its stop case" {
			continue
		}
		found, small := failing(b.make(false), append(b.opts, WithStrategy(Random), WithSeed(3), WithSchedules(10_000))...)
		if found == nil {
			t.Fatalf("%s: not found", b.name)
		}
		if small.Switches > 2 {
			t.Errorf("%s: %d choices, of %d, are left", b.name, small.Switches, found.Switches)
		}
	}
}

// All uses of events and promises have one kind of operation, but a recording distinguishes them: a token of a program
// that resolved a promise does not fit one that rejects it, even if the decisions are the same.
func TestATokenTellsUsesOfAnObjectApart(t *testing.T) {
	fn := func(use func(*coir.Promise[int])) program {
		return func(ctx context.Context, s *Sim) {
			p := coir.NewPromise[int](coir.WithName("p"))
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("f", func(context.Context) error { use(p); return nil })
				return nil
			})
			s.Errorf("always")
		}
	}
	resolve := fn(func(p *coir.Promise[int]) { p.Resolve(1) })
	reject := fn(func(p *coir.Promise[int]) { p.Reject(io.EOF) })
	f := found(t, KindError, resolve)
	if again, err := Replay(f.Token, resolve); err != nil || again == nil || again.Kind != KindError {
		t.Errorf("the same program: %v, %v", again, err)
	}
	if again, err := Replay(f.Token, reject); err != nil || again == nil || again.Kind != KindDiverged {
		t.Errorf("another program: %v, %v", again, err)
	}
}

// TestTimeBeginsAnewInEachSchedule: a program may decide by the time, as an hourly limit does. Earlier schedules have
// moved the clock, and the program must not notice that.
func TestTimeBeginsAnewInEachSchedule(t *testing.T) {
	program := func(ctx context.Context, s *Sim) {
		if now := coir.Now(ctx); now != 0 || s.Now() != 0 {
			s.Errorf("the schedule begins at %v, %v", now, s.Now())
		}
		_ = coir.Sleep(ctx, time.Duration(s.Intn(100))*time.Minute)
		if coir.Now(ctx) == 42*time.Minute {
			s.Errorf("it is %v", coir.Now(ctx))
		}
	}
	f := Explore(program, WithSchedules(2000)).Failure
	if f == nil || f.Text != "it is 42m0s" {
		t.Fatalf("found %v", f)
	}
	g, err := Replay(f.Token, program)
	if err != nil || g == nil || g.Text != f.Text {
		t.Fatalf("replayed %v, %v", g, err)
	}
}

// The line that a report gives has the options that decide what the program does. Without the fault that the failure
// needs, the replay says so, and does not blame the program alone.
func TestReplayLineHasTheOptions(t *testing.T) {
	fn := func(ctx context.Context, s *Sim) {
		_ = coir.Yield(ctx)
		if s.Fault("disk \"full\"") {
			s.Errorf("lost")
		}
	}
	faults := WithFaults("never asked", "disk \"full\"")
	f := found(t, KindError, fn, faults, WithSteps(500), WithClock(ClockRacing))
	line := fmt.Sprintf("sim.Replay(%q, program, sim.WithFaults(\"never asked\", \"disk \\\"full\\\"\"), sim.WithSteps(500))\n", f.Token)
	if text := f.Error(); !strings.HasSuffix(text, line) {
		t.Errorf("no line %s in\n%s", line, text)
	}
	again, err := Replay(f.Token, fn, faults, WithSteps(500))
	sameRun(t, f, again, err)
	if text := again.Error(); !strings.HasSuffix(text, line) {
		t.Errorf("no line %s in\n%s", line, text)
	}
	without, err := Replay(f.Token, fn)
	if err != nil || without == nil || without.Kind != KindDiverged {
		t.Fatalf("without the fault: %v, %v", without, err)
	}
	for _, text := range []string{"the program or its options have changed since: ",
		"the program reached \"disk \\\"full\\\"\", which sim.WithFaults does not name here"} {
		if !strings.Contains(without.Text, text) {
			t.Errorf("no %q in %s", text, without.Text)
		}
	}
}
