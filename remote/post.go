package remote

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/aside"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// How values get into the buffer of a volatile channel.
//
// A send is a request to a receiving process, and its answer. Sends of one end that wait at the same time share a
// request: while one request is on its way, more sends gather, and the next request carries them. So 100 fibers that
// send cost one round trip, not 100, and each of them still learns the outcome for its own value. A fiber makes the
// requests, and ends when there is nothing to send.
//
// Invariants:
//
//	P1 once:    a value is in at most one request.
//	P2 outcome: a send that gives up before its value is in a request has not sent it; if it gives up later, the
//	            outcome is unknown.

// posts holds the sends of one end that are waiting for a request or for its answer.
type posts struct {
	cond   coir.Cond     // guards the fields below
	waits  []*post       // not in a request yet, the oldest first
	flying *aside.Fibers // the fiber that makes requests; nil if there is none
}

// post is a value on its way to a receiving process.
type post struct {
	m      Msg
	answer coir.Promise[error] // resolved with the outcome
	gone   bool                // in a request; guarded by the lock of posts
}

// The bounds of a request. A single value may be larger.
const (
	postValues = 1024
	postBytes  = 128 << 10
)

// request makes an attempt to send on a volatile channel.
func (c *Chan[T]) request(ctx context.Context, m Msg) error {
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	p := &post{m: m}
	c.posts.cond.Lock()
	c.posts.waits = append(c.posts.waits, p)
	begin := c.posts.flying == nil
	if begin {
		c.posts.flying = new(aside.Fibers)
	}
	flying := c.posts.flying
	c.posts.cond.Unlock()
	if begin {
		flying.Go(c.n, "send "+c.name, func(in *coir.Nursery) {
			in.Go("send "+c.name, func(ctx context.Context) error {
				c.fly(ctx)
				return nil
			})
		})
	}
	err := flying.Wait(ctx)
	if err == nil {
		var outcome error
		if outcome, err = p.answer.Wait(ctx); err == nil {
			return outcome
		}
	}
	c.posts.cond.Lock()
	gone := p.gone
	c.posts.waits = slices.DeleteFunc(c.posts.waits, func(x *post) bool { return x == p })
	c.posts.cond.Unlock()
	if gone {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// fly makes requests until there is nothing to send.
func (c *Chan[T]) fly(ctx context.Context) {
	for {
		together := c.posts.take()
		if together == nil {
			return
		}
		c.flyOnce(ctx, together)
	}
}

// take returns the values of the next request, or nil if there are none.
func (ps *posts) take() []*post {
	ps.cond.Lock()
	defer ps.cond.Unlock()
	n, size := 0, 0
	for n < min(len(ps.waits), postValues) && (n == 0 || size+len(ps.waits[n].m.Data) <= postBytes) {
		size += len(ps.waits[n].m.Data)
		ps.waits[n].gone = true
		n++
	}
	if n == 0 {
		ps.flying = nil
		return nil
	}
	together := slices.Clone(ps.waits[:n])
	ps.waits = slices.Delete(ps.waits, 0, n)
	return together
}

// flyOnce makes one request.
func (c *Chan[T]) flyOnce(ctx context.Context, together []*post) {
	size := 0
	for _, p := range together {
		size += valueHead + len(p.m.Data)
	}
	data := make([]byte, 0, size)
	for _, p := range together {
		data = appendValue(data, p.m)
	}
	var out []byte
	err := attempt.Within(ctx, onceTime, func(ctx context.Context) (err error) {
		out, err = c.t.Request(ctx, valueSubject(c.name), data)
		return err
	})
	large := err != nil && !attempt.Open(err) && coir.Ended(ctx) == nil
	if large && len(together) > 1 { // the transport refuses requests of this size
		half := len(together) / 2
		c.flyOnce(ctx, together[:half])
		c.flyOnce(ctx, together[half:])
		return
	}
	for _, p := range together {
		outcome := err
		if err == nil {
			out, outcome = parseAnswer(out)
		}
		p.answer.Resolve(outcome)
	}
}

// The messages of a volatile channel: values, and the answers of a receiving process, one for each value.

func valueSubject(name string) string { return "value." + name }

const (
	answerTaken   = 'y'
	answerFull    = 'f'
	answerRefused = 'n' // followed by the reason
)

// valueHead is the number of bytes that appendValue adds to those of a value.
const valueHead = 8 + 8 + 4

func appendValue(b []byte, m Msg) []byte {
	b = binary.BigEndian.AppendUint64(b, m.ID.Sender)
	b = binary.BigEndian.AppendUint64(b, m.ID.Seq)
	return appendBytes(b, m.Data)
}

// appendBytes appends the length of data, and data.
func appendBytes(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}

// cutBytes returns the bytes that appendBytes has appended, and the rest of b.
func cutBytes(b []byte) (data, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if n > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n : 4+n], b[4+n:], true
}

func parseValues(b []byte) (ms []Msg, ok bool) {
	for len(b) > 0 {
		if len(b) < 16 {
			return nil, false
		}
		m := Msg{ID: ID{number(b[:8]), number(b[8:16])}}
		if m.Data, b, ok = cutBytes(b[16:]); !ok {
			return nil, false
		}
		ms = append(ms, m)
	}
	return ms, len(ms) > 0
}

func appendRefusal(b []byte, reason string) []byte {
	return appendBytes(append(b, answerRefused), []byte(reason))
}

// parseAnswer returns the outcome of the first value of an answer, and the answer for the rest.
func parseAnswer(b []byte) (rest []byte, outcome error) {
	if len(b) > 0 {
		switch b[0] {
		case answerTaken:
			return b[1:], nil
		case answerFull:
			return b[1:], ErrFull
		case answerRefused:
			if reason, rest, ok := cutBytes(b[1:]); ok {
				return rest, fmt.Errorf("the receiver refuses the value: %s", reason)
			}
		}
	}
	return nil, fmt.Errorf("%w: the receiver's answer cannot be read: %.20q", ErrUnknown, b)
}
