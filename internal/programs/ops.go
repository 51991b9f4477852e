package programs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/coir-go/coir"
)

func (w *world) newChannel(i int) *channel {
	d := &w.p.Chans[i]
	c := &channel{d: d, name: fmt.Sprintf("ch%d", i)}
	opts := []coir.ChanOption{coir.WithName(d.Name)}
	if d.Over != coir.OverflowWait {
		opts = append(opts, coir.WithOverflow(d.Over))
	}
	if d.Handler != NoHandler {
		opts = append(opts, coir.OnUndelivered(func(id int) { w.undelivered(c, id) }))
	}
	if !d.Pipe {
		c.ch = coir.NewChan[int](d.Cap, opts...)
		return c
	}
	cw, cr := coir.Pipe[int](d.Cap, opts...)
	c.ends = [2]*endpoint{sending: {w: cw}, receiving: {r: cr}}
	c.all = [2][]*endpoint{{c.ends[sending]}, {c.ends[receiving]}}
	return c
}

// undelivered is the handler of OnUndelivered.
func (w *world) undelivered(c *channel, id int) {
	w.mu.Lock()
	c.dropped++
	c.handled++
	panics := c.d.Handler == Panics && c.handled%2 == 1
	bad := ""
	if id < 1 || id > len(w.values) {
		bad = "was never sent"
	} else {
		v := w.values[id-1]
		v.dropped++
		switch {
		case v.c != c:
			bad = "was sent on " + v.c.name
		case v.dropped > 1:
			bad = "was handed over before"
		case v.received > 0:
			bad = "was received"
		case v.state == back:
			bad = "is its sender's, whose send has failed"
		}
	}
	w.mu.Unlock()
	if bad != "" {
		w.failf("%s: value %d was handed to OnUndelivered and %s", c.name, id, bad)
	}
	if panics {
		panic(errHandler)
	}
}

// endpoint returns the function's endpoint of a pipe.
func (r *run) endpoint(c *channel, side int) *endpoint {
	if x := r.ends[side][c]; x != nil {
		return x
	}
	w := r.w
	first, x := c.ends[side], &endpoint{}
	if side == sending {
		x.w = first.w.Clone()
	} else {
		x.r = first.r.Clone()
	}
	w.mu.Lock()
	x.shut, x.gone = first.shut, first.gone
	c.all[side] = append(c.all[side], x)
	w.mu.Unlock()
	if r.ends[side] == nil {
		r.ends[side] = make(map[*channel]*endpoint)
	}
	r.ends[side][c] = x
	return x
}

// sender is the sending side of a channel or pipe.
type sender interface {
	Send(ctx context.Context, v int) error
	SendTimeout(ctx context.Context, v int, d time.Duration) error
	TrySend(v int) error
	SendMany(ctx context.Context, values []int) (int, error)
	SendCase(v int) coir.Case
}

type receiver interface {
	Recv(ctx context.Context) (int, error)
	RecvTimeout(ctx context.Context, d time.Duration) (int, error)
	TryRecv() (int, error)
	RecvMany(ctx context.Context, into []int) (int, error)
	RecvCase(dst *int) coir.Case
	All(ctx context.Context) iter.Seq2[int, error]
}

// sending returns the channel or endpoint through which the function sends, and whether that may be closed.
func (r *run) sending(c *channel) (sender, func() bool) {
	if !c.d.Pipe {
		return c.ch, nil
	}
	x := r.endpoint(c, sending)
	return x.w, r.w.shut(x)
}

func (r *run) receiving(c *channel) (receiver, func() bool) {
	if !c.d.Pipe {
		return c.ch, nil
	}
	x := r.endpoint(c, receiving)
	return x.r, r.w.shut(x)
}

func (w *world) shut(x *endpoint) func() bool {
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return x.shut
	}
}

// callOn returns the call of an operation on a channel.
func (r *run) callOn(op *Op, side int) *call {
	limit, try := time.Duration(-1), false
	switch op.Kind {
	case SendTimeout, RecvTimeout:
		limit = op.D
	case TrySend, TryRecv:
		try = true
	}
	var n *node
	if !try {
		n = r.pick(op, limit)
	}
	k := r.call(op, n).on(r.w.chans[op.Obj], side)
	k.limit, k.try = limit, try
	return k
}

func (r *run) send(op *Op) {
	c := r.w.chans[op.Obj]
	to, shut := r.sending(c)
	k := r.callOn(op, sending)
	k.shut = shut
	id := r.w.offer(c, r.id)
	k.begin()
	var err error
	panicked := guarded(func() {
		switch op.Kind {
		case Send:
			err = to.Send(k.node.ctx, id)
		case SendTimeout:
			err = to.SendTimeout(k.node.ctx, id, op.D)
		default:
			err = to.TrySend(id)
		}
	})
	r.settleSend(id, err)
	if !panicked {
		k.end(err)
	}
}

func (r *run) settleSend(id int, err error) {
	if err == nil {
		r.w.settleValue(id, sent)
	} else {
		r.w.settleValue(id, back)
	}
}

func (r *run) sendMany(op *Op) {
	w := r.w
	c := w.chans[op.Obj]
	to, shut := r.sending(c)
	k := r.callOn(op, sending)
	k.shut = shut
	ids := make([]int, op.Count)
	for i := range ids {
		ids[i] = w.offer(c, r.id)
	}
	k.begin()
	var done int
	var err error
	if guarded(func() { done, err = to.SendMany(k.node.ctx, ids) }) {
		for _, id := range ids {
			w.settleValue(id, unknown)
		}
		return
	}
	for i, id := range ids {
		if i < done {
			w.settleValue(id, sent)
		} else {
			w.settleValue(id, back)
		}
	}
	if (err == nil) != (done == len(ids)) {
		k.failf("sent %d of %d, with %v", done, len(ids), err)
	}
	if len(ids) == 0 || done > 0 {
		k.must = false // it may not have checked the context
	}
	k.end(err)
}

func (r *run) recv(op *Op) {
	c := r.w.chans[op.Obj]
	from, shut := r.receiving(c)
	k := r.callOn(op, receiving)
	k.shut = shut
	k.begin()
	var id int
	var err error
	switch op.Kind {
	case Recv:
		id, err = from.Recv(k.node.ctx)
	case RecvTimeout:
		id, err = from.RecvTimeout(k.node.ctx, op.D)
	default:
		id, err = from.TryRecv()
	}
	if err == nil {
		r.got(k, c, id)
	} else if id != 0 {
		k.failf("returned %d, and %v", id, err)
	}
	k.end(err)
}

func (r *run) recvMany(op *Op) {
	c := r.w.chans[op.Obj]
	from, shut := r.receiving(c)
	k := r.callOn(op, receiving)
	k.shut = shut
	k.begin()
	into := make([]int, op.Count)
	got, err := from.RecvMany(k.node.ctx, into)
	for _, id := range into[:got] {
		r.got(k, c, id)
	}
	if (err == nil) != (got > 0) && len(into) > 0 {
		k.failf("received %d, with %v", got, err)
	}
	if len(into) == 0 {
		k.must = false
	}
	k.end(err)
}

func (r *run) recvAll(op *Op) {
	w := r.w
	c := w.chans[op.Obj]
	k := r.callOn(op, receiving)
	from, _ := r.receiving(c)
	all := from.All(k.node.ctx)
	w.mu.Lock()
	c.fuzzy = true
	w.mu.Unlock()
	k.begin()
	i := 0
	for id, err := range all {
		if err != nil {
			break
		}
		if i == 0 {
			k.mustNot("received %d", id)
		}
		r.got(k, c, id)
		if i++; i > op.Count {
			break
		}
	}
	k.must = false
	k.end(nil)
}

func (r *run) close(op *Op, c *channel) {
	w := r.w
	cause := w.cause(op.Cause, r.last)
	e := &ended{abort: op.Kind == Abort, cause: cause}
	w.mu.Lock()
	first := len(c.closes) == 0
	c.closes = append(c.closes, e)
	w.mu.Unlock()
	var did bool
	panicked := guarded(func() {
		if e.abort {
			did = c.ch.Abort(cause)
		} else {
			did = c.ch.Close()
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.env.Now()
	if first && len(c.closes) == 1 && !did && !panicked {
		w.failf("%s: %s of %s reports that it was closed before", r.name, op.Kind, c.name)
	}
	if !c.closed {
		c.closed, c.closedAt = true, now
	}
	if e.abort && !c.aborted {
		c.aborted, c.abortAt = true, now
	}
}

// closeEnd closes an endpoint of a pipe.
func (r *run) closeEnd(c *channel, x *endpoint) {
	w := r.w
	w.mu.Lock()
	x.shut = true
	w.mu.Unlock()
	if x.w != nil {
		x.w.Close()
	} else {
		guarded(func() { x.r.Close() })
	}
	w.mu.Lock()
	x.gone = true
	c.leaves(w.env.Now())
	w.mu.Unlock()
}

// cases are the cases of a select, in the form that coir takes.
type cases struct {
	r       *run
	op      *Op
	list    []coir.Case
	ids     []int // the values to send
	into    []int
	ends    []error
	fibers  []*fiber
	shuts   []func() bool
	soonest time.Duration
}

func (r *run) cases(op *Op) *cases {
	w := r.w
	n := len(op.Cases)
	cs := &cases{r: r, op: op, list: make([]coir.Case, n), ids: make([]int, n), into: make([]int, n),
		ends: make([]error, n), fibers: make([]*fiber, n), shuts: make([]func() bool, n), soonest: -1}
	for i, d := range op.Cases {
		switch d.Kind {
		case CaseSend:
			c := w.chans[d.Obj]
			var to sender
			to, cs.shuts[i] = r.sending(c)
			cs.ids[i] = w.offer(c, r.id)
			cs.list[i] = to.SendCase(cs.ids[i])
		case CaseRecv:
			var from receiver
			from, cs.shuts[i] = r.receiving(w.chans[d.Obj])
			cs.list[i] = from.RecvCase(&cs.into[i])
		case CaseAfter:
			cs.list[i] = coir.After(d.D)
			if cs.soonest < 0 || d.D < cs.soonest {
				cs.soonest = d.D
			}
		case CaseDone:
			if f := at(w, w.fibers, d.Obj); f != nil && f.f != nil {
				cs.fibers[i] = f
				cs.list[i] = f.f.DoneCase(&cs.ends[i])
			}
		case CaseGone:
			cs.list[i] = r.endpoint(w.chans[d.Obj], sending).w.GoneCase()
		}
		if c := d.Kind; c == CaseSend || c == CaseRecv {
			w.mu.Lock()
			w.chans[d.Obj].fuzzy = true
			w.mu.Unlock()
		}
	}
	return cs
}

// happened checks case i, which has happened.
func (cs *cases) happened(k *call, i int, err error) {
	r, w := cs.r, cs.r.w
	d := cs.op.Cases[i]
	switch d.Kind {
	case CaseSend, CaseRecv:
		c := w.chans[d.Obj]
		side := receiving
		if d.Kind == CaseSend {
			side = sending
			r.settleSend(cs.ids[i], err)
		} else if err == nil {
			r.got(k, c, cs.into[i])
		}
		on := *k
		on.on(c, side)
		on.ends, on.must, on.limit = false, false, -1
		on.shut = cs.shuts[i]
		on.node = nil
		if err != nil && !errors.Is(err, coir.ErrClosed) && !errors.Is(err, coir.ErrWouldBlock) {
			k.failf("case %d came with %v", i, err)
		}
		on.end(err)
	case CaseDone:
		if f := cs.fibers[i]; f == nil {
			k.failf("case %d, which is none, has happened", i)
		} else if !r.fibers(k, f, cs.ends[i]) && cs.ends[i] != nil {
			k.failf("case %d stored %v, which is not what the fiber has ended with", i, cs.ends[i])
		}
	case CaseGone:
		w.mu.Lock()
		left := count(w.chans[d.Obj].all[receiving], (*endpoint).mayBeUsed)
		w.mu.Unlock()
		if left > 0 {
			k.failf("case %d reports that all readers are closed, and %d are not", i, left)
		}
	case CaseNever:
		k.failf("case %d, which never happens, has", i)
	}
	if d.Kind != CaseSend && d.Kind != CaseRecv && err != nil {
		k.failf("case %d came with %v", i, err)
	}
}

func (r *run) choose(op *Op) {
	n := r.pick(op, -1)
	cs := r.cases(op)
	k := r.call(op, n)
	if op.Kind == TrySelect {
		k.node, k.try = nil, true
	}
	k.limit = -1
	k.begin()
	var i int
	var err error
	panicked := guarded(func() {
		switch op.Kind {
		case Select:
			i, err = coir.Select(n.ctx, cs.list...)
		case SelectPriority:
			i, err = coir.SelectPriority(n.ctx, cs.list...)
		default:
			i, err = coir.TrySelect(cs.list...)
		}
	})
	if panicked { // in the handler of a case that has sent
		for _, id := range cs.ids {
			if id != 0 {
				r.w.settleValue(id, unknown)
			}
		}
		return
	}
	for j, id := range cs.ids {
		if id != 0 && j != i {
			r.w.settleValue(id, back)
		}
	}
	if i < 0 {
		if err == nil {
			k.failf("no case has happened, and the error is nil")
		}
		if op.Kind != TrySelect {
			k.timelySelect(cs, err)
		}
		k.end(err)
		return
	}
	k.mustNot("case %d has happened", i)
	if op.Kind != TrySelect && !r.limited { // otherwise it may have waited for a place
		k.timelySelect(cs, err)
	}
	cs.happened(k, i, err)
}

// timelySelect is timely for a select, which also ends at the earliest time among its cases.
func (k *call) timelySelect(cs *cases, err error) {
	on := *k
	on.limit = cs.soonest
	on.timely(err)
}

func (r *run) selector(op *Op) {
	w := r.w
	n := r.pick(op, -1)
	cs := r.cases(op)
	w.mu.Lock()
	for _, id := range cs.ids {
		if id != 0 {
			w.values[id-1].loose = true
		}
	}
	w.mu.Unlock()
	s := coir.NewSelector()
	for i, c := range cs.list {
		if got := s.Add(c); got != i {
			w.failf("%s: Selector.Add returned %d for case %d", r.name, got, i)
		}
	}
	if op.N%3 == 0 {
		i := op.N % len(cs.list)
		s.Remove(i)
	}
	open := make([]bool, len(cs.list))
	for i := range open {
		open[i] = cs.ids[i] != 0
	}
	blind := false
	for range op.Count {
		k := r.call(op, n)
		k.begin()
		var i int
		var err error
		if guarded(func() { i, err = s.Wait(n.ctx) }) {
			blind = true
			break
		}
		if i < 0 {
			k.end(err)
			if err == nil {
				k.failf("no case has happened, and the error is nil")
			}
			break
		}
		k.mustNot("case %d has happened", i)
		if !r.limited {
			k.timely(err)
		}
		if op.N%3 == 0 && i == op.N%len(cs.list) {
			k.failf("case %d has happened, which was removed", i)
		}
		if open[i] {
			open[i] = false
		} else if cs.ids[i] != 0 {
			k.failf("case %d has sent a second time", i)
		}
		cs.happened(k, i, err)
	}
	s.Clear()
	for i, id := range cs.ids {
		if id != 0 && open[i] {
			if blind {
				w.settleValue(id, unknown)
			} else {
				w.settleValue(id, back)
			}
		}
	}
}

func (r *run) queueGo(op *Op) {
	w := r.w
	q := w.queues[op.Obj]
	d := op.Fiber
	n := r.pick(op, -1)
	f := &fiber{name: fmt.Sprintf("f%d", d.N), nur: r.nur}
	t := &task{producer: r.id}
	w.mu.Lock()
	q.tasks = append(q.tasks, t)
	id := len(q.tasks)
	w.mu.Unlock()
	k := r.call(op, n)
	k.verb, k.plain, k.loose = verb(q.d.Name, sending), true, true
	k.begin()
	var err error
	panicked := guarded(func() {
		err = q.o.Go(n.ctx, r.nur.n, f.name, func(ctx context.Context) (v int, err error) {
			w.mu.Lock()
			r.nur.live++
			w.mu.Unlock()
			in := w.enter(ctx, f, d)
			normal := false
			defer func() {
				w.mu.Lock()
				t.ended, t.ok = true, normal
				w.mu.Unlock()
				w.leave(f, in, normal, err, true)
			}()
			err = in.execute(d.Ops, d.End)
			normal = true
			return id, err
		}, d.options()...)
	})
	w.mu.Lock()
	t.accepted, t.refused = err == nil && !panicked, err != nil || panicked
	out := t.out
	closes, closed, closedAt := q.closes, q.closed, q.closedAt
	w.mu.Unlock()
	if panicked { // in the handler: the task was not queued
		return
	}
	if err != nil && out > 0 {
		k.failf("returned %v, and the result of its task has come out", err)
	}
	if errors.Is(err, coir.ErrClosed) {
		k.ended(err, closes)
	} else {
		k.end(err)
	}
	// The end of the queue ends it, unless its context had ended before: then it waits for its task.
	byQueue := err == nil || errors.Is(err, coir.ErrClosed) || n.certainlyLive(closedAt)
	if now := w.env.Now(); byQueue && w.env.Idle && closed && now > max(k.from, closedAt) && !r.limited {
		k.failf("ended at %v with %v, and the queue was closed at %v", now, err, closedAt)
	}
}

// ended checks the error of a closed queue against the calls that may have closed it.
func (k *call) ended(err error, closes []*ended) {
	k.r.last, k.r.lastNode = err, nil
	if len(closes) == 0 {
		k.failf("returned %v, and nothing has closed the queue", err)
	}
	k.mustNot("returned %v", err)
	want := []string{opText(k.verb, "channel is closed", nil)}
	for _, e := range closes {
		if e.abort {
			want = append(want, opText(k.verb, "channel was aborted", e.cause))
		}
	}
	k.text(err, want...)
}

// unreceived is the handler of OnUndelivered of a queue.
func (w *world) unreceived(q *queue, id int) {
	w.mu.Lock()
	bad := ""
	if id < 1 || id > len(q.tasks) {
		bad = "is of no task"
	} else {
		t := q.tasks[id-1]
		t.dropped++
		switch {
		case t.dropped > 1:
			bad = "was handed over before"
		case t.out > 0:
			bad = "has come out"
		}
	}
	w.mu.Unlock()
	if bad != "" {
		w.failf("%s: result %d was handed to OnUndelivered and %s", q.name, id, bad)
	}
}

func (r *run) queueRecv(op *Op) {
	w := r.w
	q := w.queues[op.Obj]
	n := r.pick(op, -1)
	k := r.call(op, n)
	k.verb, k.plain = verb(q.d.Name, receiving), true
	k.loose = r.limited // it may have waited for a place between two of its steps
	k.begin()
	id, err := q.o.Recv(n.ctx)
	r.result(k, q, id, err)
}

// result checks a value received from a queue, and reports whether it was the result of a task.
func (r *run) result(k *call, q *queue, id int, err error) bool {
	w := r.w
	if id == 0 {
		if endedOddly(err) {
			w.mu.Lock()
			q.blind++
			w.mu.Unlock()
			return true
		}
		if errors.Is(err, coir.ErrClosed) {
			w.mu.Lock()
			closes := q.closes
			w.mu.Unlock()
			k.timely(err)
			k.ended(err, closes)
			return false
		}
		if err == nil {
			k.failf("returned neither a result nor an error")
			return false
		}
		k.end(err)
		return false
	}
	w.mu.Lock()
	var t *task
	if id > 0 && id <= len(q.tasks) {
		t = q.tasks[id-1]
		t.out++
	}
	bad := ""
	switch {
	case t == nil:
		bad = "of no task"
	case t.out > 1:
		bad = "a second time"
	case t.refused:
		bad = "of a task whose Go has failed"
	case !t.ended:
		bad = "of a task that has not ended"
	}
	if t != nil && r.late(t.producer, -1, id) {
		bad = "after that of a later task"
	}
	w.mu.Unlock()
	if bad != "" {
		k.failf("gave result %d %s", id, bad)
	}
	k.mustNot("gave result %d", id)
	return true
}

func (r *run) queueClose(op *Op) {
	w := r.w
	q := w.queues[op.Obj]
	e := &ended{abort: op.Kind == QueueAbort, cause: w.cause(op.Cause, r.last)}
	w.mu.Lock()
	q.closes = append(q.closes, e)
	w.mu.Unlock()
	if e.abort {
		guarded(func() { q.o.Abort(e.cause) })
	} else {
		q.o.Close()
	}
	w.mu.Lock()
	if !q.closed {
		q.closed, q.closedAt = true, w.env.Now()
	}
	w.mu.Unlock()
}

func (w *world) newPool(i int) *pool {
	d := &w.p.Pools[i]
	p := &pool{d: d, name: fmt.Sprintf("pool%d", i)}
	opts := []coir.ChanOption{coir.WithName(d.Name)}
	if d.Handler != NoHandler {
		opts = append(opts, coir.OnUndelivered(func(id int) { w.thrown(p, id) }))
	}
	create := func(ctx context.Context) (int, error) {
		if d.Waits {
			if err := coir.Sleep(ctx, 5*time.Microsecond); err != nil {
				return 0, err
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		p.creates++
		if d.Fails && p.creates%3 == 0 {
			return 0, errCreate
		}
		p.values = append(p.values, poolValue{})
		n := count(p.values, func(v poolValue) bool { return v.dropped == 0 })
		if n > d.Size && d.Handler == Notes {
			w.failf("%s has made %d values that were not thrown away, and its size is %d", p.name, n, d.Size)
		}
		return len(p.values), nil
	}
	var reset func(int) error
	if d.Resets {
		reset = func(int) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.resets++
			if p.resets%3 == 0 {
				return errCreate
			}
			return nil
		}
	}
	p.p = coir.NewPool(d.Size, create, reset, opts...)
	return p
}

var errCreate = errors.New("the pool's function fails")

func (w *world) thrown(p *pool, id int) {
	w.mu.Lock()
	v := &p.values[id-1]
	v.dropped++
	n, lent := v.dropped, v.lent
	p.handled++
	panics := p.d.Handler == Panics && p.handled%2 == 1
	w.mu.Unlock()
	if n > 1 || lent {
		w.failf("%s: value %d was thrown away %d times; it is lent: %v", p.name, id, n, lent)
	}
	if panics {
		panic(errHandler)
	}
}

func (r *run) lend(op *Op) {
	w := r.w
	p := w.pools[op.Obj]
	var n *node // TryGet has none
	if op.Kind == PoolGet {
		n = r.pick(op, -1)
	}
	k := r.call(op, n)
	k.verb, k.plain = verb(p.d.Name, receiving), true
	k.try, k.loose = n == nil, p.d.Waits
	k.begin()
	var id int
	var err error
	if k.try {
		id, err = p.p.TryGet()
	} else {
		id, err = p.p.Get(n.ctx)
	}
	switch {
	case err == errCreate:
		if k.try {
			k.failf("has made a value")
		}
		k.mustNot("made a value")
	case errors.Is(err, coir.ErrClosed):
		w.mu.Lock()
		ok := p.ending
		w.mu.Unlock()
		if !ok {
			k.failf("returned %v, and nothing has closed the pool", err)
		}
		k.mustNot("returned %v", err)
		r.last, r.lastNode = err, nil
	default:
		k.end(err)
	}
	if err != nil {
		return
	}
	w.mu.Lock()
	v := &p.values[id-1]
	bad := v.lent || v.dropped > 0
	v.lent = true
	w.mu.Unlock()
	if bad {
		k.failf("lent value %d, which is lent or was thrown away", id)
	}
	r.lent = append(r.lent, id)
}

func (r *run) giveBack(op *Op) {
	w := r.w
	p := w.pools[op.Obj]
	id := r.lent[len(r.lent)-1]
	r.lent = r.lent[:len(r.lent)-1]
	w.mu.Lock()
	p.values[id-1].lent = false
	w.mu.Unlock()
	var err error
	guarded(func() {
		if op.Kind == PoolDiscard {
			err = p.p.Discard(id)
		} else {
			err = p.p.Put(id)
		}
	})
	if err != nil {
		w.failf("%s: %s: value %d could not be given back: %v", r.name, p.name, id, err)
	}
}

func (r *run) poolClose(op *Op) {
	w := r.w
	p := w.pools[op.Obj]
	w.mu.Lock()
	p.ending = true
	w.mu.Unlock()
	guarded(func() { p.p.Close() })
}

// settle checks the state when everything has ended.
func (w *world) settle(base *node) {
	r := &run{w: w, name: "the end", own: base, free: true}
	w.mu.Lock()
	made := w.made
	w.mu.Unlock()
	for _, n := range made {
		if n.done && n.ctx.Err() == nil {
			w.failf("%s was cancelled and has no error", n.name)
		}
		w.cancel(n, nil)
	}
	for _, q := range w.queues {
		r.settleQueue(q)
	}
	for _, c := range w.chans {
		r.settleChannel(c)
	}
	for i, p := range w.pools {
		r.settlePool(i, p)
	}
}

// settlePool closes a pool. Before, it takes all values at the same time and gives them back: every place must be
// there, and Close finds several values.
func (r *run) settlePool(i int, p *pool) {
	w := r.w
	for range p.d.Size {
		r.lend(&Op{Kind: PoolGet, Obj: i, Ctx: Own})
	}
	for len(r.lent) > 0 {
		r.giveBack(&Op{Kind: PoolPut, Obj: i})
	}
	r.poolClose(&Op{Kind: PoolClose, Obj: i})
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, v := range p.values {
		if p.d.Handler != NoHandler && v.dropped != 1 {
			w.failf("%s: value %d was thrown away %d times, and the pool is closed", p.name, i+1, v.dropped)
		}
	}
}

func (r *run) settleQueue(q *queue) {
	w := r.w
	r.queueClose(&Op{Kind: QueueClose})
	k := r.call(&Op{Kind: QueueRecv}, r.own)
	k.verb, k.plain, k.loose = verb(q.d.Name, receiving), true, true
	r.seen = nil
	for {
		id, err := q.o.Recv(r.own.ctx)
		if !r.result(k, q, id, err) {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	aborted := slices.ContainsFunc(q.closes, func(e *ended) bool { return e.abort })
	accepted, out := 0, q.blind
	for i, t := range q.tasks {
		if t.accepted {
			accepted++
		}
		out += t.out
		switch {
		case !t.ok:
		case t.accepted && !aborted && (t.out != 1 || t.dropped != 0),
			t.accepted && q.d.Handler != NoHandler && t.out+t.dropped != 1,
			t.refused && (t.out != 0 || q.d.Handler != NoHandler && t.dropped != 1):
			w.failf("%s: task %d was queued: %v; its result has come out %d times and was dropped %d times", q.name, i+1,
				t.accepted, t.out, t.dropped)
		}
	}
	if accepted != out && !aborted {
		w.failf("%s took %d tasks, and %d results have come out", q.name, accepted, out)
	}
}

func (r *run) settleChannel(c *channel) {
	w := r.w
	r.seen = nil
	from := receiver(c.ch)
	var stats func() coir.ChanStats
	if c.d.Pipe {
		from = nil
		stats = c.ends[receiving].r.Stats
		for _, x := range c.all[receiving] {
			if !x.gone {
				from = x.r
			}
		}
	} else {
		stats = c.ch.Stats
	}
	st := stats()
	if n := uint64(st.Len) + st.Received + st.Dropped; st.Sent != n {
		w.failf("%s: %d sent, %d received, %d dropped, %d left", c.name, st.Sent, st.Received, st.Dropped, st.Len)
	}
	if st.Send.Waiting > 0 || st.Recv.Waiting > 0 {
		w.failf("%s: %d senders and %d receivers wait when all have ended", c.name, st.Send.Waiting, st.Recv.Waiting)
	}
	w.settleFailures(c, st)
	k := r.call(&Op{Kind: TryRecv}, nil).on(c, receiving)
	for from != nil {
		id, err := from.TryRecv()
		if err != nil {
			break
		}
		r.got(k, c, id)
	}
	st = stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	var n, received, dropped uint64
	for i, v := range w.values {
		if v.c != c {
			continue
		}
		ends := v.received + v.dropped
		switch v.state {
		case offered:
			w.failf("%s: value %d: nothing is known of its send", c.name, i+1)
		case sent:
			n++
			if c.d.Handler != NoHandler && ends != 1 {
				w.failf("%s: value %d was sent, received %d times and dropped %d times", c.name, i+1, v.received, v.dropped)
			}
		case back:
			if ends != 0 {
				w.failf("%s: value %d was not sent, received %d times and dropped %d times", c.name, i+1, v.received, v.dropped)
			}
		}
		received += uint64(v.received)
		dropped += uint64(v.dropped)
	}
	if st.Received != received {
		w.failf("%s: %d values were received, and its counter says %d", c.name, received, st.Received)
	}
	if c.unknown {
		return
	}
	if st.Sent != n {
		w.failf("%s: %d values were sent, and its counter says %d", c.name, n, st.Sent)
	}
	if c.d.Handler != NoHandler && st.Dropped != dropped {
		w.failf("%s: %d values were dropped, and its counter says %d", c.name, dropped, st.Dropped)
	}
	if st.Len != 0 || st.Sent != st.Received+st.Dropped {
		w.failf("%s: %d sent, %d received, %d dropped, %d left", c.name, st.Sent, st.Received, st.Dropped, st.Len)
	}
}

// settleFailures compares the counters of failed operations with the failures that the ledger has recorded.
func (w *world) settleFailures(c *channel, st coir.ChanStats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for side, s := range []coir.SideStats{st.Send, st.Recv} {
		got := failures{s.Closed, s.TimedOut, s.Cancelled, s.WouldBlock}
		want := c.failed[side]
		less := got.closed < want.closed || got.timedOut < want.timedOut || got.cancelled < want.cancelled ||
			got.wouldBlock < want.wouldBlock
		if less || !c.fuzzy && !c.d.Pipe && got != want {
			w.failf("%s, side %d: operations have failed as %+v, and its counters say %+v", c.name, side, want, got)
		}
	}
}
