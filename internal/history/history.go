// Package history plays a history of channel operations twice, on real channels and on the model, and compares the two
// after every step: the result of each operation, the waits that it ended, the number of values that each channel
// holds, the counters of each channel, and the undelivered values.
//
// The difficulty is to know when a step has ended. Clients, which are fibers and a goroutine, perform the operations;
// they wait, and are woken. The model says which operations must have ended and which must wait. A step has ended when
// the real operations visibly agree: a waiting fiber reports it, and each channel counts its waiters. A difference that
// remains when nothing moves any more is a fault. The player does not sleep to find out: it is a fiber too, and yields.
//
// The model does not decide a fair select. It returns the cases that may be chosen, and continues with the one that the
// real select chose.
package history

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/model"
)

// Play plays the history that data describes, on rt. It returns a description of each step, and an error if the real
// channels and the model differ.
func Play(rt *coir.Runtime, data []byte) (story string, err error) {
	h := new(history)
	steps := h.read(data)
	err = h.run(rt, steps)
	return h.story.String(), err
}

var (
	errCancel = errors.New("cancelled by the history")
	errAbort  = errors.New("aborted by the history")
	errOut    = errors.New("the history has ended")
)

type history struct {
	story   strings.Builder
	chans   []*pair
	clients []*client
	threads sync.WaitGroup // the clients that are goroutines
	value   int            // the last value sent: no two are the same
	patient bool           // this step involves more than fibers

	mu sync.Mutex // guards what OnUndelivered records
}

// run plays the steps in a new nursery.
func (h *history) run(rt *coir.Runtime, steps []step) error {
	var parted error
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		defer h.allOut(n)
		parted = h.play(coir.Shield(ctx), n, steps)
		return nil
	})
	if parted != nil {
		return parted
	}
	h.threads.Wait()
	if err != nil && !isCancelFor(err, errCancel) && !isCancelFor(err, errOut) {
		return fmt.Errorf("the fibers have ended with %w", err)
	}
	return nil
}

func (h *history) play(ctx context.Context, n *coir.Nursery, steps []step) error {
	for i, p := range h.chans {
		fmt.Fprintf(&h.story, "%c: %s\n", 'a'+i, p.name)
	}
	for i := range clients + 1 {
		h.enter(n, i)
	}
	for _, s := range steps {
		if err := h.step(ctx, s); err != nil {
			return err
		}
	}
	return h.end(ctx, n)
}

// step plays a step. It skips a step that makes no sense now, because the client is busy or has nothing to cancel.
func (h *history) step(ctx context.Context, s step) error {
	c := h.clients[s.client]
	h.patient = false
	switch s.verb {
	case closing, abort:
		on := s.cases[0].on
		fmt.Fprintf(&h.story, "%v %c\n", s.verb, 'a'+on)
		if err := h.endChan(h.chans[on], s.verb); err != nil {
			return err
		}
	case cancel:
		if c.busy == nil || c.busy.cancel == nil {
			return nil
		}
		fmt.Fprintf(&h.story, "%s is cancelled\n", who(s.client))
		h.patient = c.busy.how == foreign || s.client == goroutine // the cancellation reaches them later, from outside
		c.busy.cancel(errCancel)
		if c.busy.want == nil { // otherwise the cancellation comes too late
			h.expect(c.busy.op.Cancel())
		}
	default:
		if c.busy != nil {
			return nil
		}
		if err := h.begin(ctx, c, s); err != nil {
			return err
		}
	}
	if s.rush && !h.patient && (s.verb == cancel || s.verb == abort || s.client == player) {
		fmt.Fprintln(&h.story, "  and before any client runs:")
		return nil
	}
	return h.settle(ctx)
}

// endChan closes or aborts a channel.
func (h *history) endChan(p *pair, how verb) error {
	var first, want bool
	var done []model.Done
	if how == closing {
		first = p.real.Close()
		want, done = p.model.Close()
	} else {
		first = p.real.Abort(errAbort)
		want, done = p.model.Abort()
	}
	h.expect(done...)
	if first != want {
		return fmt.Errorf("%v has returned %v, want %v", how, first, want)
	}
	return nil
}

// begin starts an operation on an idle client.
func (h *history) begin(ctx context.Context, c *client, s step) error {
	o := h.order(s)
	fmt.Fprintln(&h.story, s.text(o.op.Clauses))
	c.busy = o
	ready := o.op.Ready()
	if s.client == player {
		o.do(ctx)
	} else if err := c.inbox.TrySend(o); err != nil {
		return fmt.Errorf("%s is idle and does not take an order: %w", who(s.client), err)
	}
	switch {
	case s.how == dead && !s.verb.tries():
		h.expect(o.op.Cancel())
	case len(ready) > 0:
		if s.verb != selectFair && s.verb != selectTimeout && s.verb != trySelect {
			ready = ready[:1]
		}
		if err := h.wait(ctx, o.unchosen); err != nil {
			return err
		}
		if !slices.Contains(ready, o.got.Clause) {
			return fmt.Errorf("%s has returned %v; the cases that may happen are %v", who(s.client), o, ready)
		}
		h.expect(o.op.Do(o.got.Clause)...)
	case s.verb.tries():
		h.expect(o.op.Refuse())
	case s.limit == now:
		h.expect(o.op.Expire())
	default:
		o.op.Wait()
		if s.limit == soon {
			h.patient = true
			h.expect(o.op.Expire())
		}
	}
	if s.client == player {
		c.busy = nil
		if o.got != *o.want {
			return fmt.Errorf("%s has returned %v, want %s", who(player), o, text(*o.want))
		}
	}
	return nil
}

// end cancels the clients that are still waiting.
func (h *history) end(ctx context.Context, n *coir.Nursery) error {
	fmt.Fprintln(&h.story, "all clients are cancelled")
	h.patient = true
	n.Cancel(errCancel)
	for _, c := range h.clients {
		if o := c.busy; o != nil {
			c.dismiss(errCancel)
			if o.want == nil {
				h.expect(o.op.Cancel())
			}
		}
	}
	return h.settle(ctx)
}

// expect records the results of operations that have ended according to the model.
func (h *history) expect(done ...model.Done) {
	for _, d := range done {
		for _, c := range h.clients {
			if c.busy != nil && c.busy.op == d.Op {
				c.busy.want = &d.Result
			}
		}
	}
}

// settle waits until the step has ended, and frees the clients whose operations have ended.
func (h *history) settle(ctx context.Context) error {
	if err := h.wait(ctx, h.difference); err != nil {
		return err
	}
	for _, c := range h.clients {
		if c.busy != nil && c.busy.want != nil {
			c.busy = nil
		}
	}
	return nil
}

// wait lets other fibers run until there is no difference, or until the difference is certain to stay: nothing has
// changed for a hundred checks and for a while. A fiber that reports that it waits may still be on its way there, and
// the operating system may have stopped it.
func (h *history) wait(ctx context.Context, difference func() string) error {
	begun := time.Now()
	for still := 0; ; still++ {
		d := difference()
		if d == "" {
			return nil
		}
		if h.moves() {
			still = 0
		}
		if t := time.Since(begun); still > 100 && t > 200*time.Millisecond || t > 20*time.Second {
			return errors.New(d)
		}
		if err := coir.Yield(ctx); err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// moves reports whether something may still happen by itself.
func (h *history) moves() bool {
	return h.patient || slices.ContainsFunc(h.clients, func(c *client) bool {
		return c.busy != nil && !c.busy.done.Load() && (c.fiber == nil || c.fiber.State() != coir.StateWaiting)
	})
}

// difference describes how the real channels differ from the model.
func (h *history) difference() string {
	for i, c := range h.clients {
		if c.busy != nil {
			if d := c.difference(); d != "" {
				return fmt.Sprintf("%s %s", who(i), d)
			}
		}
	}
	for i, p := range h.chans {
		if real, want := h.shownBy(p), shownByModel(p.model); real != want {
			return fmt.Sprintf("channel %c shows\n\t%+v, want\n\t%+v", 'a'+i, real, want)
		}
	}
	return ""
}

// shown is the visible state of a channel.
type shown struct {
	model.Stats
	Len, LenInStats    int
	Senders, Receivers int // waiting
	Undelivered        string
}

func shownByModel(c *model.Chan) shown {
	s := shown{Stats: c.Stats, Len: len(c.Values), LenInStats: len(c.Values), Undelivered: fmt.Sprint(c.Undelivered)}
	s.Senders, s.Receivers = c.Waiting()
	return s
}

func (h *history) shownBy(p *pair) shown {
	st := p.real.Stats()
	h.mu.Lock()
	defer h.mu.Unlock()
	return shown{
		Stats: model.Stats{
			High: st.High, Sent: st.Sent, Received: st.Received, Dropped: st.Dropped, Closed: st.Closed,
			Send: failures(st.Send), Recv: failures(st.Recv),
		},
		Len: p.real.Len(), LenInStats: st.Len, Senders: st.Send.Waiting, Receivers: st.Recv.Waiting,
		Undelivered: fmt.Sprint(p.lost),
	}
}

func failures(s coir.SideStats) model.Failures {
	return model.Failures{
		model.WouldBlock: s.WouldBlock, model.TimedOut: s.TimedOut, model.Cancelled: s.Cancelled, model.Closed: s.Closed,
	}
}
