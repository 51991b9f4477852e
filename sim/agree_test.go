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
	"github.com/coir-go/coir/internal/search"
)

// DPOR against Exhaustive, on random programs of all that fibers can do to each other. The tests compare what the
// programs have seen happen, which needs no definition of what conflicts. Fibers share no memory: each writes into a
// log of its own.

// agreement is such a program: for each fiber, the last being the body of the nursery, what it does.
type agreement struct {
	seed  uint64
	mode  ClockMode
	caps  [2]int
	over  coir.OverflowPolicy
	limit int
	pool  int
	does  [][]deed
}

type deed struct{ what, a, d int }

// plots are programs that random choice would hardly make: for each fiber what it may do first, and next. The limit is
// that of the nursery.
var plots = []struct {
	limit int
	does  [][][]int
}{
	// Time or another fiber cuts a wait for a fiber short; both continue and meet at a channel.
	{0, [][][]int{{{10, 1, 19}, {2, 3}}, {{7, 30}, {2, 3}}, {}}},
	{0, [][][]int{{{19, 20, 10}, {3, 20}}, {{8}, {2, 3}}, {{20, 19, 9}}}},
	{0, [][][]int{{{3}}, {{8}, {2}}, {{20}}}},
	// A fiber that waits for others gives up its place, and may have to wait for one again.
	{1, [][][]int{{{12}, {2, 3}}, {{2, 3, 0, 1}}, {}}},
	{1, [][][]int{{{12}, {2, 3}}, {{12, 7, 30}, {2, 3}}, {}}},
	{2, [][][]int{{{12, 10, 19}}, {{7, 30}, {2, 3}}, {{2, 3}}}},
	// Fibers are started in a nursery that ends.
	{0, [][][]int{{{13}}, {{14}}, {{19, 3}}}},
	// Two wait for a value that is lent, and get it when it is returned.
	{0, [][][]int{{{23, 26}}, {{23, 24}}, {{23, 26}}}},
	// Cases become ready while no fiber waits for them.
	{0, [][][]int{{{2}}, {{2}}, {{28}, {28}, {29}}}},
}

// Each theme has related operations: in a program of few operations random choice would hardly bring them together.
var themes = [][]int{
	{0, 1, 2, 3, 4, 5, 6, 22},          // channels
	{7, 8, 9, 10, 7, 8, 2, 3, 11, 20},  // waits that are cut short
	{7, 7, 12, 19, 2, 3, 1, 10, 20},    // places under a limit
	{12, 13, 13, 14, 12, 2, 9},         // nurseries inside, and fibers that are started there from elsewhere
	{15, 15, 16, 17, 18, 21, 10},       // pipes
	{23, 23, 24, 25, 26, 10},           // pools
	{27, 28, 28, 29, 2, 0, 1, 4},       // selectors
	{11, 11, 10, 1, 0, 7, 30, 19},      // time
	{31, 32, 31, 32, 2, 3, 1, 4, 9},    // operations that begin without a wait
	{0, 1, 5, 7, 9, 12, 19, 20, 22, 6}, // of all
}

func agreementOf(seed uint64) agreement {
	var r search.RNG
	r.Of(seed, 3)
	p := agreement{seed: seed, mode: ClockMode(seed % 2), pool: 1 + r.Below(2)}
	p.caps = [2]int{r.Below(3), r.Below(2)}
	if r.Below(4) == 0 {
		p.over = coir.OverflowPolicy(1 + r.Below(3))
	}
	if r.Below(3) == 0 {
		plot := &plots[r.Below(len(plots))]
		p.limit = plot.limit
		a := r.Below(2)
		for _, acts := range plot.does {
			deeds := make([]deed, len(acts))
			for k, kinds := range acts {
				deeds[k] = deed{kinds[r.Below(len(kinds))], a, 1 + r.Below(2)}
				if r.Below(6) == 0 || kinds[0] == 28 && k == 1 {
					deeds[k].a = 1 - a
				}
			}
			p.does = append(p.does, deeds)
		}
		return p
	}
	theme := r.Below(len(themes))
	if theme == 2 || r.Below(6) == 0 {
		p.limit = 1 + r.Below(2)
	}
	for i := range 3 {
		n := 1 + r.Below(3)/2
		if i == 2 {
			n = r.Below(2)
		}
		deeds := make([]deed, n)
		for k := range deeds {
			kinds := themes[theme]
			if r.Below(8) == 0 {
				kinds = themes[len(themes)-1]
			}
			deeds[k] = deed{kinds[r.Below(len(kinds))], r.Below(2), 1 + r.Below(2)}
		}
		p.does = append(p.does, deeds)
	}
	return p
}

func (p agreement) String() string {
	return fmt.Sprintf("program %d, clock %d, capacities %v, overflow %v, limit %d, pool of %d: %v", p.seed, p.mode, p.caps, p.over, p.limit, p.pool, p.does)
}

// ending returns a word for an error.
func ending(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, coir.ErrWouldBlock):
		return "not"
	case errors.Is(err, coir.ErrTimeout):
		return "late"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, coir.ErrClosed):
		return "closed"
	}
	return err.Error()
}

var errFailed = errors.New("failed")

// stage is what the fibers of a program share. What the program does not use is nil.
type stage struct {
	s         *Sim
	n         *coir.Nursery
	cs        [2]*coir.Chan[int]
	cancels   *coir.Chan[func()]
	nurseries *coir.Chan[*coir.Nursery]
	pool      *coir.Pool[int]
	writers   []*coir.Writer[int]
	readers   []*coir.Reader[int]
	sel       *coir.Selector
}

func (p agreement) uses(kinds ...int) bool {
	return slices.ContainsFunc(p.does, func(deeds []deed) bool {
		return slices.ContainsFunc(deeds, func(d deed) bool { return slices.Contains(kinds, d.what) })
	})
}

func (p agreement) stage(s *Sim) *stage {
	st := &stage{s: s, cancels: coir.NewChan[func()](1), nurseries: coir.NewChan[*coir.Nursery](1), sel: coir.NewSelector()}
	for i := range st.cs {
		st.cs[i] = coir.NewChan[int](p.caps[i], coir.WithOverflow(p.over))
	}
	if p.uses(23, 24, 25, 26) {
		made := 0
		st.pool = coir.NewPool(p.pool, func(context.Context) (int, error) { made++; return made, nil }, nil)
	}
	if p.uses(15, 16, 17, 18, 21) {
		w, r := coir.Pipe[int](p.caps[0])
		for range p.does {
			st.writers, st.readers = append(st.writers, w.Clone()), append(st.readers, r.Clone())
		}
		w.Close()
		r.Close()
	}
	return st
}

// run returns the program, which calls say with what it has seen.
func (p agreement) run(say func(string)) program {
	return func(ctx context.Context, s *Sim) {
		st := p.stage(s)
		logs := make([]strings.Builder, len(p.does))
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			st.n = n
			if p.limit > 0 {
				n.Limit(p.limit)
			}
			fs := make([]*coir.Fiber, len(p.does)-1)
			for i := range fs {
				before := fs[:i]
				fs[i] = n.Go("f", func(ctx context.Context) error {
					return p.play(ctx, st, i, before, &logs[i])
				}, coir.WithIndex(i))
			}
			return p.play(ctx, st, len(fs), fs, &logs[len(fs)])
		})
		var b strings.Builder
		for i := range logs {
			b.WriteString(logs[i].String() + "| ")
		}
		fmt.Fprintf(&b, "%s %d %d", ending(err), st.cs[0].Len(), st.cs[1].Len())
		if st.pool != nil {
			fmt.Fprintf(&b, " %d", st.pool.Len())
		}
		say(b.String())
	}
}

// play does what fiber i does. It may wait for the fibers before it.
func (p agreement) play(ctx context.Context, st *stage, i int, before []*coir.Fiber, log *strings.Builder) error {
	tell := func(format string, args ...any) { fmt.Fprintf(log, format+" ", args...) }
	for k, do := range p.does[i] {
		c, other, v := st.cs[do.a], st.cs[1-do.a], 10*i+k+1
		d := time.Duration(do.d) * time.Second
		switch do.what {
		case 0:
			tell("send %s", ending(c.SendTimeout(ctx, v, d)))
		case 1:
			x, err := c.RecvTimeout(ctx, d)
			tell("recv %d %s", x, ending(err))
		case 2:
			tell("trysend %s", ending(c.TrySend(v)))
		case 3:
			x, err := c.TryRecv()
			tell("tryrecv %d %s", x, ending(err))
		case 4:
			tell("close %v", c.Close())
		case 5:
			var x int
			at, err := coir.Select(ctx, c.RecvCase(&x), other.SendCase(v), coir.After(d))
			tell("select %d %d %s", at, x, ending(err))
		case 6:
			var x int
			at, err := coir.TrySelect(c.RecvCase(&x), other.SendCase(v))
			tell("tryselect %d %d %s", at, x, ending(err))
		case 7: // a wait that time cuts short
			if len(before) > 0 {
				ctx, cancel := coir.WithTimeout(ctx, d)
				err := before[do.a%len(before)].Wait(ctx)
				cancel()
				tell("wait %s", ending(err))
			}
		case 8: // a wait that another fiber may cut short
			if len(before) > 0 {
				ctx, cancel := coir.WithCancelCause(ctx)
				told := st.cancels.TrySend(func() { cancel(nil) })
				err := before[do.a%len(before)].Wait(ctx)
				cancel(nil)
				tell("wait %s %s", ending(told), ending(err))
			}
		case 9:
			st.n.Cancel(nil)
			tell("cancel")
		case 10:
			tell("sleep %s", ending(coir.Sleep(ctx, d)))
		case 11:
			st.s.Advance(d)
			tell("advance")
		case 12:
			err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("in", func(ctx context.Context) error {
					if do.d == 1 {
						_, err := c.RecvTimeout(ctx, d)
						tell("in %s", ending(err))
					}
					return nil
				})
				return nil
			})
			tell("run %s", ending(err))
		case 13: // a nursery that others may start fibers in
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				tell("open %s", ending(st.nurseries.TrySend(n)))
				if do.d == 1 {
					n.Go("in", func(context.Context) error { return nil })
				}
				return nil
			})
			tell("run %s", ending(err))
		case 14:
			if m, err := st.nurseries.TryRecv(); err == nil {
				func() {
					defer func() { tell("go %v", recover() == nil) }()
					m.Go("foreign", func(context.Context) error { _ = c.TrySend(v); return nil })
				}()
			}
		case 15:
			ctx, cancel := coir.WithTimeout(ctx, d)
			err := st.writers[i].Send(ctx, v)
			cancel()
			tell("write %s", ending(err))
		case 16:
			x, err := st.readers[i].RecvTimeout(ctx, d)
			tell("read %d %s", x, ending(err))
		case 17:
			if do.a == 0 {
				tell("leave %v", st.writers[i].Close())
			} else {
				tell("leave %v", st.readers[i].Close())
			}
		case 18:
			at, err := coir.Select(ctx, st.writers[i].GoneCase(), coir.After(d))
			tell("gone %d %s", at, ending(err))
		case 19:
			tell("yield %s", ending(coir.Yield(ctx)))
		case 20:
			if cancel, err := st.cancels.TryRecv(); err == nil {
				cancel()
				tell("cut")
			}
		case 21:
			x := st.writers[i].Clone()
			tell("clone %s", ending(x.TrySend(v)))
			x.Close()
		case 22:
			return errFailed
		case 23:
			ctx, cancel := coir.WithTimeout(ctx, d)
			x, err := st.pool.Get(ctx)
			cancel()
			tell("lent %d %s", x, ending(err))
			if err == nil {
				_ = st.pool.Put(x)
			}
		case 24:
			x, err := st.pool.TryGet()
			tell("trylent %d %s", x, ending(err))
			if err == nil {
				_ = c.TrySend(v)
				_ = st.pool.Put(x)
			}
		case 25:
			tell("shut %v", st.pool.Close())
		case 26:
			if x, err := st.pool.TryGet(); err == nil {
				_ = coir.Yield(ctx)
				tell("discard %d %s", x, ending(st.pool.Discard(x)))
			}
		case 27: // a selector of its own
			own := coir.NewSelector()
			var x int
			own.Add(c.RecvCase(&x))
			own.Add(coir.After(d))
			at, err := own.Wait(ctx)
			own.Close()
			tell("own %d %d %s", at, x, ending(err))
		case 28: // one for all
			st.sel.Add(c.RecvCase(nil))
			tell("add")
		case 29:
			ctx, cancel := coir.WithTimeout(ctx, d)
			at, err := st.sel.Wait(ctx)
			cancel()
			tell("all %d %s", at, ending(err))
		case 30:
			if len(before) > 0 {
				at, err := coir.Select(ctx, before[do.a%len(before)].DoneCase(nil), coir.After(d))
				tell("done %d %s", at, ending(err))
			}
		case 31:
			beginAsync(ctx, d, func(n *coir.Nursery) *coir.Promise[struct{}] { return c.SendAsync(n, v) },
				func(_ struct{}, err error) { tell("sendasync %s", ending(err)) })
		case 32:
			beginAsync(ctx, d, c.RecvAsync, func(x int, err error) { tell("recvasync %d %s", x, ending(err)) })
		}
	}
	return nil
}

// beginAsync begins an operation, cancels it after d, and tells how it ended.
func beginAsync[T any](ctx context.Context, d time.Duration, begin func(*coir.Nursery) *coir.Promise[T], tell func(T, error)) {
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		p := begin(n)
		soon, cancel := coir.WithTimeout(ctx, d)
		_, _ = p.Wait(soon)
		cancel()
		n.Cancel(nil)
		tell(p.Wait(coir.Shield(ctx)))
		return nil
	})
}

// outcomes returns what the program has seen under the schedules of a strategy, each with the number of schedules.
func (p agreement) outcomes(t *testing.T, s Strategy, most int) (map[string]int, Result) {
	t.Helper()
	seen := map[string]int{}
	res := Explore(p.run(func(text string) { seen[text]++ }), WithStrategy(func(uint64) Strategy { return s }),
		WithSchedules(most), WithClock(p.mode))
	if res.Failure != nil {
		t.Fatalf("%v: %v", p, res.Failure)
	}
	return seen, res
}

// compare reports whether the program was small enough to explore completely, and how many schedules that took.
func (p agreement) compare(t *testing.T, most int) (done bool, all, few int) {
	t.Helper()
	full, full2 := p.outcomes(t, coarse{Exhaustive(-1)}, most)
	some, some2 := p.outcomes(t, DPOR(), most)
	if !some2.Complete {
		return false, 0, 0
	}
	missing := func(of, in map[string]int) (lost []string) {
		for o := range of {
			if in[o] == 0 {
				lost = append(lost, o)
			}
		}
		slices.Sort(lost)
		return lost
	}
	if lost := missing(full, some); len(lost) > 0 {
		t.Errorf("%v\n%d of %d outcomes are missing, of %d schedules in %d of DPOR: %s", p, len(lost), len(full), full2.Schedules, some2.Schedules, lost[0])
	}
	if !full2.Complete {
		return false, 0, 0
	}
	if lost := missing(some, full); len(lost) > 0 {
		t.Errorf("%v\nDPOR has an outcome that is not there: %s", p, lost[0])
	}
	return true, full2.Schedules, some2.Schedules
}

var (
	flagAgree     = flag.Int("sim.agree", 0, "how many random programs TestDPORAgreesWithExhaustive goes through")
	flagAgreeFrom = flag.Int("sim.agreefrom", 0, "the first of them")
)

func TestDPORAgreesWithExhaustive(t *testing.T) {
	onceInCI(t)
	want, most := *flagAgree, 1_500
	switch {
	case want > 0:
	case slowBuild():
		want = 20
	default:
		want = sized(150, 2_000)
	}
	programs, done, all, few := 0, 0, 0, 0
	for seed := uint64(*flagAgreeFrom); done < want && !t.Failed(); seed++ {
		programs++
		if ok, a, f := agreementOf(seed).compare(t, most); ok {
			done++
			all += a
			few += f
		}
	}
	t.Logf("%d of %d programs gone through: %d schedules, and %d of DPOR", done, programs, all, few)
}
