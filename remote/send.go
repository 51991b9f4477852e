package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// Send sends v. It waits while the channel is full, unless [WithOverflow] says otherwise; the waiting sends of an end
// are served in order.
//
// On a durable channel, Send returns nil when v is stored. While the broker cannot be reached, or does not answer, Send
// tries again, with the same [ID], so that v is stored once. If ctx ends meanwhile, Send returns the error of ctx. That
// error also matches [ErrFull] if Send waited for room, [ErrUnavailable] if the broker could not be reached, and
// [ErrUnknown] if an attempt may have stored v, or may still store it. Send gives up with ErrUnknown after half of
// [Info.Window], because the transport would not recognize a later attempt.
//
// On a volatile channel, Send returns nil when a receiving process has v in its buffer. It waits while there is no
// receiving process. If an attempt may have succeeded, it returns ErrUnknown.
//
// Send waits for an answer of the broker, or of the receiving process. To send more values in the same time, send from
// several fibers: their requests overlap, and on a volatile channel they share requests.
//
// After any other error, v has not been sent. The error matches [coir.ErrClosed] if the channel was closed or this end
// was left.
//
// There is no SendCase, because a select would have to take back a send that has begun, and that is not possible. Start
// a fiber that sends, and select on its end.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	data, err := c.set.codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("remote: send on %s: the codec cannot encode the value: %w", c.name, err)
	}
	c.cond.Lock()
	c.seq++
	s := sending{m: Msg{ID: ID{c.sender, c.seq}, Data: data}} // one ID for all attempts
	c.cond.Unlock()
	if err = c.sendMsg(ctx, &s); err != nil {
		err = fmt.Errorf("remote: send on %s: %w", c.name, err)
	}
	return err
}

// sendMsg sends an encoded value, and counts it.
func (c *Chan[T]) sendMsg(ctx context.Context, s *sending) error {
	s.post, s.window, s.atMostOnce = c.post(), c.t.Info().Window/2, !c.stored
	err := c.send(ctx, s)
	c.count(func(st *Stats) {
		switch {
		case err == nil && s.dropped:
			st.Dropped++
		case err == nil:
			st.Sent++
		case errors.Is(err, ErrUnknown):
			st.Unknown++
		}
	})
	return err
}

// sending is a value on its way into a channel.
type sending struct {
	m          Msg
	post       func(ctx context.Context, m Msg) error // makes one attempt
	window     time.Duration                          // how long an attempt that may have succeeded may be repeated
	atMostOnce bool                                   // such an attempt may not be repeated at all
	keep       bool                                   // WithOverflow may not drop the value

	limit   attempt.Limit // time limit of the next attempt
	doubt   bool          // an attempt may have succeeded, or may still succeed
	since   time.Duration // when the first such attempt began
	dropped bool
}

// post returns the function that makes one attempt to send.
func (c *Chan[T]) post() func(ctx context.Context, m Msg) error {
	if c.stored {
		return func(ctx context.Context, m Msg) error { return c.t.Publish(ctx, c.name, m) }
	}
	return c.request
}

// send makes attempts until the outcome is known, or ctx ends.
func (c *Chan[T]) send(ctx context.Context, s *sending) error {
	back := attempt.NewBackoff()
	poll := attempt.Backoff{Next: pollMin, Most: pollMax}
	var end func() // of the slow part; nil before that begins
	defer func() {
		if end != nil {
			end()
		}
	}()
	for p := c.line.enter(); ; {
		if p != nil {
			if end == nil {
				ctx, end = c.slow(ctx)
			}
			if err := c.wait(ctx, p, &poll); err != nil {
				return s.failed(fmt.Errorf("%w: %w", ErrFull, err))
			}
		}
		err := c.attempt(ctx, s)
		c.heard(ctx, err)
		if err == nil {
			if p != nil && p.more {
				c.pass()
			}
			return nil
		}
		if errors.Is(err, ErrFull) && c.set.over == coir.OverflowWait {
			c.count(func(st *Stats) { st.Refused++ })
			p = c.line.park(p != nil)
			continue
		}
		if end == nil {
			ctx, end = c.slow(ctx)
		}
		if err := c.goOn(ctx, s, &back, err); err != nil || s.dropped {
			if p != nil {
				c.pass()
			}
			return err
		}
		p = nil // it rejoins the line only if it is refused again
	}
}

// wait waits in the line until it is the turn of p. If ctx ends first, it passes on the credit of p.
func (c *Chan[T]) wait(ctx context.Context, p *place, poll *attempt.Backoff) error {
	c.want()
	err := c.line.wait(ctx, p, poll.Next)
	switch {
	case err == nil && p.credit:
		poll.Next = p.late()
	case err == nil:
		poll.Grow()
	case p.credit:
		c.pass()
	default:
		c.want() // one send fewer waits
	}
	return err
}

// attempt makes one attempt, and records when the first attempt began that may have succeeded.
func (c *Chan[T]) attempt(ctx context.Context, s *sending) error {
	if err := c.hasLeft(); err != nil {
		return err
	}
	began := coir.Now(ctx)
	var err error
	if s.atMostOnce { // its requests have a time limit of their own
		err = s.post(ctx, s.m)
	} else {
		err = s.limit.Do(ctx, func(ctx context.Context) error { return s.post(ctx, s.m) })
	}
	if errors.Is(err, ErrUnknown) && !s.doubt {
		s.doubt, s.since = true, began
	}
	return err
}

// goOn decides what to do after an attempt that failed with err. It returns nil if the next attempt may be made, or if
// the value was dropped.
func (c *Chan[T]) goOn(ctx context.Context, s *sending, back *attempt.Backoff, err error) error {
	switch {
	case errors.Is(err, ErrFull) && c.set.over == coir.OverflowDropNewest && !s.doubt && !s.keep:
		s.dropped = true
		return nil
	case errors.Is(err, ErrUnknown):
		if s.atMostOnce || coir.Now(ctx)-s.since >= s.window {
			return s.failed(err)
		}
	case errors.Is(err, ErrUnavailable):
	default:
		return s.failed(err)
	}
	if ended := back.Wait(ctx); ended != nil {
		return s.failed(fmt.Errorf("%w: %w", err, ended))
	}
	return nil
}

// failed returns the error of a send that gives up because of err.
func (s *sending) failed(err error) error {
	return attempt.Doubt(s.doubt, err)
}
