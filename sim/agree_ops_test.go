package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/stream"
	"github.com/coir-go/coir/supervise"
)

// The programs of TestDPORAgreesWithExhaustive use every exported operation of the root and of the satellites through
// which a fiber can affect another. TestEveryOperationIsDrawn compares the list with the packages.

// family is a set of operations on the same objects. A program has operations of one family, because those of different
// families would rarely affect each other.
type family struct {
	name  string
	make  func(st *stage) // makes what the fibers share
	does  []func(p *player)
	alone bool            // an operation starts fibers itself, so a program has only one
	large bool            // its operations have many steps, so a program has only two
	end   func(st *stage) // ends waits that do not end with a context; may be nil
}

// stage holds the objects that the fibers of a program share. Objects that the program does not use are nil.
type stage struct {
	s       *Sim
	n       *coir.Nursery
	program *agreement
	calls   strings.Builder // of functions that were given to OnDone

	chans     [2]*coir.Chan[int]
	cancels   *coir.Chan[func()]
	nurseries *coir.Chan[*coir.Nursery]
	pool      *coir.Pool[int]
	ordered   *coir.Ordered[int]
	writers   []*coir.Writer[int]
	readers   []*coir.Reader[int]
	sel       *coir.Selector
	event     *coir.Event
	promise   *coir.Promise[int]
	cond      *coir.Cond
	count     int // guarded by cond
	queue     coir.Queue
	tokens    tokens
	timer     *coir.Timer

	mutex     *locks.Mutex
	rw        *locks.RWMutex
	once      *locks.Once
	semaphore *locks.Semaphore
	barrier   *locks.Barrier
	broadcast *pubsub.Broadcast[int]
	latest    *pubsub.Latest[int]
	subs      []*pubsub.Subscription[int]
	limiter   *pace.Limiter
	ticker    *pace.Ticker
	desk      *desk.Desk[int]
	ticket    *desk.Ticket[int]
	boss      *supervise.Supervisor
	conns     [2]*netio.Conn
	listener  *netio.Listener
}

// player is a fiber of a program that performs one of its operations.
type player struct {
	*stage
	ctx    context.Context
	i      int // the number of the fiber
	v      int // a value that no other operation has
	a      int // 0 or 1
	d      time.Duration
	before []*coir.Fiber // the fibers that were started earlier
	log    *strings.Builder
}

func (p *player) tell(format string, args ...any) { fmt.Fprintf(p.log, format+" ", args...) }

// got records how an operation ended.
func (p *player) got(what string, err error) { p.tell("%s %s", what, ending(err)) }

func (p *player) gotValue(what string, v any, err error) { p.tell("%s %v %s", what, v, ending(err)) }

// called returns a function for OnDone. It may be called in another fiber, so it does not write to this fiber's log.
func (p *player) called(v int, err error) {
	fmt.Fprintf(&p.calls, "%d done %d %s ", p.i, v, ending(err))
}

func (p *player) c() *coir.Chan[int] { return p.chans[p.a] }

func (p *player) other() *coir.Chan[int] { return p.chans[1-p.a] }

// selects records how a select ended.
func (p *player) selects(what string, cases ...coir.Case) int {
	at, err := coir.Select(p.ctx, append(cases, coir.After(p.d))...)
	p.gotValue(what, at, err)
	return at
}

// all records the first two values of a sequence.
func (p *player) all(what string, seq iter.Seq2[int, error]) {
	n := 0
	for v, err := range seq {
		p.gotValue(what, v, err)
		if n++; n == 2 {
			break
		}
	}
}

// slice records the elements of a stream.
func slice[T any](p *player, what string, s stream.Stream[T]) {
	v, err := stream.ToSlice(p.ctx, s)
	p.gotValue(what, v, err)
}

// tokens is a coir.Resource.
type tokens struct{ left, taken int }

//go:norace
func (t *tokens) Take(n int) bool {
	if t.left < n {
		return false
	}
	t.left, t.taken = t.left-n, t.taken+n
	return true
}

//go:norace
func (t *tokens) Put(n int, _ bool) bool {
	if t.taken < n {
		return false
	}
	t.left, t.taken = t.left+n, t.taken-n
	return true
}

//go:norace
func (t *tokens) Verb(int) *coir.Verb { return tokenVerb }

var tokenVerb = &coir.Verb{Name: "take", Waits: "to take", Ends: "put"}

// everySecond is a coir.Schedule.
type everySecond struct{ last time.Duration }

//go:norace
func (s *everySecond) Due(int, time.Duration) time.Duration { return s.last + time.Second }

//go:norace
func (s *everySecond) Take(_ int, now time.Duration) int {
	n := (now - s.last) / time.Second
	s.last += n * time.Second
	return int(n)
}

func (s *everySecond) Words(int) string { return "for" }

// ender sets an event when a coir.Watch or a coir.Alarm ends.
type ender struct{ ev coir.Event }

func (e *ender) Ended(error) { e.ev.Set() }

// nothing is an io.Closer for stream.Using.
type nothing struct{ c *coir.Chan[int] }

func (n nothing) Close() error { return n.c.TrySend(9) }

var families = []family{
	{name: "channels", make: func(*stage) {}, does: []func(p *player){
		func(p *player) { p.got("send", p.c().Send(p.ctx, p.v)) },
		func(p *player) { p.got("send in time", p.c().SendTimeout(p.ctx, p.v, p.d)) },
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) {
			n, err := p.c().SendMany(p.ctx, []int{p.v, p.v + 1})
			p.gotValue("sendmany", n, err)
		},
		func(p *player) {
			v, err := p.c().Recv(p.ctx)
			p.gotValue("recv", v, err)
		},
		func(p *player) {
			v, err := p.c().RecvTimeout(p.ctx, p.d)
			p.gotValue("recv in time", v, err)
		},
		func(p *player) {
			v, err := p.c().TryRecv()
			p.gotValue("tryrecv", v, err)
		},
		func(p *player) {
			var into [2]int
			n, err := p.c().RecvMany(p.ctx, into[:])
			p.gotValue("recvmany", into[:n], err)
		},
		func(p *player) {
			var into [2]int
			n, err := p.c().RecvBatch(p.ctx, into[:], p.d)
			p.gotValue("recvbatch", into[:n], err)
		},
		func(p *player) { p.all("all", p.c().All(p.ctx)) },
		func(p *player) { p.tell("close %v", p.c().Close()) },
		func(p *player) { p.tell("abort %v", p.c().Abort(errFailed)) },
		func(p *player) {
			var v int
			p.selects("select", p.c().RecvCase(&v), p.other().SendCase(p.v))
			p.tell("%d", v)
		},
		func(p *player) {
			var v int
			at, err := coir.SelectPriority(p.ctx, p.other().SendCase(p.v), p.c().RecvCase(&v), coir.After(p.d))
			p.gotValue("priority", []int{at, v}, err)
		},
		func(p *player) {
			var v int
			at, err := coir.TrySelect(p.c().RecvCase(&v), p.other().SendCase(p.v))
			p.gotValue("tryselect", []int{at, v}, err)
		},
	}},
	{name: "asynchronous operations", large: true, make: func(*stage) {}, does: []func(p *player){
		func(p *player) {
			beginAsync(p.ctx, p.d, func(n *coir.Nursery) *coir.Promise[struct{}] { return p.c().SendAsync(n, p.v) },
				func(_ struct{}, err error) { p.got("sendasync", err) })
		},
		func(p *player) {
			beginAsync(p.ctx, p.d, p.c().RecvAsync, func(v int, err error) { p.gotValue("recvasync", v, err) })
		},
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) {
			v, err := p.c().TryRecv()
			p.gotValue("tryrecv", v, err)
		},
		func(p *player) { p.tell("close %v", p.c().Close()) },
		func(p *player) { p.n.Cancel(nil); p.tell("cancel") },
	}},
	{name: "pipes", make: func(st *stage) {
		w, r := coir.Pipe[int](st.program.caps[0])
		for range st.program.does {
			st.writers, st.readers = append(st.writers, w.Clone()), append(st.readers, r.Clone())
		}
		w.Close()
		r.Close()
	}, does: []func(p *player){
		func(p *player) { p.got("write", p.writers[p.i].Send(p.ctx, p.v)) },
		func(p *player) { p.got("write in time", p.writers[p.i].SendTimeout(p.ctx, p.v, p.d)) },
		func(p *player) { p.got("trywrite", p.writers[p.i].TrySend(p.v)) },
		func(p *player) {
			n, err := p.writers[p.i].SendMany(p.ctx, []int{p.v, p.v + 1})
			p.gotValue("writemany", n, err)
		},
		func(p *player) { p.selects("select write", p.writers[p.i].SendCase(p.v), p.writers[p.i].GoneCase()) },
		func(p *player) {
			w := p.writers[p.i].Clone()
			p.got("clone", w.TrySend(p.v))
			w.Close()
		},
		func(p *player) { p.tell("leave %v", p.writers[p.i].Close()) },
		func(p *player) {
			v, err := p.readers[p.i].Recv(p.ctx)
			p.gotValue("read", v, err)
		},
		func(p *player) {
			v, err := p.readers[p.i].RecvTimeout(p.ctx, p.d)
			p.gotValue("read in time", v, err)
		},
		func(p *player) {
			v, err := p.readers[p.i].TryRecv()
			p.gotValue("tryread", v, err)
		},
		func(p *player) {
			var into [2]int
			n, err := p.readers[p.i].RecvMany(p.ctx, into[:])
			p.gotValue("readmany", into[:n], err)
		},
		func(p *player) {
			var into [2]int
			n, err := p.readers[p.i].RecvBatch(p.ctx, into[:], p.d)
			p.gotValue("readbatch", into[:n], err)
		},
		func(p *player) { p.all("readall", p.readers[p.i].All(p.ctx)) },
		func(p *player) {
			var v int
			p.selects("select read", p.readers[p.i].RecvCase(&v), p.readers[p.i].GoneCase())
			p.tell("%d", v)
		},
		func(p *player) {
			r := p.readers[p.i].Clone()
			v, err := r.TryRecv()
			p.gotValue("clone", v, err)
			r.Close()
		},
		func(p *player) { p.tell("leave %v", p.readers[p.i].Close()) },
	}},
	{name: "pools", large: true, make: func(st *stage) {
		made := 0
		st.pool = coir.NewPool(1+st.program.caps[1], func(context.Context) (int, error) { made++; return made, nil }, nil)
	}, does: []func(p *player){
		func(p *player) {
			v, err := p.pool.Get(p.ctx)
			p.gotValue("get", v, err)
			if err == nil {
				p.got("put", p.pool.Put(v))
			}
		},
		func(p *player) {
			v, err := p.pool.Get(p.ctx)
			p.gotValue("get", v, err)
			if err == nil {
				_ = coir.Yield(p.ctx)
				p.got("discard", p.pool.Discard(v))
			}
		},
		func(p *player) {
			v, err := p.pool.TryGet()
			p.gotValue("tryget", v, err)
			if err == nil {
				p.got("trysend", p.c().TrySend(v))
				p.got("put", p.pool.Put(v))
			}
		},
		func(p *player) { p.tell("shut %v", p.pool.Close()) },
	}},
	{name: "ordered queues", large: true, make: func(st *stage) {
		st.ordered = coir.NewOrdered[int](st.program.caps[1])
	}, does: []func(p *player){
		func(p *player) {
			p.got("go", p.ordered.Go(p.ctx, p.n, "task", func(context.Context) (int, error) { return p.v, nil }))
		},
		func(p *player) {
			p.got("go", p.ordered.Go(p.ctx, p.n, "task", func(ctx context.Context) (int, error) { return p.v, coir.Yield(ctx) }))
		},
		func(p *player) {
			v, err := p.ordered.Recv(p.ctx)
			p.gotValue("recv", v, err)
		},
		func(p *player) { p.all("all", p.ordered.All(p.ctx)) },
		func(p *player) { p.tell("close %v", p.ordered.Close()) },
		func(p *player) { p.tell("abort %v", p.ordered.Abort(nil)) },
	}},
	{name: "events and promises", make: func(st *stage) {
		st.event, st.promise = coir.NewEvent(), coir.NewPromise[int]()
	}, does: []func(p *player){
		func(p *player) { p.tell("set %v", p.event.Set()) },
		func(p *player) { p.tell("isset %v", p.event.IsSet()) },
		func(p *player) { p.got("await", p.event.Wait(p.ctx)) },
		func(p *player) {
			var v int
			var err error
			p.selects("select", p.event.DoneCase(), p.promise.DoneCase(&v, &err))
			p.gotValue("", v, err)
		},
		func(p *player) { p.tell("resolve %v", p.promise.Resolve(p.v)) },
		func(p *player) { p.tell("reject %v", p.promise.Reject(errFailed)) },
		func(p *player) {
			v, err := p.promise.Wait(p.ctx)
			p.gotValue("await", v, err)
		},
		func(p *player) {
			p.promise.OnDone(p.called)
			p.tell("ondone")
		},
	}},
	{name: "conditions", make: func(st *stage) { st.cond = coir.NewCond() }, does: []func(p *player){
		func(p *player) {
			p.cond.Lock()
			for p.count == 0 {
				if err := p.cond.Wait(p.ctx); err != nil {
					p.got("wait", err)
					break
				}
			}
			p.count--
			p.tell("has %d", p.count)
			p.cond.Unlock()
		},
		func(p *player) {
			p.cond.Lock()
			p.count++
			p.tell("signal %v %d", p.cond.Signal(), p.count)
			p.cond.Unlock()
		},
		func(p *player) {
			p.cond.Lock()
			p.count++
			p.tell("broadcast %d %d", p.cond.Broadcast(), p.count)
			p.cond.Unlock()
		},
		func(p *player) {
			if p.cond.TryLock() {
				p.tell("trylock %d", p.count)
				p.cond.Unlock()
			}
		},
		func(p *player) {
			p.cond.Lock()
			changed := p.cond.WaitCase()
			p.cond.Unlock()
			p.selects("select", changed, p.c().RecvCase(nil))
		},
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
	}},
	{name: "queues", make: func(st *stage) { st.tokens.left = 1 + st.program.caps[1] }, does: []func(p *player){
		func(p *player) {
			err := p.queue.Take(p.ctx, &p.tokens, 1)
			p.got("take", err)
			if err == nil {
				p.tell("put %v", p.queue.Put(&p.tokens, 1))
			}
		},
		func(p *player) { p.got("take", p.queue.Take(p.ctx, &p.tokens, 1)) },
		func(p *player) { p.got("take 2", p.queue.Take(p.ctx, &p.tokens, 2)) },
		func(p *player) { p.tell("trytake %v", p.queue.TryTake(&p.tokens, 1)) },
		func(p *player) { p.tell("put %v", p.queue.Put(&p.tokens, 1)) },
		func(p *player) { p.selects("select", p.queue.TakeCase(&p.tokens, 1), p.c().RecvCase(nil)) },
	}},
	{name: "time", make: func(st *stage) { st.timer = coir.NewTimer(new(everySecond)) }, does: []func(p *player){
		func(p *player) {
			n, err := p.timer.Wait(p.ctx, 1)
			p.gotValue("wait", n, err)
		},
		func(p *player) {
			n, ok := p.timer.TryWait(1)
			p.tell("trywait %d %v", n, ok)
		},
		func(p *player) {
			n := 0
			p.selects("select", p.timer.WaitCase(&n), p.c().RecvCase(nil))
			p.tell("%d", n)
		},
		func(p *player) { p.got("sleep", coir.Sleep(p.ctx, p.d)) },
		func(p *player) { p.got("sleep", coir.Sleep(p.ctx, coir.Jitter(p.ctx, p.d))) },
		func(p *player) { p.s.Advance(p.d); p.tell("advance") },
		func(p *player) {
			e, a := new(ender), new(coir.Alarm)
			a.Start(p.ctx, e, p.d)
			p.selects("alarm", e.ev.DoneCase(), p.c().RecvCase(nil))
			p.tell("%v", a.Stop())
		},
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) { p.tell("at %v", coir.Now(p.ctx)) },
	}},
	{name: "contexts", make: func(st *stage) { st.cancels = coir.NewChan[func()](1) }, does: []func(p *player){
		func(p *player) {
			ctx, cancel := coir.WithCancel(p.ctx)
			defer cancel()
			p.got("give", p.cancels.TrySend(cancel))
			v, err := p.c().Recv(ctx)
			p.gotValue("recv", v, err)
		},
		func(p *player) {
			ctx, cancel := coir.WithCancelCause(p.ctx)
			p.got("give", p.cancels.TrySend(func() { cancel(errFailed) }))
			p.got("wait", coir.WaitCancel(ctx))
			p.tell("%v", context.Cause(ctx))
		},
		func(p *player) {
			ctx, cancel := coir.WithTimeout(p.ctx, p.d)
			defer cancel()
			p.got("send", p.c().Send(ctx, p.v))
		},
		func(p *player) {
			ctx, cancel := coir.WithDeadline(p.ctx, time.Unix(1, 0))
			defer cancel()
			p.got("send", p.c().Send(ctx, p.v))
		},
		func(p *player) {
			ctx, cancel := coir.WithGrace(p.ctx, p.d)
			defer cancel()
			v, err := p.c().Recv(ctx)
			p.gotValue("recv", v, err)
		},
		func(p *player) {
			ctx := coir.Shield(p.ctx)
			p.got("yield", coir.Yield(ctx))
			v, err := p.c().RecvTimeout(ctx, p.d)
			p.gotValue("recv", v, err)
		},
		func(p *player) {
			if cancel, err := p.cancels.TryRecv(); err == nil {
				cancel()
				p.tell("cut")
			}
		},
		func(p *player) { p.n.Cancel(errFailed); p.tell("cancel") },
		func(p *player) {
			e, w := new(ender), new(coir.Watch)
			if err := w.Start(p.ctx, e); err != nil {
				p.got("watch", err)
				return
			}
			p.selects("watch", e.ev.DoneCase(), p.c().RecvCase(nil))
			p.tell("%v", w.Stop())
		},
		func(p *player) {
			p.got("trysend", p.c().TrySend(p.v))
			p.got("ended", coir.Ended(p.ctx))
		},
		func(p *player) { coir.Point(p.ctx); p.got("trysend", p.c().TrySend(p.v)) },
	}},
	{name: "nurseries", large: true, make: func(st *stage) { st.nurseries = coir.NewChan[*coir.Nursery](1) }, does: []func(p *player){
		func(p *player) {
			err := coir.Run(p.ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("in", func(ctx context.Context) error {
					v, err := p.c().RecvTimeout(ctx, p.d)
					p.gotValue("in", v, err)
					return nil
				})
				return nil
			})
			p.got("run", err)
		},
		func(p *player) { // a nursery that others may start fibers in
			err := coir.Run(p.ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Limit(1 + p.a)
				p.got("open", p.nurseries.TrySend(n))
				return nil
			})
			p.got("run", err)
		},
		func(p *player) {
			if m, err := p.nurseries.TryRecv(); err == nil {
				defer func() { p.tell("go %v", recover() == nil) }()
				m.Go("foreign", func(context.Context) error { _ = p.c().TrySend(p.v); return nil })
			}
		},
		func(p *player) {
			v, err := p.start().Wait(p.ctx)
			p.gotValue("task", v, err)
		},
		func(p *player) {
			var v int
			var err error
			p.selects("select task", p.start().DoneCase(&v, &err), p.c().RecvCase(nil))
			p.gotValue("", v, err)
		},
		func(p *player) { p.got("wait", p.start().Fiber().Wait(p.ctx)) },
		func(p *player) {
			if len(p.before) > 0 {
				p.got("wait", p.before[0].Wait(p.ctx))
			}
		},
		func(p *player) {
			if len(p.before) > 0 {
				var err error
				p.selects("done", p.before[0].DoneCase(&err), p.c().RecvCase(nil))
				p.got("", err)
			}
		},
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) { p.n.Cancel(nil); p.tell("cancel") },
	}},
	{name: "calls of many functions", alone: true, make: func(*stage) {}, does: []func(p *player){
		func(p *player) {
			f := func(ctx context.Context) (int, error) { return p.c().TryRecv() }
			v, err := coir.Race(p.ctx, f, func(context.Context) (int, error) { return p.v, p.c().TrySend(p.v) })
			p.gotValue("race", v, err)
		},
		func(p *player) {
			err := coir.ForEach(p.ctx, 1+p.a, slices.Values([]int{1, 2}), func(_ context.Context, v int) error { return p.c().TrySend(v) })
			p.got("foreach", err)
		},
		func(p *player) {
			v, err := coir.Map(p.ctx, 1+p.a, slices.Values([]int{1, 2}), func(_ context.Context, v int) (int, error) {
				_ = p.c().TrySend(v)
				return p.c().TryRecv()
			})
			p.gotValue("map", v, err)
		},
	}},
	{name: "selectors", large: true, make: func(st *stage) { st.sel = coir.NewSelector() }, does: []func(p *player){
		func(p *player) { p.tell("add %d", p.sel.Add(p.c().RecvCase(nil))) },
		func(p *player) {
			id := p.sel.Add(p.c().RecvCase(nil))
			_ = coir.Yield(p.ctx)
			p.tell("remove %v", p.sel.Remove(id))
		},
		func(p *player) {
			ctx, cancel := coir.WithTimeout(p.ctx, p.d)
			defer cancel()
			at, err := p.sel.Wait(ctx)
			p.gotValue("wait", at, err)
		},
		func(p *player) {
			own := coir.NewSelector()
			own.Add(p.c().RecvCase(nil))
			own.Add(coir.After(p.d))
			at, err := own.Wait(p.ctx)
			own.Clear()
			p.gotValue("own", at, err)
		},
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) { p.got("send", p.c().Send(p.ctx, p.v)) },
		func(p *player) { p.tell("close %v", p.c().Close()) },
	}},
	{name: "simulation", make: func(*stage) {}, does: []func(p *player){
		func(p *player) {
			type key struct{}
			s := coir.Simulated(p.ctx)
			v := s.State(key{}, func() any { return p.chans[0] }).(*coir.Chan[int])
			p.got("state", v.TrySend(s.Intn(2)))
		},
		func(p *player) { p.tell("fault %v", coir.Simulated(p.ctx).Fault("none")) },
		func(p *player) {
			v, err := p.chans[0].TryRecv()
			p.gotValue("tryrecv", v, err)
		},
	}},
	{name: "locks", large: true, make: func(st *stage) {
		st.mutex, st.rw, st.once = locks.NewMutex(), locks.NewRWMutex(), locks.NewOnce()
	}, does: []func(p *player){
		func(p *player) {
			if err := p.mutex.Lock(p.ctx); err != nil {
				p.got("lock", err)
				return
			}
			p.got("locked", p.c().TrySend(p.v))
			p.mutex.Unlock()
		},
		func(p *player) {
			ok := p.mutex.TryLock()
			p.tell("trylock %v", ok)
			if ok {
				_ = coir.Yield(p.ctx)
				p.mutex.Unlock()
			}
		},
		func(p *player) {
			if p.selects("select", p.mutex.LockCase(), p.c().RecvCase(nil)) == 0 {
				p.mutex.Unlock()
			}
		},
		func(p *player) {
			l := p.mutex.Locker(p.ctx)
			l.Lock()
			p.got("locker", p.c().TrySend(p.v))
			l.Unlock()
		},
		func(p *player) {
			p.got("once", p.once.Do(p.ctx, func(ctx context.Context) error { return p.c().TrySend(p.v) }))
		},
		func(p *player) { p.n.Cancel(nil); p.tell("cancel") },
		func(p *player) {
			v, err := p.c().TryRecv()
			p.gotValue("tryrecv", v, err)
		},
	}},
	{name: "readers and writers", large: true, make: func(st *stage) { st.rw = locks.NewRWMutex() }, does: []func(p *player){
		func(p *player) {
			if err := p.rw.Lock(p.ctx); err != nil {
				p.got("lock", err)
				return
			}
			p.got("locked", p.c().TrySend(p.v))
			p.rw.Unlock()
		},
		func(p *player) {
			if err := p.rw.RLock(p.ctx); err != nil {
				p.got("rlock", err)
				return
			}
			v, err := p.c().TryRecv()
			p.gotValue("rlocked", v, err)
			p.rw.RUnlock()
		},
		func(p *player) {
			if ok := p.rw.TryLock(); ok {
				_ = coir.Yield(p.ctx)
				p.tell("trylock")
				p.rw.Unlock()
			}
		},
		func(p *player) {
			if ok := p.rw.TryRLock(); ok {
				_ = coir.Yield(p.ctx)
				p.tell("tryrlock")
				p.rw.RUnlock()
			}
		},
		func(p *player) {
			if p.selects("select", p.rw.LockCase(), p.c().RecvCase(nil)) == 0 {
				p.rw.Unlock()
			}
		},
		func(p *player) {
			if p.selects("rselect", p.rw.RLockCase(), p.c().RecvCase(nil)) == 0 {
				p.rw.RUnlock()
			}
		},
	}},
	{name: "semaphores and barriers", make: func(st *stage) {
		st.semaphore, st.barrier = locks.NewSemaphore(2), locks.NewBarrier(2)
	}, does: []func(p *player){
		func(p *player) {
			err := p.semaphore.Acquire(p.ctx, 1+p.a)
			p.got("acquire", err)
			if err == nil {
				p.got("trysend", p.c().TrySend(p.v))
				p.semaphore.Release(1 + p.a)
			}
		},
		func(p *player) {
			ok := p.semaphore.TryAcquire(1 + p.a)
			p.tell("tryacquire %v", ok)
			if ok {
				_ = coir.Yield(p.ctx)
				p.semaphore.Release(1 + p.a)
			}
		},
		func(p *player) {
			if p.selects("select", p.semaphore.AcquireCase(2), p.c().RecvCase(nil)) == 0 {
				p.semaphore.Release(2)
			}
		},
		func(p *player) {
			round, last, err := p.barrier.Wait(p.ctx)
			p.gotValue("barrier", []any{round, last}, err)
		},
		func(p *player) {
			v, err := p.c().TryRecv()
			p.gotValue("tryrecv", v, err)
		},
	}},
	{name: "broadcasts", large: true, make: func(st *stage) {
		st.broadcast = pubsub.NewBroadcast[int]()
		for range st.program.does {
			st.subs = append(st.subs, st.broadcast.Subscribe(st.program.caps[1]))
		}
	}, does: []func(p *player){
		func(p *player) { p.got("publish", p.broadcast.Publish(p.ctx, p.v)) },
		func(p *player) {
			s := p.broadcast.Subscribe(1)
			_ = coir.Yield(p.ctx)
			v, err := s.TryRecv()
			p.gotValue("subscribe", v, err)
			s.Close()
		},
		func(p *player) { p.broadcast.Close(); p.tell("close") },
		func(p *player) {
			v, err := p.subs[p.i].Recv(p.ctx)
			p.gotValue("recv", v, err)
		},
		func(p *player) {
			v, err := p.subs[p.a].TryRecv()
			p.gotValue("tryrecv", v, err)
		},
		func(p *player) { p.subs[p.a].Close(); p.tell("leave") },
		func(p *player) {
			var v int
			p.selects("select", p.subs[p.i].RecvCase(&v))
			p.tell("%d", v)
		},
		func(p *player) {
			var into [2]int
			n, err := p.subs[p.i].RecvMany(p.ctx, into[:])
			p.gotValue("recvmany", into[:n], err)
		},
		func(p *player) {
			var into [2]int
			n, err := p.subs[p.i].RecvBatch(p.ctx, into[:], p.d)
			p.gotValue("recvbatch", into[:n], err)
		},
		func(p *player) { p.all("all", p.subs[p.i].All(p.ctx)) },
	}},
	{name: "latest values", large: true, make: func(st *stage) {
		st.latest = pubsub.NewLatest(7)
		st.subs = append(st.subs, st.latest.Watch())
	}, does: []func(p *player){
		func(p *player) { p.got("set", p.latest.Set(p.v)) },
		func(p *player) { p.tell("get %d", p.latest.Get()) },
		func(p *player) {
			s := p.latest.Watch()
			_ = coir.Yield(p.ctx)
			v, err := s.TryRecv()
			p.gotValue("watch", v, err)
			s.Close()
		},
		func(p *player) { p.latest.Close(); p.tell("close") },
		func(p *player) {
			v, err := p.subs[0].Recv(p.ctx)
			p.gotValue("recv", v, err)
		},
	}},
	{name: "pace", make: func(st *stage) {
		st.limiter, st.ticker = pace.NewLimiter(time.Second, 2), pace.NewTicker(time.Second)
	}, does: []func(p *player){
		func(p *player) { p.got("token", p.limiter.Wait(p.ctx)) },
		func(p *player) { p.got("tokens", p.limiter.WaitN(p.ctx, 2*p.a)) },
		func(p *player) { p.tell("trywait %v", p.limiter.TryWaitN(1+p.a)) },
		func(p *player) {
			n, err := p.ticker.Wait(p.ctx)
			p.gotValue("tick", n, err)
		},
		func(p *player) {
			n := 0
			p.selects("select", p.ticker.WaitCase(&n), p.c().RecvCase(nil))
			p.tell("%d", n)
		},
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) { p.n.Cancel(nil); p.tell("cancel") },
	}},
	{name: "supervisors", large: true, make: func(st *stage) {
		child := supervise.Child{Name: "child", Restart: supervise.RestartTransient, Run: func(context.Context) error {
			if _, err := st.chans[0].TryRecv(); err == nil {
				return errFailed
			}
			return nil
		}}
		st.boss = supervise.New([]supervise.Child{child}, supervise.WithName("boss"), supervise.WithBackoff(0, 0),
			supervise.WithIntensity(1, time.Minute))
	}, does: []func(p *player){
		func(p *player) { p.tell("run %.12v", p.boss.Run(p.ctx)) },
		func(p *player) {
			e, err := p.boss.Events().TryRecv()
			p.gotValue("event", e.Kind, err)
		},
		func(p *player) { p.got("trysend", p.chans[0].TrySend(p.v)) },
	}},
	{name: "desks", large: true, make: func(st *stage) {
		over := []coir.OverflowPolicy{coir.OverflowWait, coir.OverflowFail}[st.program.pick]
		st.desk = desk.New[int](desk.WithName("d"), desk.WithLimit(1+st.program.caps[1]), desk.WithOverflow(over))
		st.ticket, _ = st.desk.Open(context.Background())
	}, does: []func(p *player){
		func(p *player) {
			t, err := p.desk.Open(p.ctx)
			p.got("open", err)
			if err == nil {
				_ = coir.Yield(p.ctx)
				p.tell("cancel %v", t.Cancel())
			}
		},
		func(p *player) {
			t, err := p.desk.OpenTimeout(p.ctx, p.d)
			p.got("open in time", err)
			if err == nil {
				v, err := t.Wait(p.ctx)
				p.gotValue("wait", v, err)
			}
		},
		func(p *player) { p.got("resolve", p.desk.Resolve(p.ticket.ID(), p.v)) },
		func(p *player) { p.got("reject", p.desk.Reject(p.ticket.ID(), errFailed)) },
		func(p *player) { p.tell("failall %d", p.desk.FailAll(errFailed)) },
		func(p *player) {
			n := 0
			for range p.desk.All() {
				n++
			}
			p.tell("all %d", n)
		},
		func(p *player) {
			v, err := p.ticket.Wait(p.ctx)
			p.gotValue("wait", v, err)
		},
		func(p *player) {
			var v int
			var err error
			p.selects("select", p.ticket.DoneCase(&v, &err), p.c().RecvCase(nil))
			p.gotValue("", v, err)
		},
		func(p *player) {
			p.ticket.OnDone(p.called)
			p.tell("ondone")
		},
		func(p *player) { p.tell("cancel %v", p.ticket.Cancel()) },
	}},
	{name: "networks", large: true, end: func(st *stage) {
		_ = st.listener.Close()
		for _, c := range st.conns {
			_ = c.Close()
		}
	}, make: func(st *stage) {
		l, _ := netio.Listen("tcp", "here:1")
		st.listener = l.(*netio.Listener)
		c, _ := netio.Dial("tcp", "here:1")
		st.conns[0] = c.(*netio.Conn)
		st.conns[1], _ = st.listener.AcceptContext(context.Background())
	}, does: []func(p *player){
		func(p *player) {
			var b [4]byte
			n, err := p.conns[p.a].Read(b[:])
			p.gotValue("read", string(b[:n]), err)
		},
		func(p *player) {
			var b [4]byte
			n, err := p.conns[p.a].ReadContext(p.ctx, b[:])
			p.gotValue("read in", string(b[:n]), err)
		},
		func(p *player) {
			n, err := p.conns[p.a].Write([]byte{'a' + byte(p.v)})
			p.gotValue("write", n, err)
		},
		func(p *player) {
			n, err := p.conns[p.a].WriteContext(p.ctx, []byte{'a' + byte(p.v)})
			p.gotValue("write in", n, err)
		},
		func(p *player) { p.got("close", p.conns[p.a].Close()) },
		func(p *player) { p.got("closeread", p.conns[p.a].CloseRead()) },
		func(p *player) { p.got("closewrite", p.conns[p.a].CloseWrite()) },
		func(p *player) { p.got("deadline", p.conns[p.a].SetDeadline(time.Unix(1, 0))) },
		func(p *player) { p.got("read deadline", p.conns[p.a].SetReadDeadline(time.Unix(1, 0))) },
		func(p *player) { p.got("write deadline", p.conns[p.a].SetWriteDeadline(time.Unix(1, 0))) },
		func(p *player) {
			c := p.c()
			p.got("onreadable", p.conns[p.a].OnReadable(func() { _ = c.TrySend(1) }))
		},
		func(p *player) {
			v, err := p.c().TryRecv()
			p.gotValue("tryrecv", v, err)
		},
	}},
	{name: "listeners", large: true, end: func(st *stage) { _ = st.listener.Close() }, make: func(st *stage) {
		l, _ := new(netio.ListenConfig).Listen(context.Background(), "tcp", "here:1")
		st.listener = l.(*netio.Listener)
	}, does: []func(p *player){
		func(p *player) {
			c, err := netio.Dial("tcp", "here:1")
			p.dialled(c, err)
		},
		func(p *player) {
			c, err := new(netio.Dialer).Dial("tcp", "here:1")
			p.dialled(c, err)
		},
		func(p *player) {
			c, err := new(netio.Dialer).DialContext(p.ctx, "tcp", "here:1")
			p.dialled(c, err)
		},
		func(p *player) {
			_, err := p.listener.Accept()
			p.got("accept", err)
		},
		func(p *player) {
			_, err := p.listener.AcceptContext(p.ctx)
			p.got("accept in", err)
		},
		func(p *player) { p.got("close", p.listener.Close()) },
		func(p *player) { p.got("deadline", p.listener.SetDeadline(time.Unix(1, 0))) },
		func(p *player) {
			_, err := netio.Listen("tcp", "here:1")
			p.got("listen", err)
		},
		func(p *player) {
			_, err := new(netio.ListenConfig).Listen(p.ctx, "tcp", "here:1")
			p.got("listen in", err)
		},
	}},
	{name: "streams in one fiber", large: true, make: func(*stage) {}, does: []func(p *player){
		func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
		func(p *player) { p.tell("close %v", p.c().Close()) },
		func(p *player) { p.n.Cancel(nil); p.tell("cancel") },
		func(p *player) {
			n, err := stream.Count(p.ctx, stream.FromSlice([]int{1, 2}))
			p.gotValue("count", n, err)
		},
		func(p *player) {
			v, err := stream.First(p.ctx, stream.From(p.c()))
			p.gotValue("first", v, err)
		},
		func(p *player) {
			err := stream.ForEach(p.ctx, stream.FromSeq(slices.Values([]int{1, 2})), func(ctx context.Context, v int) error { return p.c().TrySend(v) })
			p.got("foreach", err)
		},
		func(p *player) {
			v, err := stream.Reduce(p.ctx, stream.Take(stream.From(p.c()), 1), 1, func(a, v int) int { return a + v })
			p.gotValue("reduce", v, err)
		},
		func(p *player) { p.got("to", stream.To(p.ctx, stream.FromSlice([]int{p.v}), p.c())) },
		func(p *player) {
			p.all("all", stream.Skip(stream.FromFunc(func(context.Context) (int, error) { return p.c().TryRecv() }), 1).All(p.ctx))
		},
		func(p *player) {
			slice(p, "map", stream.Map(stream.Take(stream.FromSeq2(p.c().All(p.ctx)), 1), func(v int) int { return v + 1 }))
		},
		func(p *player) {
			slice(p, "maperr", stream.MapErr(stream.FromSlice([]int{1}), func(ctx context.Context, v int) (int, error) { return v, p.c().TrySend(v) }))
		},
		func(p *player) {
			s := stream.Filter(stream.TakeWhile(stream.From(p.c()), func(v int) bool { return false }), func(int) bool { return true })
			slice(p, "filter", s)
		},
		func(p *player) {
			s := stream.Compact(stream.Distinct(stream.Concat(stream.FromSlice([]int{1, 1}), stream.Take(stream.From(p.c()), 1))))
			slice(p, "distinct", s)
		},
		func(p *player) {
			s := stream.Enumerate(stream.Scan(stream.Take(stream.From(p.c()), 1), 1, func(a, v int) int { return a + v }), func(i, v int) int { return i + v })
			slice(p, "scan", s)
		},
		func(p *player) {
			s := stream.FlatMap(stream.FromSlice([]int{1}), func(v int) stream.Stream[int] { return stream.Take(stream.From(p.c()), v) })
			slice(p, "flatmap", s)
		},
		func(p *player) {
			s := stream.FromFunc(func(context.Context) (int, error) { return p.c().TryRecv() })
			s = stream.Catch(stream.Take(s, 1), func(err error) (stream.Stream[int], error) { return stream.FromSlice([]int{8}), nil })
			slice(p, "catch", s)
		},
		func(p *player) {
			s := stream.FromFunc(func(context.Context) (int, error) { return p.c().TryRecv() })
			slice(p, "retry", stream.Take(stream.Retry(s, 1, time.Second, time.Second), 1))
		},
		func(p *player) {
			s := stream.Using(func(context.Context) (nothing, error) { return nothing{p.c()}, nil },
				func(n nothing) stream.Stream[int] { return stream.Take(stream.From(n.c), 1) })
			slice(p, "using", s)
		},
		func(p *player) {
			slice(p, "lines", stream.Lines(io.Reader(bytes.NewReader([]byte("a\nb")))))
		},
		func(p *player) {
			slice(p, "monitor", stream.Monitor(stream.Take(stream.From(p.c()), 1), new(stream.Meter)))
		},
		func(p *player) {
			slice(p, "throttle", stream.Take(stream.Throttle(stream.From(p.c()), time.Second, 1), 1))
		},
		func(p *player) { slice(p, "ticks", stream.Take(stream.Ticks(time.Second), 1)) },
		func(p *player) {
			ctx, cancel := coir.WithTimeout(p.ctx, p.d)
			defer cancel()
			slice(p, "until", stream.Until(ctx, stream.From(p.c())))
		},
	}},
	{name: "streams in several fibers", alone: true, make: func(*stage) {}, does: []func(p *player){
		func(p *player) {
			err := coir.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
				r := stream.Downstream(n, "down", stream.FromSlice([]int{1}), p.a)
				v, err := r.Recv(ctx)
				p.gotValue("down", v, err)
				p.tell("%v", r.Close())
				return nil
			})
			p.got("run", err)
		},
		func(p *player) {
			err := coir.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
				w := stream.Upstream(n, "up", p.c(), p.a, func(s stream.Stream[int]) stream.Stream[int] { return s })
				p.got("up", w.Send(ctx, 1))
				p.tell("%v", w.Close())
				return nil
			})
			p.got("run", err)
		},
		func(p *player) {
			err := coir.Run(p.ctx, func(ctx context.Context, n *coir.Nursery) error {
				w, r := stream.TwoEnded(n, "both", 1, func(s stream.Stream[int]) stream.Stream[int] { return s })
				p.got("in", w.Send(ctx, 1))
				p.tell("%v", w.Close())
				v, err := r.Recv(ctx)
				p.gotValue("out", v, err)
				p.tell("%v", r.Close())
				return nil
			})
			p.got("run", err)
		},
		func(p *player) {
			seen := func(ctx context.Context, s stream.Stream[int]) error {
				v, err := stream.First(ctx, s)
				_ = p.c().TrySend(v)
				return err
			}
			p.got("tee", stream.Tee(p.ctx, stream.FromSlice([]int{1}), 1, seen))
		},
		func(p *player) {
			first := func(ctx context.Context, s stream.Stream[int]) error { _, err := stream.First(ctx, s); return err }
			p.got("fanout", stream.FanOut(p.ctx, stream.FromSlice([]int{1}), first))
		},
		func(p *player) {
			first := func(ctx context.Context, s stream.Stream[int]) error { _, err := stream.First(ctx, s); return err }
			p.got("partition", stream.Partition(p.ctx, stream.FromSlice([]int{1}), 1, func(int) int { return 0 }, first))
		},
		func(p *player) { slice(p, "batch", stream.Batch(stream.FromSlice([]int{1}), 2, time.Second)) },
		func(p *player) { slice(p, "buffer", stream.Buffer(stream.FromSlice([]int{1, 2}), p.a)) },
		func(p *player) { slice(p, "debounce", stream.Debounce(stream.FromSlice([]int{1}), time.Second)) },
		func(p *player) { slice(p, "latch", stream.Take(stream.Latch(stream.FromSlice([]int{1})), 1)) },
		func(p *player) { slice(p, "sample", stream.Sample(stream.FromSlice([]int{1}), time.Second)) },
		func(p *player) { slice(p, "timeout", stream.Timeout(stream.FromSlice([]int{1}), time.Second)) },
		func(p *player) {
			slice(p, "merge", stream.Merge(stream.FromSlice([]int{1}), stream.FromSlice([]int{2})))
		},
		func(p *player) {
			slice(p, "priority", stream.MergePriority(stream.FromSlice([]int{1}), stream.FromSlice([]int{2})))
		},
		func(p *player) {
			slice(p, "zip", stream.Zip(stream.FromSlice([]int{1}), stream.FromSlice([]int{2}), func(a, b int) int { return 10*a + b }))
		},
		func(p *player) {
			s := stream.CombineLatest(stream.FromSlice([]int{1}), stream.FromSlice([]int{2}), func(a, b int) int { return 10*a + b })
			slice(p, "combine", s)
		},
		func(p *player) {
			s := stream.GroupBy(stream.FromSlice([]int{1}), 2, func(v int) int { return v },
				func(ctx context.Context, _ int, s stream.Stream[int]) (int, error) { return stream.First(ctx, s) })
			slice(p, "groupby", s)
		},
		func(p *player) {
			slice(p, "parallel", stream.Parallel(stream.FromSlice([]int{1, 2}), 1+p.a, func(_ context.Context, v int) (int, error) { return v, nil }))
		},
		func(p *player) {
			slice(p, "unordered", stream.ParallelUnordered(stream.FromSlice([]int{1, 2}), 1+p.a, func(_ context.Context, v int) (int, error) { return v, nil }))
		},
		func(p *player) {
			slice(p, "perkey", stream.ParallelPerKey(stream.FromSlice([]int{1, 2}), 1+p.a, func(v int) int { return 0 }, func(_ context.Context, v int) (int, error) { return v, nil }))
		},
		func(p *player) {
			s := stream.Stage(stream.FromSlice([]int{1, 2}),
				func(ctx context.Context, in stream.Stream[int], emit func(ctx context.Context, v int) error) error {
					return stream.ForEach(ctx, in, emit)
				})
			slice(p, "stage", s)
		},
	}},
}

// common are operations that end or change what others do, in any family.
var common = []func(p *player){
	func(p *player) { p.n.Cancel(nil); p.tell("cancel") },
	func(p *player) { p.got("yield", coir.Yield(p.ctx)) },
	func(p *player) { p.got("sleep", coir.Sleep(p.ctx, p.d)) },
	func(p *player) { p.got("trysend", p.c().TrySend(p.v)) },
	func(p *player) { panic(errFailed) }, // the fiber fails: see play
}

// start starts a task.
func (p *player) start() *coir.Task[int] {
	return coir.Start(p.n, "task", func(context.Context) (int, error) { return p.c().TryRecv() }, coir.WithIsolatedFailure())
}

// dialled records how a dial ended.
func (p *player) dialled(c net.Conn, err error) {
	p.got("dial", err)
	if err == nil {
		p.got("close", c.Close())
	}
}

// beginAsync begins an operation, cancels it after d, and records how it ended.
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
