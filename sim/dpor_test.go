package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/search"
	"github.com/coir-go/coir/stream"
)

// A reduction that misses schedules looks like a fast one. So the tests compare it with a run of all schedules: they
// reduce each schedule to its trace, by a second and simpler definition of conflicts, and the two sets of traces must
// be equal. The two sets of what the programs observe must be equal too, which needs no definition.

// dporProgram is a program that reports what it has observed.
type dporProgram struct {
	name string
	mode ClockMode
	fn   func(ctx context.Context, say func(format string, args ...any))
	dup  bool // the reduction sees more conflicts than the test, so a trace may occur more than once
	big  bool // too many schedules: only those in which fibers begin, and start others, immediately
	ends bool // with big: they also end immediately, because no fiber notices
	many bool // even then there are very many
}

// simKey is the context key of the Sim.
type simKey struct{}

// coverage holds the traces and outcomes that a strategy has covered, each with the number of schedules.
type coverage struct {
	traces, outcomes map[string]int
	schedules        int
	redundant        int
}

func cover(t *testing.T, s Strategy, p dporProgram) coverage {
	t.Helper()
	c := coverage{traces: map[string]int{}, outcomes: map[string]int{}}
	var said []string
	fn := func(ctx context.Context, s *Sim) {
		said = said[:0]
		p.fn(context.WithValue(ctx, simKey{}, s), func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	}
	res := exploreAll(t, s, math.MaxInt, fn, func(o *observed, w *world) {
		c.traces[canonical(w, o.values)]++
		c.outcomes[strings.Join(said, " ")]++
	}, WithClock(p.mode))
	if !res.Complete {
		t.Fatal("not complete")
	}
	c.schedules = res.Schedules
	if d, ok := s.(*dpor); ok {
		c.redundant = d.search.Redundant
	}
	return c
}

var canonicalSeed = maphash.MakeSeed()

// canonical returns the trace of a schedule: which fiber does what in which order, and the order of every two
// conflicting operations. Fibers and channels are identified by their names. It leaves out that a fiber continues after
// an operation.
func canonical(w *world, values uint64) string {
	events := slices.DeleteFunc(slices.Clone(w.trace[:w.nsteps]), func(e event) bool { return e.op.Kind == opGoOn })
	label := make([]string, len(events))
	count := make([]int, w.nfibers)
	for i, e := range events {
		label[i] = fmt.Sprintf("%s.%d %s %s", w.fibers[e.fiber].f.Name(), count[e.fiber], e.op.Word(), e.op.Name)
		count[e.fiber]++
	}
	failed := make([]bool, w.nfibers)
	for i := 1; i < w.nfibers; i++ { // the first runs the program, and has not ended
		failed[i] = w.fibers[i].f.Wait(context.Background()) != nil
	}
	var sum uint64 // of the pairs, so that it does not depend on the order in which they are found
	for i, e := range events {
		for j, d := range events[:i] {
			if d.fiber == e.fiber || conflicting(w, failed, d, e) {
				sum += maphash.String(canonicalSeed, label[j]+"<"+label[i])
			}
		}
	}
	return fmt.Sprintf("%x %x %d", sum, values, len(events))
}

// conflicting is the simple definition of conflicts.
func conflicting(w *world, failed []bool, d, e event) bool {
	isChan := func(op policy.Op) bool { // or another object
		return onChannel(op.Kind) || op.Kind == policy.Leave || op.Kind == policy.Use && op.Object != 0
	}
	isSelect := func(k policy.Kind) bool { return k == policy.Select || k == policy.TrySelect }
	about := func(x event, op policy.Op) bool { // the select has a case that op is about
		for _, c := range w.cases[x.cases.first : x.cases.first+int(x.cases.n)] {
			if op.Kind == policy.End && c.op.Kind == policy.Wait || isChan(op) && isChan(c.op) && c.op.Name == op.Name {
				return true
			}
		}
		return false
	}
	all := func(x event) bool {
		return x.op.Kind == policy.Cancel || x.op.Kind == policy.End && failed[x.fiber]
	}
	switch a, b := d.op.Kind, e.op.Kind; {
	case all(d) || all(e) || w.mode == ClockRacing && d.at != e.at:
		return true
	case isChan(d.op) && isChan(e.op):
		return d.op.Name == e.op.Name
	case isSelect(a) && (isChan(e.op) || b == policy.End):
		return about(d, e.op)
	case isSelect(b) && (isChan(d.op) || a == policy.End):
		return about(e, d.op)
	case isSelect(a) && isSelect(b):
		for _, c := range w.cases[e.cases.first : e.cases.first+int(e.cases.n)] {
			if isChan(c.op) && about(d, c.op) {
				return true
			}
		}
	}
	return false
}

// A kind of operation that the reduction does not know conflicts with every operation, including those of its own kind.
func TestAnUnknownOperationConflictsWithEverything(t *testing.T) {
	s := new(dpor)
	for k := policy.RecvAsync + 1; k < opAdvance; k++ {
		for other := policy.Start; other <= k; other++ {
			for _, object := range []int32{-1, 7} {
				a, b := transition{kind: k, object: 3, in: -1}, transition{kind: other, object: object, in: -1}
				if !s.Conflict(a, b) || !s.Conflict(b, a) {
					t.Fatalf("kind %d does not conflict with %d (%v)", k, other, other)
				}
			}
		}
	}
}

// fibers runs each function as a fiber, named by its place.
func fibers(ctx context.Context, fns ...func(ctx context.Context) error) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for i, fn := range fns {
			n.Go("f", fn, coir.WithIndex(i))
		}
		return nil
	})
}

func say1[T any](say func(string, ...any), who int, v T, err error) {
	say("%d:%v,%v", who, v, err != nil)
}

var dporPrograms = []dporProgram{
	{name: "nothing shared", fn: func(ctx context.Context, _ func(string, ...any)) {
		f := func(name string) func(context.Context) error {
			c := coir.NewChan[int](2, coir.WithName(name))
			return func(ctx context.Context) error {
				_ = c.Send(ctx, 1)
				_, _ = c.Recv(ctx)
				return nil
			}
		}
		_ = fibers(ctx, f("a"), f("b"))
	}},
	{name: "everything shared", fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](9, coir.WithName("c"))
		f := func(i int) func(context.Context) error {
			return func(ctx context.Context) error {
				_ = c.Send(ctx, i)
				return c.Send(ctx, i)
			}
		}
		_ = fibers(ctx, f(1), f(2))
		for c.Len() > 0 {
			v, err := c.TryRecv()
			say1(say, 0, v, err)
		}
	}},
	{name: "lost update", many: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](1, coir.WithName("account"))
		_ = c.Send(ctx, 0)
		add := func(ctx context.Context) error {
			v, _ := c.Recv(ctx)
			_ = c.Send(ctx, v)
			_, _ = c.Recv(ctx)
			return c.Send(ctx, v+1)
		}
		_ = fibers(ctx, add, add)
		v, err := c.TryRecv()
		say1(say, 0, v, err)
	}},
	{name: "hand-over", fn: func(ctx context.Context, say func(string, ...any)) {
		c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](0, coir.WithName("d"))
		_ = fibers(ctx,
			func(ctx context.Context) error { _ = c.Send(ctx, 1); return d.Send(ctx, 2) },
			func(ctx context.Context) error {
				v, err := c.Recv(ctx)
				say1(say, 1, v, err)
				v, err = d.Recv(ctx)
				say1(say, 1, v, err)
				return nil
			})
	}},
	{name: "an event that fibers set, wait for and ask about", fn: func(ctx context.Context, say func(string, ...any)) {
		e := coir.NewEvent(coir.WithName("e"))
		var set [2]bool
		var waited error
		_ = fibers(ctx,
			func(context.Context) error { set[0] = e.Set(); return nil },
			func(ctx context.Context) error { waited = e.Wait(ctx); return nil },
			func(context.Context) error { set[1] = e.IsSet(); return nil })
		say("%v %v", set, waited)
	}},
	{name: "a promise with two results, in a select", dup: true, big: true, fn: func(ctx context.Context, say func(string, ...any)) {
		p := coir.NewPromise[int](coir.WithName("p"))
		c := coir.NewChan[int](1, coir.WithName("c"))
		var won, v int
		var err error
		_ = fibers(ctx,
			func(context.Context) error { p.Resolve(1); return nil },
			func(context.Context) error { p.Reject(errors.New("no")); return nil },
			func(context.Context) error { return c.TrySend(1) },
			func(ctx context.Context) error {
				var failed error
				if won, failed = coir.SelectPriority(ctx, p.DoneCase(&v, &err), c.RecvCase(nil)); failed != nil {
					return failed
				}
				return nil
			})
		say("%d %d %v", won, v, err)
	}},
	{name: "waits for a cancel", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		var errs [2]error
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range errs {
				n.Go("w", func(ctx context.Context) error { errs[i] = coir.WaitCancel(ctx); return nil }, coir.WithIndex(i))
			}
			n.Cancel(nil)
			return nil
		})
		say("%v %v", errs, err)
	}},
	{name: "close against send and receive", big: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		var err0, err1 error
		var v int
		_ = fibers(ctx,
			func(ctx context.Context) error { err0 = c.Send(ctx, 1); return nil },
			func(ctx context.Context) error { v, err1 = c.Recv(ctx); return nil },
			func(context.Context) error { c.Close(); return nil })
		say1(say, 0, 0, err0)
		say1(say, 1, v, err1)
	}},
	{name: "the last to leave a pipe closes it", big: true, many: true, fn: func(ctx context.Context, say func(string, ...any)) {
		w, r := coir.Pipe[int](1, coir.WithName("pipe"))
		var left int
		var err error
		two := w.Clone()
		_ = fibers(ctx,
			func(context.Context) error { w.Close(); return nil },
			func(context.Context) error { err = two.TrySend(1); two.Close(); return nil },
			func(ctx context.Context) error {
				for _, err := range r.All(ctx) {
					if err != nil {
						return err
					}
					left++
				}
				return nil
			})
		say("%d %v", left, err)
	}},
	{name: "two of three meet", big: true, fn: func(ctx context.Context, say func(string, ...any)) {
		x, y := coir.NewChan[int](3, coir.WithName("x")), coir.NewChan[int](3, coir.WithName("y"))
		var a, b error
		_ = fibers(ctx,
			func(context.Context) error { return x.TrySend(1) },
			func(context.Context) error { _, a = x.TryRecv(); return y.TrySend(1) },
			func(context.Context) error { _, b = y.TryRecv(); return nil })
		say("%v %v", a, b)
	}},
	{name: "wait for a fiber", big: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("f", func(context.Context) error { _ = c.TrySend(1); return nil })
			n.Go("g", func(ctx context.Context) error {
				_ = f.Wait(ctx)
				v, err := c.TryRecv()
				say1(say, 1, v, err)
				return nil
			})
			return nil
		})
	}},
	{name: "nurseries inside", big: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](2, coir.WithName("c"))
		var v int
		var err error
		_ = fibers(ctx,
			func(ctx context.Context) error {
				e := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("in", func(context.Context) error { _ = c.TrySend(1); return nil })
					return nil
				})
				_ = c.TrySend(2)
				return e
			},
			func(context.Context) error { v, err = c.TryRecv(); return nil })
		say1(say, 1, v, err)
	}},
	{name: "a fiber fails", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var a, b error
		err := fibers(ctx,
			func(context.Context) error { return coir.ErrTimeout },
			func(ctx context.Context) error {
				a = c.SendTimeout(ctx, 1, time.Second)
				_, b = c.TryRecv()
				return nil
			})
		say("%v %v %v", err, a, b)
	}},
	{name: "cancel", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var a, b error
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("f", func(ctx context.Context) error { a = c.Send(ctx, 1); return nil })
			n.Go("g", func(ctx context.Context) error { _, b = c.Recv(ctx); return nil })
			n.Cancel(nil)
			return nil
		})
		say("%v %v", a != nil, b != nil)
	}},
	{name: "select of two", big: true, dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c, d := coir.NewChan[int](1, coir.WithName("c")), coir.NewChan[int](1, coir.WithName("d"))
		var at int
		_ = fibers(ctx,
			func(context.Context) error { return c.TrySend(1) },
			func(ctx context.Context) error {
				var v, w int
				at, _ = coir.Select(ctx, c.RecvCase(&v), d.RecvCase(&w))
				return nil
			},
			func(context.Context) error { return d.TrySend(1) })
		say("%d", at)
	}},
	{name: "two channels meet in a select", big: true, dup: true, many: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](1, coir.WithName("d"))
		var at [3]int
		choose := func(ctx context.Context, i int, from, to *coir.Chan[int]) {
			var v int
			at[i], _ = coir.Select(ctx, from.RecvCase(&v), to.SendCase(i), coir.After(time.Second))
		}
		var err error
		_ = fibers(ctx,
			func(ctx context.Context) error {
				choose(ctx, 0, c, d)
				_, err = c.RecvTimeout(ctx, time.Second)
				return nil
			},
			func(ctx context.Context) error {
				_ = c.SendTimeout(ctx, 1, time.Second)
				choose(ctx, 1, d, c)
				return nil
			},
			func(ctx context.Context) error { d.Close(); choose(ctx, 2, c, d); return nil })
		say("%v %v", at, err)
	}},
	{name: "a wait for a fiber that time cuts short", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			slow := n.Go("slow", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				v, err := c.TryRecv()
				say1(say, 0, v, err)
				return nil
			})
			n.Go("impatient", func(ctx context.Context) error {
				ctx, cancel := coir.WithTimeout(ctx, time.Second)
				_ = slow.Wait(ctx)
				cancel()
				return c.TrySend(1)
			})
			return nil
		})
	}},
	{name: "a nursery with a limit", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			n.Go("f", func(ctx context.Context) error {
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error { // gives its place up if it must wait
					n.Go("in", func(context.Context) error { return nil })
					return nil
				})
				v, err := c.TryRecv()
				say1(say, 0, v, err)
				return nil
			})
			n.Go("g", func(context.Context) error { return c.TrySend(1) })
			return nil
		})
	}},
	{name: "a fiber for a nursery that ends", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		nurseries := coir.NewChan[*coir.Nursery](1, coir.WithName("nurseries"))
		late := false
		_ = fibers(ctx,
			func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error { return nurseries.TrySend(n) })
			},
			func(ctx context.Context) error {
				n, err := nurseries.RecvTimeout(ctx, time.Second)
				if err == nil {
					defer func() { late = recover() != nil }()
					n.Go("foreign", func(context.Context) error { return nil })
				}
				return nil
			})
		say("late: %v", late)
	}},
	{name: "the clock is moved", dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		s := ctx.Value(simKey{}).(*Sim)
		c := coir.NewChan[int](0, coir.WithName("c"))
		var err error
		_ = fibers(ctx,
			func(ctx context.Context) error { err = c.SendTimeout(ctx, 1, time.Second); return nil },
			func(context.Context) error { s.Advance(time.Second); _, err := c.TryRecv(); say("%v", err); return nil })
		say("%v", err)
	}},
	{name: "a timeout when nothing else can be", big: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var a, b error
		_ = fibers(ctx,
			func(ctx context.Context) error { _, a = c.RecvTimeout(ctx, time.Second); return nil },
			func(ctx context.Context) error { _, b = c.RecvTimeout(ctx, 2*time.Second); return nil },
			func(ctx context.Context) error { return c.SendTimeout(ctx, 1, time.Second) })
		say("%v %v", a, b)
	}},
	{name: "a timeout at any time", mode: ClockRacing, dup: true, fn: func(ctx context.Context, say func(string, ...any)) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var a, b error
		_ = fibers(ctx,
			func(ctx context.Context) error { _, a = c.RecvTimeout(ctx, time.Second); return nil },
			func(ctx context.Context) error { b = c.SendTimeout(ctx, 1, 2*time.Second); return nil })
		say("%v %v", a, b)
	}},
}

func TestDPORSeesEveryTraceOnce(t *testing.T) {
	onceInCI(t)
	for _, p := range dporPrograms {
		t.Run(p.name, func(t *testing.T) { compared(t, p) })
	}
}

// Programs that are compared only by their outcomes, with fibers that begin immediately. With a cancellation, eager
// leaves out the traces in which a fiber begins after it.
var dporOutcomes = []dporProgram{
	{name: "a wait for a fiber that another cuts short", fn: func(ctx context.Context, say func(string, ...any)) {
		c, cancels := coir.NewChan[int](1, coir.WithName("c")), coir.NewChan[func()](1, coir.WithName("cancels"))
		var got, cut error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			slow := n.Go("slow", func(context.Context) error { _, got = c.TryRecv(); return nil })
			n.Go("impatient", func(ctx context.Context) error {
				ctx, cancel := coir.WithCancelCause(ctx)
				_ = cancels.TrySend(func() { cancel(nil) })
				cut = slow.Wait(ctx)
				return c.TrySend(1)
			})
			n.Go("canceller", func(ctx context.Context) error {
				if cancel, err := cancels.Recv(ctx); err == nil {
					cancel()
				}
				return nil
			})
			return nil
		})
		say("%v %v", got, cut)
	}},
	{name: "two who waited are lent what was given back", fn: func(ctx context.Context, say func(string, ...any)) {
		made := 0
		pool := coir.NewPool(2, func(context.Context) (int, error) { made++; return made, nil }, nil)
		one, _ := pool.Get(ctx)
		two, _ := pool.Get(ctx)
		var got [2]int
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range got {
				n.Go("f", func(ctx context.Context) (err error) { got[i], err = pool.Get(ctx); return err }, coir.WithIndex(i))
			}
			_ = coir.Sleep(ctx, time.Second) // until both wait
			return errors.Join(pool.Put(one), pool.Put(two))
		})
		say("%v", got)
	}},
	{name: "cases become ready while nobody waits", fn: func(ctx context.Context, say func(string, ...any)) {
		sel := coir.NewSelector()
		defer sel.Clear()
		var fns [2]func(context.Context) error
		for i := range fns {
			c := coir.NewChan[int](1)
			sel.Add(c.RecvCase(nil))
			fns[i] = func(context.Context) error { return c.TrySend(1) }
		}
		_ = fibers(ctx, fns[:]...)
		at, err := sel.Wait(ctx)
		say1(say, 0, at, err)
	}},
	{name: "a task for a queue that is closed", fn: func(ctx context.Context, say func(string, ...any)) {
		var err error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			o := coir.NewOrdered[int](1)
			n.Go("close", func(context.Context) error { o.Close(); return nil })
			n.Go("go", func(ctx context.Context) error {
				err = o.Go(ctx, n, "task", func(context.Context) (int, error) { return 1, nil })
				return nil
			})
			return nil
		})
		say("%v", err)
	}},
	{name: "a result of a queue that is aborted", fn: func(ctx context.Context, say func(string, ...any)) {
		var err error
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			o := coir.NewOrdered[int](1)
			_ = o.Go(ctx, n, "task", func(context.Context) (int, error) { return 1, nil })
			_ = coir.Sleep(ctx, time.Second) // until the task has ended
			n.Go("abort", func(context.Context) error { o.Abort(nil); return nil })
			n.Go("recv", func(ctx context.Context) error { _, err = o.Recv(ctx); return nil })
			return nil
		})
		say("%v", err)
	}},
	{name: "a function for a promise that is resolved", fn: func(ctx context.Context, say func(string, ...any)) {
		p := coir.NewPromise[int]()
		inside, calledInside := false, false
		_ = fibers(ctx,
			func(context.Context) error { p.Resolve(1); return nil },
			func(context.Context) error {
				inside = true
				p.OnDone(func(int, error) { calledInside = inside })
				inside = false
				return nil
			})
		say("%v", calledInside)
	}},
	{name: "two wait at one selector", fn: func(ctx context.Context, say func(string, ...any)) {
		sel := coir.NewSelector()
		var errs [2]error
		wait := func(i int) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := coir.WithTimeout(ctx, time.Second)
				defer cancel()
				_, errs[i] = sel.Wait(ctx)
				return nil
			}
		}
		_ = fibers(ctx, wait(0), wait(1))
		say("%v", errs)
	}},
}

func TestDPORSeesEveryOutcome(t *testing.T) {
	onceInCI(t)
	for _, p := range dporOutcomes {
		t.Run(p.name, func(t *testing.T) {
			all, few := cover(t, eager{coarse{Exhaustive(-1)}, false}, p), cover(t, DPOR(), p)
			t.Logf("%d schedules, %d of DPOR, %d outcomes", all.schedules, few.schedules, len(all.outcomes))
			if len(all.outcomes) < 2 {
				t.Error("there is nothing to miss")
			}
			for o := range all.outcomes {
				if few.outcomes[o] == 0 {
					t.Errorf("the outcome %q is missing", o)
				}
			}
		})
	}
}

// A program that is too large for all schedules: the two orders of its results must be among those of DPOR.
func TestDPORSeesResultsInAnyOrder(t *testing.T) {
	seen := map[string]int{}
	res := Explore(func(ctx context.Context, s *Sim) {
		u := stream.ParallelUnordered(stream.FromSlice([]int{0, 1}), 2, func(_ context.Context, v int) (int, error) { return v, nil })
		v, err := stream.ToSlice(ctx, u)
		seen[fmt.Sprint(v, err)]++
	}, WithStrategy(func(uint64) Strategy { return DPOR() }), WithSchedules(10_000))
	if res.Failure != nil || seen["[0 1] <nil>"] == 0 || seen["[1 0] <nil>"] == 0 {
		t.Errorf("after %d schedules, complete: %v: %v, %v", res.Schedules, res.Complete, seen, res.Failure)
	}
}

// eager lets fibers begin, start others and perhaps end as soon as they can, and leaves the rest to Exhaustive.
type eager struct {
	Strategy
	ends bool
}

//go:norace
func (s eager) Choose(p *Fork) int {
	if p.After {
		return s.Strategy.Choose(p)
	}
	for i := range p.N {
		if f := p.Fiber(i); f >= 0 {
			x := &p.w.fibers[f]
			if k := x.op.Kind; k == policy.Start || x.pending && (k == policy.Go || s.ends && (k == policy.End || k == policy.Join)) {
				return i
			}
		}
	}
	return s.Strategy.Choose(p)
}

func compared(t *testing.T, p dporProgram) {
	t.Helper()
	if p.many {
		large(t, "all of very many schedules")
	}
	var plain Strategy = coarse{Exhaustive(-1)}
	if p.big {
		plain = eager{plain, p.ends}
	}
	all, few := cover(t, plain, p), cover(t, DPOR(), p)
	t.Logf("%d schedules, %d traces, %d outcomes; dpor: %d schedules, %d of them asleep", all.schedules, len(all.traces), len(all.outcomes),
		few.schedules, few.redundant)
	missing, twice := 0, 0
	for c := range all.traces {
		if few.traces[c] == 0 {
			missing++
		}
	}
	for c, n := range few.traces {
		if all.traces[c] == 0 {
			t.Error("a trace that is not there")
		}
		twice += n - 1
	}
	if missing > 0 {
		t.Errorf("%d of %d traces are missing", missing, len(all.traces))
	}
	for o := range all.outcomes {
		if few.outcomes[o] == 0 {
			t.Errorf("the outcome %q is missing", o)
		}
	}
	if twice > few.redundant && !p.dup {
		t.Errorf("%d traces came again, only %d were asleep", twice, few.redundant)
	}
}

// randomProgram returns a program of fibers that perform random operations on two channels. A fiber that would wait
// forever gives up when nothing else can happen.
func randomProgram(seed uint64) dporProgram {
	var r search.RNG
	r.Of(seed, 0)
	caps := [2]int{r.Below(3), r.Below(3)}
	n, most, kinds, mode := 2, 3, 16, ClockIdle
	switch r.Below(5) {
	case 0, 1:
		n, most, kinds = 3, 2, 14 // no fiber fails: see eager
	case 2:
		most, mode = 1, ClockRacing
	}
	ops := make([][]int, n)
	for i := range ops {
		ops[i] = make([]int, 1+r.Below(most))
		for k := range ops[i] {
			ops[i][k] = r.Below(kinds)
		}
	}
	return dporProgram{
		name: fmt.Sprintf("random %d", seed),
		mode: mode,
		dup:  true,
		big:  n > 2,
		fn: func(ctx context.Context, say func(string, ...any)) {
			cs := [2]*coir.Chan[int]{
				coir.NewChan[int](caps[0], coir.WithName("a")), coir.NewChan[int](caps[1], coir.WithName("b")),
			}
			seen := make([]string, n)
			fns := make([]func(context.Context) error, n)
			for i := range fns {
				fns[i] = func(ctx context.Context) error {
					for k, op := range ops[i] {
						c := cs[op%2]
						v, err := 10*i+k, error(nil)
						switch op / 2 {
						case 0:
							err = c.SendTimeout(ctx, v, time.Second)
						case 1:
							v, err = c.RecvTimeout(ctx, time.Second)
						case 2:
							err = c.TrySend(v)
						case 3:
							v, err = c.TryRecv()
						case 4:
							c.Close()
						case 5:
							_ = coir.Yield(ctx)
						case 6:
							var w int
							v, err = coir.Select(ctx, c.RecvCase(&w), cs[1-op%2].SendCase(v), coir.After(time.Second))
							v += 100 * w
						case 7:
							return coir.ErrTimeout
						}
						seen[i] += fmt.Sprintf(" %d,%v", v, err)
					}
					return nil
				}
			}
			_ = fibers(ctx, fns...)
			say("%q %d %d", seen, cs[0].Len(), cs[1].Len())
		},
	}
}

// chainProgram returns a program of three fibers that never wait, over three channels. There, trying only the fiber of
// the second operation of a race loses traces.
func chainProgram(seed uint64) dporProgram {
	var r search.RNG
	r.Of(seed, 1)
	var ops [3][3]int
	for i := range ops {
		for k := range ops[i] {
			ops[i][k] = r.Below(6)
		}
	}
	return dporProgram{
		name: fmt.Sprintf("chain %d", seed),
		big:  true,
		ends: true,
		fn: func(ctx context.Context, say func(string, ...any)) {
			var cs [3]*coir.Chan[int]
			for i, name := range []string{"a", "b", "c"} {
				cs[i] = coir.NewChan[int](9, coir.WithName(name))
			}
			var seen [3]string
			var fns [3]func(context.Context) error
			for i := range fns {
				fns[i] = func(context.Context) error {
					for _, op := range ops[i] {
						v, err := i, error(nil)
						if c := cs[op%3]; op < 3 {
							err = c.TrySend(v)
						} else {
							v, err = c.TryRecv()
						}
						seen[i] += fmt.Sprintf(" %d,%v", v, err)
					}
					return nil
				}
			}
			_ = fibers(ctx, fns[:]...)
			say("%q", seen)
		},
	}
}

// selectProgram returns a program of three fibers over three channels, in which some wait for two of them and the
// others use the third.
func selectProgram(seed uint64) dporProgram {
	var r search.RNG
	r.Of(seed, 2)
	var ops [3][2]int
	for i := range ops {
		for k := range ops[i] {
			ops[i][k] = r.Below(15)
		}
	}
	capacity := r.Below(2)
	return dporProgram{
		name: fmt.Sprintf("select %d", seed),
		big:  true,
		dup:  true,
		many: true,
		fn: func(ctx context.Context, say func(string, ...any)) {
			var cs [3]*coir.Chan[int]
			for i, name := range []string{"a", "b", "c"} {
				cs[i] = coir.NewChan[int](capacity, coir.WithName(name))
			}
			var seen [3]string
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				var last *coir.Fiber
				for i := range ops {
					before := last
					last = n.Go("f", func(ctx context.Context) error {
						for _, op := range ops[i] {
							v, err := i, error(nil)
							c, d := cs[op%3], cs[(op+1)%3]
							switch op / 3 {
							case 0:
								err = c.SendTimeout(ctx, v, time.Second)
							case 1:
								v, err = c.RecvTimeout(ctx, time.Second)
							case 2:
								v, err = coir.Select(ctx, c.RecvCase(nil), d.SendCase(i), coir.After(time.Second))
							case 3:
								v, err = coir.TrySelect(c.RecvCase(nil), d.SendCase(i))
							case 4:
								var end coir.Case
								if before != nil {
									end = before.DoneCase(nil)
								}
								v, err = coir.Select(ctx, c.RecvCase(nil), end, coir.After(time.Second))
							}
							seen[i] += fmt.Sprintf(" %d,%v", v, err)
						}
						return nil
					}, coir.WithIndex(i))
				}
				return nil
			})
			say("%q", seen)
		},
	}
}

var flagPrograms = flag.Int("sim.programs", 40, "random programs of TestDPORSeesEveryTraceOfRandomPrograms")

func TestDPORSeesEveryTraceOfRandomPrograms(t *testing.T) {
	onceInCI(t)
	programs := uint64(*flagPrograms)
	if testing.Short() || slowBuild() {
		programs = 3
	}
	for seed := range programs {
		all := []dporProgram{randomProgram(seed), chainProgram(seed)}
		if seed%4 == 0 {
			all = append(all, selectProgram(seed/4+1))
		}
		for _, p := range all {
			t.Run(p.name, func(t *testing.T) { compared(t, p) })
		}
	}
}

// Three fibers perform four operations each on their own channel and one on a common channel. Only the order of the
// common ones matters: 3! traces.
func TestDPORIgnoresWhatIsPrivate(t *testing.T) {
	res := exploreAll(t, DPOR(), math.MaxInt, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](3)
		f := func(ctx context.Context) error {
			own := coir.NewChan[int](2)
			_ = own.Send(ctx, 1)
			_ = own.Send(ctx, 1)
			_ = c.Send(ctx, 1)
			_, _ = own.Recv(ctx)
			_, _ = own.Recv(ctx)
			return nil
		}
		_ = fibers(ctx, f, f, f)
	}, func(*observed, *world) {})
	if !res.Complete || res.Schedules != 6 {
		t.Errorf("%d schedules", res.Schedules)
	}
}
