package remote

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/remote/internal/trouble"
	"github.com/coir-go/coir/snapshot"
)

// What snapshots show of a channel.
//
// Fibers receive from a local channel, which is the object in snapshots: see coir.Chan.Show. A send waits for several
// things in turn: for an answer, for room, for the next attempt. From the failure of its first attempt on, all its
// waits are shown as a wait to send: see coir.Chan.SendScope. So a send that succeeds at once costs nothing more.
//
// The opening of a channel and the wait for a promise are shown in the same way, from their beginning on. A wait for a
// promise has a channel of its own for that, without a name, so that it is not listed: see coir.ListObjects.
//
// Only the broker knows how many values the channel holds. A snapshot must not wait, so it shows the last answer of the
// broker, and has the broker asked again. While nobody takes snapshots, the broker is not asked.

const (
	kind        = "remote channel"
	promiseKind = "remote promise"
)

// brokerAway is the trouble of an object whose requests cannot be made.
const brokerAway = "the broker is away"

var (
	sendVerb = &coir.Verb{Name: "send", Waits: "to send on remote", Ends: "receive from", Of: kind}
	openVerb = &coir.Verb{Name: "open", Waits: "to open remote", Of: kind}
	waitVerb = &coir.Verb{Name: "wait", Waits: "for promise", Of: promiseKind}
	peekVerb = &coir.Verb{Name: "peek", Waits: "to peek at promise", Of: promiseKind}
	recvVerb = &coir.Verb{Name: "receive", Waits: "to receive from remote", Ends: "send on or close", Of: kind}
)

// sight is what a snapshot shows of an end, in addition to the local channel. Its lock is not that of the end, because
// a snapshot may be taken at any moment.
type sight struct {
	made   string // file:line
	silent bool   // in a simulation: nothing is asked outside of the schedule

	trouble  trouble.Record
	deadFull trouble.Record // the dead letters are full
	full     atomic.Bool    // the last send got ErrFull; on a volatile channel this is valid only while a send waits
	buffered atomic.Int64   // values in the buffer of a volatile channel

	mu      sync.Mutex // guards the fields below; not held while anything waits
	stats   Stats
	logs    rate      // of dead letters
	fulls   rate      // of dead letters that were not stored
	sends   list.List // of time.Time: when the waiting sends began, the oldest first
	left    bool
	backlog int // the last answer of the broker; negative if there is none
	asking  bool
	asked   time.Time // when the last question was answered
}

// initSight makes the local channel show the end.
func (c *Chan[T]) initSight(ctx context.Context) {
	c.sight.made, c.sight.silent, c.sight.backlog = caller(), coir.Simulated(ctx) != nil, -1
	c.in.Describe(recvVerb)
	c.in.Show(c.show)
}

// caller returns the line that called a function of this package.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/coir-go/coir/remote.") {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}

// show completes the description of the local channel. It does not wait.
func (c *Chan[T]) show(o *snapshot.Object) {
	s := &c.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Kind, o.Made, o.Cap, o.Closed = kind, s.made, c.cap, s.left
	o.Sent, o.Received, o.Dropped = s.stats.Sent, s.stats.Received, s.stats.Dropped
	o.Redelivered, o.Dead = s.stats.Redelivered, s.stats.Dead
	o.FromOutside, o.ToOutside = true, true // other processes send and receive
	o.Note, o.Len = s.note(c.stored, c.cap)
	if !s.left {
		since, lost := c.t.Lost()
		r := &s.trouble
		if !r.Is() && s.deadFull.Is() {
			r = &s.deadFull
		}
		r.Show(o, since, lost)
	}
	// The fiber that hands values over may wait to send to the local channel, but only while none receives.
	if o.Receivers == 0 {
		o.Oldest = time.Time{}
	}
	o.Senders = s.sends.Len()
	if first := s.sends.Front(); first != nil {
		if at := first.Value.(time.Time); o.Oldest.IsZero() || at.Before(o.Oldest) {
			o.Oldest = at
		}
	}
	if c.stored && !s.silent && !s.left && !s.asking && time.Since(s.asked) >= askEvery {
		s.asking = true
		asks.add(c.ask)
	}
}

// note says what the channel is and how full it is, as far as this end knows. The caller holds the lock.
func (s *sight) note(stored bool, capacity int) (text string, n int) {
	text, where, full := "volatile", " buffered here", s.full.Load() && s.sends.Len() > 0
	n = int(s.buffered.Load())
	known := n > 0
	if stored {
		text, where, full = "durable", " in the broker", s.full.Load()
		n, known = max(s.backlog, 0), s.backlog >= 0
	}
	switch {
	case full || n >= capacity:
		n = capacity
		return fmt.Sprintf("%s, full, %d of %d", text, n, capacity), n
	case known:
		return fmt.Sprintf("%s, %d of %d%s", text, n, capacity, where), n
	}
	return fmt.Sprintf("%s, capacity %d", text, capacity), 0
}

// slow begins the slow part of a send, which waits and tries again. The caller continues in the scope that slow
// returns, and calls end when the send is done.
func (c *Chan[T]) slow(ctx context.Context) (in context.Context, end func()) {
	s := &c.sight
	in, cancel := c.in.SendScope(ctx, sendVerb)
	s.mu.Lock()
	at := s.sends.PushBack(time.Now())
	s.mu.Unlock()
	return in, func() {
		s.mu.Lock()
		s.sends.Remove(at)
		idle := s.sends.Len() == 0
		s.mu.Unlock()
		if idle && !c.stored { // nothing else would find out that a receiving process is there again
			s.trouble.Clear()
		}
		cancel()
	}
}

// begin makes snapshots show the waits in the scope that it returns as one wait, for the promise or to peek at it. The
// caller calls end when the wait is over.
func (w *waiter) begin(ctx context.Context, verb *coir.Verb) (in context.Context, end context.CancelFunc) {
	c := coir.NewChan[struct{}](0)
	c.Show(func(o *snapshot.Object) {
		o.Kind, o.Name = promiseKind, w.key
		o.Waiters, o.Senders = 1, 0
		o.FromOutside, o.ToOutside = true, true // another process completes the promise
		since, lost := w.t.Lost()
		w.trouble.Show(o, since, lost)
	})
	return c.SendScope(ctx, verb)
}

// opening makes snapshots show the waits in the scope that it returns as a wait to open the channel. The caller calls
// end when the channel is open.
func (c *Chan[T]) opening(ctx context.Context) (in context.Context, end context.CancelFunc) {
	c.initSight(ctx)
	return c.in.SendScope(ctx, openVerb)
}

// heard notes what the outcome of a request in ctx says about the broker.
func (c *Chan[T]) heard(ctx context.Context, err error) {
	s := &c.sight
	away := brokerAway
	if !c.stored {
		away = "no receiving process can be reached"
	}
	full := errors.Is(err, ErrFull)
	if full || err == nil {
		if s.full.Load() != full {
			s.full.Store(full)
		}
		err = nil // the broker has answered
	}
	s.trouble.Heard(ctx, err, away)
}

// close records that the end was left.
func (s *sight) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
}

// The questions to brokers.
const (
	askEvery = time.Second     // the shortest time between an answer and the next question about a channel
	askTime  = 2 * time.Second // of one question
	mostAsks = 8               // questions at the same time
)

// ask asks the broker how many values the channel holds, which also shows whether the broker can be reached.
func (c *Chan[T]) ask() {
	n, err := 0, ErrUnknown               // if Len calls runtime.Goexit
	defer func() { c.answered(n, err) }() // in that case too
	err = attempt.Ask(context.Background(), askTime, func(ctx context.Context) (err error) {
		n, err = c.t.Len(ctx, c.name)
		return err
	})
	if err == nil && c.sight.deadFull.Is() {
		_ = attempt.Ask(context.Background(), askTime, c.askDead) // if there is no answer, nothing has changed
	}
}

// answered records the answer to a question, or the error if there was none.
func (c *Chan[T]) answered(n int, err error) {
	s := &c.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog, s.asked, s.asking = n, time.Now(), false
	switch {
	case s.left:
	case err == nil:
		s.full.Store(n >= c.cap)
		s.trouble.Clear()
	case errors.Is(err, ErrUnavailable): // not ErrUnknown: if no answer comes, the question may not be permitted
		c.heard(context.Background(), err)
	}
	if err != nil {
		s.backlog = -1
	}
}

// asks holds the questions of all channels of the process. A channel has at most one.
var asks questions

type questions struct {
	mu      sync.Mutex
	running int
	waiting []func()
}

// add makes a goroutine call f, which asks a question. It does not wait.
func (q *questions) add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, f)
	if q.running < mostAsks {
		q.running++
		go q.run()
	}
}

// run asks questions until there are none. If a question calls runtime.Goexit, another goroutine continues.
func (q *questions) run() {
	done := false
	defer func() {
		if !done {
			go q.run()
		}
	}()
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting = nil
			q.running--
			q.mu.Unlock()
			done = true
			return
		}
		f := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		f()
	}
}
