package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// The seed alone determines the plan of a history: the channels, the clients, and the calls of each client. Then the
// clients run, and the scheduler decides the order of events.
//
// The last client is the keeper. It watches the history's clock. When the clock stops, because the remaining clients
// wait for each other, the keeper does something that may help: it sends, receives, cancels or closes. Its operations
// are recorded like all others. When the clients have ended it empties the channels, so that every value is accounted
// for.

type history struct {
	seed     uint64
	shapes   [2]shape
	workers  int
	fibers   []bool // of each client
	plans    [][]*operation
	contexts []contextPlan

	rng    *rand.Rand // of the plan, and then of the keeper
	values int        // given out so far

	do     performer
	chans  [2]*coir.Chan[int]
	ctxs   []context.Context
	cancel []context.CancelCauseFunc

	prepared, met, ended atomic.Int32    // clients
	gate                 *coir.Chan[int] // closed when all clients may begin
	clock                atomic.Int64
	current              []atomic.Pointer[operation] // of each client

	mu   sync.Mutex
	lost map[int][]int64 // when OnUndelivered was called, by value
}

// performer performs one operation under ctx and records its result.
type performer func(ctx context.Context, o *operation)

// contextPlan is a context that a client may cancel. A client makes it in its own context, or it has no parent.
type contextPlan struct {
	client int // own: nobody's
	scope  bool
}

var (
	errAborted = errors.New("aborted by the history")
	errTold    = errors.New("cancelled by the history")
)

// shapes are the kinds of channel, with each policy that can make a difference.
var shapes = func() (all []shape) {
	for capacity := range 4 {
		for _, p := range []coir.OverflowPolicy{
			coir.OverflowWait, coir.OverflowDropOldest, coir.OverflowDropNewest, coir.OverflowFail,
		} {
			all = append(all, shape{capacity, p})
		}
	}
	return append(all, shape{coir.Unbounded, coir.OverflowWait}, shape{coir.Conflated, coir.OverflowWait})
}()

// planHistory makes the plan for a seed.
func planHistory(seed uint64) *history {
	rng := rand.New(rand.NewPCG(seed, 0))
	first := shapes[seed%uint64(len(shapes))]
	h := &history{seed: seed, rng: rng, lost: make(map[int][]int64)}
	h.shapes = [2]shape{first, shapes[rng.IntN(len(shapes))]}
	if rng.IntN(2) == 0 {
		h.shapes[1] = first
	}
	h.workers = 2 + rng.IntN(3)
	clients := 3 + rng.IntN(3)
	for mix := rng.IntN(3); len(h.fibers) < clients; {
		h.fibers = append(h.fibers, mix == 0 || mix == 1 && rng.IntN(2) == 0)
	}
	for range rng.IntN(3) {
		h.contexts = append(h.contexts, contextPlan{rng.IntN(clients+1) - 1, rng.IntN(2) == 0})
	}
	both := rng.IntN(3) > 0 // else all is about the first channel
	h.plans = make([][]*operation, clients)
	for range 10 + rng.IntN(21) {
		c := rng.IntN(clients)
		h.plans[c] = append(h.plans[c], h.draw(c, both))
	}
	if rng.IntN(3) == 0 {
		h.insert(&operation{verb: doClose, ch: rng.IntN(2), slot: own})
	}
	if rng.IntN(6) == 0 {
		h.insert(&operation{verb: doAbort, ch: rng.IntN(2), slot: own})
	}
	for i := range h.contexts {
		h.insert(&operation{verb: doCancel, slot: i})
	}
	h.plans = append(h.plans, nil) // the keeper's
	h.current = make([]atomic.Pointer[operation], len(h.plans))
	return h
}

// insert puts an operation into the second half of a client's plan.
func (h *history) insert(o *operation) {
	o.client = h.rng.IntN(len(h.plans))
	o.pause = h.rng.IntN(4)
	n := len(h.plans[o.client])
	h.plans[o.client] = slices.Insert(h.plans[o.client], n-h.rng.IntN(n/2+1), o)
}

// draw draws an operation for a client.
func (h *history) draw(client int, both bool) *operation {
	rng := h.rng
	o := &operation{client: client, slot: own}
	if rng.IntN(3) == 0 {
		o.pause = 1 + rng.IntN(3)
	}
	o.spin = rng.IntN(1000)
	if both {
		o.ch = rng.IntN(2)
	}
	tiny := func() time.Duration { return time.Duration(1+rng.IntN(60)) * time.Microsecond }
	switch n := rng.IntN(100); {
	case n < 20:
		o.verb = doSend
	case n < 40:
		o.verb = doRecv
	case n < 48:
		o.verb = doTrySend
	case n < 56:
		o.verb = doTryRecv
	case n < 62:
		o.verb, o.limit = doSendTimeout, tiny()
	case n < 68:
		o.verb, o.limit = doRecvTimeout, tiny()
	case n < 80:
		o.verb = doSelect
	case n < 88:
		o.verb = doSelectPriority
	case n < 94:
		o.verb = doTrySelect
	case n < 96:
		o.verb = doLen
	default:
		o.verb = doStats
	}
	switch o.verb {
	case doSend, doTrySend, doSendTimeout:
		o.clauses = []clause{h.sendTo(o.ch)}
	case doRecv, doTryRecv, doRecvTimeout:
		o.clauses = []clause{{kind: clauseRecv, ch: o.ch}}
	case doSelect, doSelectPriority, doTrySelect:
		for range 1 + rng.IntN(3) {
			ch := o.ch
			if both {
				ch = rng.IntN(2)
			}
			if rng.IntN(2) == 0 {
				o.clauses = append(o.clauses, h.sendTo(ch))
			} else {
				o.clauses = append(o.clauses, clause{kind: clauseRecv, ch: ch})
			}
		}
		switch rng.IntN(8) {
		case 0:
			o.clauses = slices.Insert(o.clauses, rng.IntN(len(o.clauses)+1), clause{kind: clauseAfter, time: tiny()})
		case 1:
			o.clauses = slices.Insert(o.clauses, rng.IntN(len(o.clauses)+1), clause{kind: clauseNever})
		case 2:
			if rng.IntN(4) == 0 {
				o.clauses = append(o.clauses, clause{kind: clauseAfter})
			}
		}
	}
	if o.limit > 0 && rng.IntN(4) == 0 {
		o.limit = 0 // it looks once
	}
	if o.waits() {
		switch n := rng.IntN(10); {
		case n < 4 && len(h.contexts) > 0:
			o.slot = rng.IntN(len(h.contexts))
		case n == 4:
			o.deadline, o.standard = tiny(), rng.IntN(3) == 0
		}
	}
	return o
}

// sendTo returns a clause that sends a value that no other clause sends.
func (h *history) sendTo(ch int) clause {
	h.values++
	return clause{kind: clauseSend, ch: ch, value: h.values}
}

// run makes the clients perform their plans. It returns false if they did not end; then they stay, because nothing can
// end them.
func (h *history) run(rt *coir.Runtime) bool {
	if h.do == nil {
		h.do = h.perform
	}
	for i := range h.chans {
		if h.chans[i] == nil {
			h.chans[i] = h.newChan(h.shapes[i])
		}
	}
	h.ctxs, h.cancel = make([]context.Context, len(h.contexts)), make([]context.CancelCauseFunc, len(h.contexts))
	h.makeContexts(context.Background(), own)

	var all sync.WaitGroup
	over := coir.NewChan[int](0)
	h.gate = coir.NewChan[int](0)
	all.Go(func() {
		_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			for c, fiber := range h.fibers {
				if fiber {
					n.Go("client", func(ctx context.Context) error {
						h.client(ctx, c)
						return nil
					})
				}
			}
			_, _ = over.Recv(ctx) // the contexts of fibers end with their nursery
			return nil
		})
	})
	for c, fiber := range h.fibers {
		if !fiber {
			all.Go(func() { h.client(context.Background(), c) })
		}
	}
	for int(h.prepared.Load()) < len(h.fibers) {
		runtime.Gosched()
	}
	h.gate.Close()
	if !h.keep() {
		return false
	}
	over.Close()
	all.Wait()
	for _, cancel := range h.cancel {
		cancel(nil)
	}
	return true
}

func (h *history) newChan(s shape) *coir.Chan[int] {
	return coir.NewChan[int](s.capacity, coir.WithOverflow(s.over), coir.OnUndelivered(func(v int) {
		h.mu.Lock()
		h.lost[v] = append(h.lost[v], h.clock.Add(1))
		h.mu.Unlock()
	}))
}

// makeContexts makes the contexts that are planned for a client.
func (h *history) makeContexts(ctx context.Context, client int) {
	for i, p := range h.contexts {
		if p.client != client {
			continue
		}
		if p.scope {
			h.ctxs[i], h.cancel[i] = coir.WithCancelCause(ctx)
		} else {
			h.ctxs[i], h.cancel[i] = context.WithCancelCause(ctx)
		}
	}
}

func (h *history) client(ctx context.Context, c int) {
	h.makeContexts(ctx, c)
	h.prepared.Add(1)
	_, _ = h.gate.Recv(ctx)
	h.meet(ctx)
	for _, o := range h.plans[c] {
		h.call(ctx, o)
	}
	h.ended.Add(1)
}

// meet makes the clients begin together, because waking a client takes longer than all that it does. It waits only for
// a short time for a client that the system does not run.
func (h *history) meet(ctx context.Context) {
	h.met.Add(1)
	for range 100 {
		if int(h.met.Load()) == len(h.fibers) {
			return
		}
		pass(ctx)
	}
}

// pass lets other fibers and goroutines run.
func pass(ctx context.Context) {
	_ = coir.Yield(ctx)
	runtime.Gosched()
}

// call performs an operation and records its times.
func (h *history) call(ctx context.Context, o *operation) {
	for range o.pause {
		pass(ctx)
	}
	for range o.spin {
		h.clock.Load()
	}
	switch {
	case o.slot != own:
		ctx = h.ctxs[o.slot]
	case o.deadline > 0:
		var cancel context.CancelFunc
		if o.standard {
			ctx, cancel = context.WithTimeout(ctx, o.deadline)
		} else {
			ctx, cancel = coir.WithTimeout(ctx, o.deadline)
		}
		defer cancel()
	}
	h.current[o.client].Store(o)
	began := time.Now()
	o.call = h.clock.Add(1)
	h.do(ctx, o)
	o.ret = h.clock.Add(1)
	o.took = time.Since(began)
	h.current[o.client].Store(nil)
}

// keep is the keeper: it makes sure that the other clients end. It returns false if they do not.
func (h *history) keep() bool {
	const patience = 30 // how often to check a clock that has stopped
	keeper := len(h.fibers)
	do := func(o *operation) *operation {
		o.client = keeper
		if o.verb != doCancel {
			o.slot = own
		}
		h.plans[keeper] = append(h.plans[keeper], o)
		h.call(context.Background(), o)
		return o
	}
	help := h.help()
	last, idle, since := int64(0), 0, time.Now()
	for int(h.ended.Load()) < len(h.fibers) {
		runtime.Gosched()
		if now := h.clock.Load(); now != last {
			last, idle, since = now, 0, time.Now()
		}
		switch idle++; {
		case idle <= patience:
		case time.Since(since) > time.Minute:
			return false
		case len(help) == 0 || help[0].verb == doAbort && h.selfEnding():
		case h.stuck():
			do(help[0])
			help = help[1:]
		}
	}
	for ch := range h.chans {
		if h.rng.IntN(3) == 0 {
			do(&operation{verb: doClose, ch: ch})
		}
		for do(tryRecv(ch)).result == gotOK {
		}
		do(&operation{verb: doStats, ch: ch})
		do(&operation{verb: doAbort, ch: ch})
	}
	return true
}

// stuck reports whether there are as many waits as clients. A select has several waits, so the result is only a hint.
func (h *history) stuck() bool {
	waits := 0
	for _, ch := range h.chans {
		s := ch.Stats()
		waits += s.Send.Waiting + s.Recv.Waiting
	}
	return waits >= len(h.fibers)-int(h.ended.Load())
}

// selfEnding reports whether some client's operation must end by itself: it has a time limit, or its context is one
// that the keeper cancels before it aborts. If such an operation did not end, an abort would hide that.
func (h *history) selfEnding() bool {
	for c := range h.fibers {
		if o := h.current[c].Load(); o != nil && o.bounded() {
			return true
		}
	}
	return false
}

// help returns the operations of the keeper, which it performs one after another when no client makes progress. After
// the last of them no client waits.
func (h *history) help() (all []*operation) {
	for range 8 {
		ch := h.rng.IntN(2)
		switch n := h.rng.IntN(10); {
		case n < 3:
			all = append(all, &operation{verb: doTrySend, ch: ch, clauses: []clause{h.sendTo(ch)}})
		case n < 7:
			all = append(all, tryRecv(ch))
		case n < 8:
			all = append(all, &operation{verb: doClose, ch: ch})
		default:
			all = append(all, &operation{verb: doStats, ch: ch})
		}
	}
	for i := range h.contexts {
		all = append(all, &operation{verb: doCancel, slot: i})
	}
	for ch := range h.chans {
		all = append(all, &operation{verb: doAbort, ch: ch})
	}
	return all
}

func tryRecv(ch int) *operation {
	return &operation{verb: doTryRecv, ch: ch, clauses: []clause{{kind: clauseRecv, ch: ch}}}
}

// perform performs an operation on the channels.
func (h *history) perform(ctx context.Context, o *operation) {
	ch := h.chans[o.ch]
	var err error
	switch o.verb {
	case doSend:
		err = ch.Send(ctx, o.clauses[0].value)
	case doTrySend:
		err = ch.TrySend(o.clauses[0].value)
	case doSendTimeout:
		err = ch.SendTimeout(ctx, o.clauses[0].value, o.limit)
	case doRecv:
		o.value, err = ch.Recv(ctx)
	case doTryRecv:
		o.value, err = ch.TryRecv()
	case doRecvTimeout:
		o.value, err = ch.RecvTimeout(ctx, o.limit)
	case doSelect, doSelectPriority, doTrySelect:
		err = h.choose(ctx, o)
	case doClose:
		o.first = ch.Close()
		return
	case doAbort:
		o.first = ch.Abort(errAborted)
		return
	case doCancel:
		h.cancel[o.slot](errTold)
		return
	case doLen:
		o.stats.Len = ch.Len()
		return
	case doStats:
		o.stats = ch.Stats()
		return
	}
	h.note(o, err)
}

// choose performs a select.
func (h *history) choose(ctx context.Context, o *operation) (err error) {
	got := make([]int, len(o.clauses))
	cases := make([]coir.Case, len(o.clauses))
	for i, c := range o.clauses {
		switch c.kind {
		case clauseSend:
			cases[i] = h.chans[c.ch].SendCase(c.value)
		case clauseRecv:
			cases[i] = h.chans[c.ch].RecvCase(&got[i])
		case clauseAfter:
			cases[i] = coir.After(c.time)
		}
	}
	switch o.verb {
	case doSelect:
		o.at, err = coir.Select(ctx, cases...)
	case doSelectPriority:
		o.at, err = coir.SelectPriority(ctx, cases...)
	default:
		o.at, err = coir.TrySelect(cases...)
	}
	for i, v := range got {
		if i == o.at {
			o.value = v
		} else if v != 0 {
			o.wrong = fmt.Sprintf("case %d has received %d, though case %d happened", i, v, o.at)
		}
	}
	return err
}

// note records what an error says.
func (h *history) note(o *operation, err error) {
	switch {
	case err == nil:
		o.result = gotOK
	case errors.Is(err, coir.ErrClosed):
		o.result, o.caused = gotClosed, errors.Is(err, errAborted)
	case errors.Is(err, coir.ErrWouldBlock):
		o.result = gotWouldBlock
	case errors.Is(err, context.DeadlineExceeded):
		o.result = gotTimeout
	case isCancelFor(err, errTold):
		o.result = gotCancel
	default:
		o.wrong = fmt.Sprintf("an error of no kind: %v", err)
	}
	if err != nil && o.value != 0 {
		o.wrong = fmt.Sprintf("it has received %d and returned %v", o.value, err)
	}
	switch o.verb {
	case doSelect, doSelectPriority, doTrySelect:
	default:
		h.normalise(o)
	}
}

// normalise sets the clause that happened for an operation with one clause. A send that the policy Fail refuses counts
// as having happened, as in a select.
func (h *history) normalise(o *operation) {
	c := o.clauses[0]
	fails := c.kind == clauseSend && h.shapes[c.ch].policy() == coir.OverflowFail
	if o.result == gotTimeout || o.result == gotCancel || o.result == gotWouldBlock && !fails {
		o.at = -1
	} else {
		o.at = 0
	}
}

// model returns the history for the checker.
func (h *history) model() *model { return newModel(h.shapes, slices.Concat(h.plans...), h.lost) }

// verdict returns what is wrong with a history, or "".
func (h *history) verdict() string {
	m := h.model()
	if len(m.ops) > 255 || h.values > 255 {
		return "too long to be judged"
	}
	for _, o := range m.ops {
		if o.wrong != "" {
			return fmt.Sprintf("%s\n\t%v", o.wrong, o)
		}
		if early := o.early(); early != "" {
			return fmt.Sprintf("%s\n\t%v", early, o)
		}
	}
	if late := m.ignored(); late != nil {
		return fmt.Sprintf("its context was over before it began\n\t%v", late)
	}
	if !m.explains() {
		return "no order of the operations explains it"
	}
	return ""
}

// early returns a text if a time limit ended too soon, or "".
func (o *operation) early() string {
	least := time.Duration(0)
	switch {
	case o.at >= 0 && o.clauses != nil && o.clauses[o.at].kind == clauseAfter:
		least = o.clauses[o.at].time
	case o.result == gotTimeout && o.deadline == 0: // a context's began earlier
		least = o.limit
	}
	if o.took < least {
		return fmt.Sprintf("it was over after %v", o.took)
	}
	return ""
}

// ignored returns an operation that succeeded although its context had ended before the call: because a cancel function
// had returned, or because another operation had returned the context's error. This is all that the specification says
// about contexts, except that nothing is cancelled before a cancellation has begun.
func (m *model) ignored() *operation {
	for _, o := range m.ops {
		if o.slot == own || o.verb == doCancel || o.result == gotCancel {
			continue
		}
		for _, c := range m.ops {
			if c.slot == o.slot && c.ret < o.call && (c.verb == doCancel || c.result == gotCancel) {
				return o
			}
		}
	}
	return nil
}

// overlap returns the number of operations of the clients, and how many of them overlapped with another one.
func (h *history) overlap() (all, together int) {
	ops := h.model().ops
	for _, o := range ops {
		if o.client == len(h.fibers) {
			continue
		}
		all++
		if slices.ContainsFunc(ops, func(p *operation) bool { return p != o && p.call < o.ret && p.ret > o.call }) {
			together++
		}
	}
	return all, together
}

func (h *history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d workers\na: %v\nb: %v\n", h.workers, h.shapes[0], h.shapes[1])
	for c, fiber := range h.fibers {
		fmt.Fprintf(&b, "client %d: %s\n", c, map[bool]string{true: "fiber", false: "goroutine"}[fiber])
	}
	fmt.Fprintf(&b, "client %d: the keeper\n", len(h.fibers))
	for i, p := range h.contexts {
		fmt.Fprintf(&b, "context %d: %s of client %d\n", i, map[bool]string{true: "scope", false: "context"}[p.scope], p.client)
	}
	for _, o := range h.model().ops {
		fmt.Fprintf(&b, "%v\n", o)
	}
	return b.String()
}
