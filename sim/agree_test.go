package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/search"
	"github.com/coir-go/coir/internal/soak"
)

// These tests compare DPOR with Exhaustive, on random programs of all operations by which fibers affect each other: see
// families. They compare what the programs observe, which needs no definition of a conflict. Fibers share no memory:
// each writes to its own log.

// agreement is such a program: the operations of each fiber.
type agreement struct {
	seed   uint64
	family *family
	mode   ClockMode
	caps   [2]int
	over   coir.OverflowPolicy
	limit  int
	pick   int // 0 or 1, for the family
	does   [][]deed
}

// deed is an operation of the family or, if it is negative, of common, and its arguments.
type deed struct{ what, a, d int }

// agreementOf returns the program of a seed. It takes the families in turn. In a family whose operations are programs
// by themselves, it takes the operations in turn, so that all are drawn soon.
func agreementOf(seed uint64) agreement {
	var r search.RNG
	r.Of(seed, 3)
	p := agreement{seed: seed, family: &families[seed%uint64(len(families))], pick: r.Below(2)}
	turn := int(seed / uint64(len(families)))
	p.caps = [2]int{r.Below(3), r.Below(2)}
	if p.family.alone {
		p.does = [][]deed{{{turn % len(p.family.does), r.Below(2), 1 + r.Below(2)}}}
		return p
	}
	if r.Below(4) == 0 {
		p.over = coir.OverflowPolicy(1 + r.Below(3))
	}
	if r.Below(8) == 0 {
		p.limit = 1 + r.Below(2)
	}
	lengths := [][]int{{1, 1}, {2, 1}, {1, 2}, {1, 1, 1}}[r.Below(4)]
	if p.family.large {
		lengths = []int{1, 1}
	} else if r.Below(5) == 0 {
		p.mode, lengths = ClockRacing, []int{1, 1}
	}
	for i, n := range lengths {
		deeds := make([]deed, n)
		for k := range deeds {
			deeds[k] = deed{r.Below(len(p.family.does)), r.Below(2), 1 + r.Below(2)}
			if r.Below(8) == 0 {
				deeds[k].what = -1 - r.Below(len(common))
			}
		}
		if i == 0 { // each operation in turn
			deeds[0].what = turn % len(p.family.does)
		}
		p.does = append(p.does, deeds)
	}
	return p
}

func (p agreement) String() string {
	return fmt.Sprintf("program %d of %s, clock %d, capacities %v, overflow %v, limit %d, pick %d: %v",
		p.seed, p.family.name, p.mode, p.caps, p.over, p.limit, p.pick, p.does)
}

// run returns the program, which passes what it has observed to say. All waits in its context end when nothing else can
// happen.
func (p agreement) run(say func(string)) program {
	return func(ctx context.Context, s *Sim) {
		ctx, cancel := coir.WithTimeout(ctx, time.Minute)
		defer cancel()
		st := &stage{s: s, program: &p}
		for i := range st.chans {
			st.chans[i] = coir.NewChan[int](p.caps[i], coir.WithOverflow(p.over))
		}
		p.family.make(st)
		logs := make([]strings.Builder, len(p.does)+1)
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			st.n = n
			if p.limit > 0 {
				n.Limit(p.limit)
			}
			if p.family.alone {
				return p.play(ctx, st, 0, nil, &logs[0])
			}
			fs := make([]*coir.Fiber, len(p.does))
			for i := range fs {
				fs[i] = n.Go("f", func(ctx context.Context) error { return p.play(ctx, st, i, fs[:i], &logs[i]) }, coir.WithIndex(i))
			}
			if p.family.end != nil {
				_ = coir.Sleep(coir.Shield(ctx), time.Hour)
				p.family.end(st)
			}
			return nil
		})
		var b strings.Builder
		for i := range logs {
			b.WriteString(logs[i].String() + "| ")
		}
		fmt.Fprintf(&b, "%s| %s %d %d", st.calls.String(), ending(err), st.chans[0].Len(), st.chans[1].Len())
		say(b.String())
	}
}

// play performs the operations of fiber i. It may wait for the fibers before it.
func (p agreement) play(ctx context.Context, st *stage, i int, before []*coir.Fiber, log *strings.Builder) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if failed, ok := v.(error); !ok || !errors.Is(failed, errFailed) {
				panic(v)
			}
			err = errFailed
		}
	}()
	for k, do := range p.does[i] {
		does := p.family.does
		if do.what < 0 {
			does, do.what = common, -1-do.what
		}
		does[do.what](&player{
			stage: st, ctx: ctx, i: i, v: 4*i + 2*k + 1, a: do.a, d: time.Duration(do.d) * time.Second, before: before, log: log,
		})
	}
	return nil
}

// coarse makes an operation and the code after it one step, and leaves the other decisions to another strategy.
type coarse struct{ Strategy }

//go:norace
func (s coarse) Choose(p *Fork) int {
	if p.After {
		return 0
	}
	return s.Strategy.Choose(p)
}

// direct lets the fiber that runs the program start its fibers, and join them, before any of them runs. If ends is set
// it also lets fibers end as soon as they can. It leaves the rest to another strategy.
type direct struct {
	Strategy
	ends bool
}

//go:norace
func (s direct) Choose(p *Fork) int {
	for i := range p.N {
		f := p.Fiber(i)
		if f < 0 || p.After && i == 0 && f != 0 {
			continue
		}
		switch x := &p.w.fibers[f]; {
		case f == 0 && (x.paused || p.After && i == 0 || x.pending && (x.op.Kind == policy.Go || x.op.Kind == policy.Join)),
			s.ends && x.pending && x.op.Kind == policy.End:
			return i
		}
	}
	return s.Strategy.Choose(p)
}

// endsUnnoticed reports whether no fiber depends on when another one ends.
func (p agreement) endsUnnoticed() bool {
	fails := slices.ContainsFunc(p.does, func(deeds []deed) bool {
		return slices.ContainsFunc(deeds, func(d deed) bool { return d.what == -len(common) })
	})
	return !fails && p.limit == 0 && !p.family.alone && p.family.name != "nurseries"
}

// plainEvery: one in this many programs is compared with all orders of its operations, including the start and
// the end of its fibers. For the other programs, the orders of these are not varied.
const plainEvery = 31

// agreed counts how often each text was seen.
type agreed map[string]int

// without returns the texts of a that are not in b.
func (a agreed) without(b agreed) (lost []string) {
	for text := range a {
		if b[text] == 0 {
			lost = append(lost, text)
		}
	}
	slices.Sort(lost)
	return lost
}

// outcomes returns what the program has observed under the schedules of a strategy, and the number of these schedules.
func (p agreement) outcomes(t *testing.T, s Strategy, most int) (agreed, Result) {
	t.Helper()
	seen := agreed{}
	res := Explore(p.run(func(text string) { seen[text]++ }), WithStrategy(func(uint64) Strategy { return s }),
		WithSchedules(most), WithClock(p.mode))
	if res.Failure != nil {
		t.Errorf("%v: %v", p, res.Failure)
	}
	return seen, res
}

// compare reports whether the program was small enough to run all its schedules, whether these included switches
// between an operation and the code after it, and how many schedules there were.
func (p agreement) compare(t *testing.T, most int) (done, fine bool, schedules, few int) {
	t.Helper()
	all := Exhaustive(-1)
	if p.seed%plainEvery != 0 && p.limit == 0 && !p.family.alone {
		all = direct{all, p.endsUnnoticed()}
	}
	full, full2 := p.outcomes(t, all, most)
	fine = full2.Complete
	if !fine {
		var some agreed
		some, full2 = p.outcomes(t, coarse{all}, most)
		for text, n := range some {
			full[text] += n
		}
	}
	some, some2 := p.outcomes(t, DPOR(), most)
	if !some2.Complete {
		return false, false, 0, 0
	}
	if lost := full.without(some); len(lost) > 0 {
		t.Errorf("%v\n%d of %d outcomes are missing, of %d schedules in %d of DPOR: %s\nDPOR has: %v", p, len(lost), len(full),
			full2.Schedules, some2.Schedules, lost[0], some)
	}
	if !full2.Complete {
		return false, false, 0, 0
	}
	if lost := some.without(full); len(lost) > 0 {
		t.Errorf("%v\nDPOR has an outcome that is not there: %s", p, lost[0])
	}
	return true, fine, full2.Schedules, some2.Schedules
}

var (
	flagAgree     = flag.Int("sim.agree", 0, "how many random programs TestDPORAgreesWithExhaustive draws")
	flagAgreeFrom = flag.Int("sim.agreefrom", 0, "the first of them")
)

// agreements is the number of programs that a full run draws.
const agreements = 5_000

func TestDPORAgreesWithExhaustive(t *testing.T) {
	onceInCI(t)
	want, most := *flagAgree, sized(1_500, 8_000)
	switch {
	case want > 0:
	case slowBuild():
		want = 20
	default:
		want = sized(300, agreements)
	}
	done, fine, all, few := 0, 0, 0, 0
	dropped := map[string]int{}
	first := uint64(*flagAgreeFrom)
	for seed := first; seed < first+uint64(want); seed++ {
		p := agreementOf(seed)
		ok, f, a, b := p.compare(t, most)
		if t.Failed() {
			return
		}
		if !ok {
			dropped[p.family.name]++
			continue
		}
		done++
		if f {
			fine++
		}
		all += a
		few += b
	}
	t.Logf("programs %d to %d: %d gone through, %d of them with switches after each operation; %d dropped: %v; %d schedules, and %d of DPOR",
		first, first+uint64(want)-1, done, fine, want-done, dropped, all, few)
	if 5*done < 4*want {
		t.Error("too many programs are too large to compare")
	}
	if soak.On() || *flagAgree > 0 {
		s := readSurface(t)
		t.Logf("they call %d of %d exported functions and methods", len(s.covered(first, uint64(want))), len(s.all))
	}
}
