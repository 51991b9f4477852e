package transporttest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Messages are delivered in the order in which they were stored, whichever processes send and receive.
func inOrder(ctx context.Context, e *Env) error {
	if err := e.open(ctx, e.Name, 10); err != nil {
		return err
	}
	for seq := range uint64(5) {
		t := []remote.Transport{e.A, e.B}[seq%2]
		if err := publish(ctx, t, e.Name, seq); err != nil {
			return err
		}
	}
	for seq := range uint64(5) {
		if err := takeSeq(ctx, e.B, e.Name, seq, 1); err != nil {
			return err
		}
	}
	return nil
}

// A message that is published again is stored once, even if it was removed in between.
func oneIDOneMessage(ctx context.Context, e *Env) error {
	return first(
		e.open(ctx, e.Name, 10),
		publish(ctx, e.A, e.Name, 1),
		publish(ctx, e.A, e.Name, 1),
		publish(ctx, e.B, e.Name, 1),
		publish(ctx, e.A, e.Name, 2),
		takeSeq(ctx, e.B, e.Name, 1, 1),
		takeSeq(ctx, e.B, e.Name, 2, 1),
		publish(ctx, e.A, e.Name, 2),
		publish(ctx, e.A, e.Name, 3),
		takeSeq(ctx, e.B, e.Name, 3, 1))
}

// The same ID in another queue is another message.
func idsAreOfTheirQueue(ctx context.Context, e *Env) error {
	return first(
		e.open(ctx, e.Name, 10),
		e.open(ctx, e.Name+".dead", 10),
		publish(ctx, e.A, e.Name, 1),
		publish(ctx, e.A, e.Name+".dead", 1),
		takeSeq(ctx, e.B, e.Name, 1, 1),
		takeSeq(ctx, e.B, e.Name+".dead", 1, 1))
}

// A queue holds as many messages as its capacity, including those that are leased. When it is full, it still recognizes
// a message that it holds.
func full(ctx context.Context, e *Env) error {
	if err := first(
		e.open(ctx, e.Name, 2),
		publish(ctx, e.A, e.Name, 1),
		publish(ctx, e.A, e.Name, 2),
		isNot("publish to a full queue", publish(ctx, e.A, e.Name, 3), remote.ErrFull),
		publish(ctx, e.B, e.Name, 2)); err != nil {
		return err
	}
	d, err := pullSeq(ctx, e.B, e.Name, 1, 1)
	if err != nil {
		return err
	}
	return first(
		isNot("publish while a message is leased", publish(ctx, e.A, e.Name, 3), remote.ErrFull),
		ack(ctx, d),
		room(ctx, func() error { return publish(ctx, e.A, e.Name, 3) }),
		isNot("publish when it is full again", publish(ctx, e.A, e.Name, 4), remote.ErrFull),
		takeSeq(ctx, e.B, e.Name, 2, 1),
		takeSeq(ctx, e.B, e.Name, 3, 1))
}

// room repeats an operation until there is room, which may come soon after a removal.
func room(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, remote.ErrFull) {
			return err
		}
		if err := coir.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// Pull waits for a message.
func pullWaits(ctx context.Context, e *Env) error {
	if err := e.open(ctx, e.Name, 2); err != nil {
		return err
	}
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("pull", func(ctx context.Context) error { return takeSeq(ctx, e.B, e.Name, 1, 1) })
		return publish(ctx, e.A, e.Name, 1)
	})
}

// Pull returns the available messages, at most as many as its credit.
func pullCredit(ctx context.Context, e *Env) error {
	if err := e.open(ctx, e.Name, 10); err != nil {
		return err
	}
	for seq := range uint64(5) {
		if err := publish(ctx, e.A, e.Name, seq); err != nil {
			return err
		}
	}
	for next := uint64(0); next < 5; {
		try, cancel := coir.WithTimeout(ctx, 5*time.Second)
		ds, err := e.B.Pull(try, e.Name, 2)
		cancel()
		if err != nil && !errors.Is(err, remote.ErrUnknown) {
			return err
		}
		if len(ds) > 2 {
			return fmt.Errorf("%d messages for a credit of 2", len(ds))
		}
		for _, d := range ds {
			if err := first(differs("ID", d.Msg().ID.Seq, next), ack(ctx, d)); err != nil {
				return err
			}
			next++
		}
	}
	return nil
}

// One of several calls of Pull gives up. The others get the next messages, without being called again.
func pullGivesUp(ctx context.Context, e *Env) error {
	const waits = 3
	// After the first message the process receives from the queue, and a call of Pull only waits for a message.
	err := first(e.open(ctx, e.Name, waits), publish(ctx, e.A, e.Name, 1), takeSeq(ctx, e.B, e.Name, 1, 1))
	if err != nil {
		return err
	}
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		short, cancel := coir.WithCancel(ctx)
		defer cancel()
		gone := n.Go("pull that gives up", func(context.Context) error {
			_, err := e.B.Pull(short, e.Name, 1)
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("pull that was cancelled: %w", err)
			}
			return nil
		})
		if err := waiting(ctx, gone); err != nil { // so that it is the first in line
			return err
		}
		in, stop := coir.WithTimeout(ctx, 30*time.Second)
		defer stop()
		var got [waits - 1]*coir.Fiber
		for i := range got {
			got[i] = n.Go("pull", func(context.Context) error {
				ds, err := e.B.Pull(in, e.Name, 1)
				if err != nil {
					return fmt.Errorf("pull that waits: %w", err)
				}
				return ack(ctx, ds[0])
			}, coir.WithIndex(i))
		}
		if err := waiting(ctx, got[:]...); err != nil {
			return err
		}
		cancel()
		if err := gone.Wait(ctx); err != nil {
			return err
		}
		if err := publish(ctx, e.A, e.Name, 2); err != nil {
			return err
		}
		// The transport may have asked for this message before. It must ask for the next one.
		if _, err := coir.Select(ctx, got[0].DoneCase(nil), got[1].DoneCase(nil)); err != nil {
			return err
		}
		return first(publish(ctx, e.A, e.Name, 3), got[0].Wait(ctx), got[1].Wait(ctx))
	})
}

// waiting returns when each of the fibers waits.
func waiting(ctx context.Context, fibers ...*coir.Fiber) error {
	for _, f := range fibers {
		for f.State() != coir.StateWaiting {
			if err := coir.Yield(ctx); err != nil { // a fiber that has failed has cancelled its nursery
				return err
			}
		}
	}
	return nil
}

// A message whose lease ends without progress is delivered again.
func leaseEnds(ctx context.Context, e *Env) error {
	if err := first(e.open(ctx, e.Name, 2), publish(ctx, e.A, e.Name, 1)); err != nil {
		return err
	}
	if _, err := pullSeq(ctx, e.A, e.Name, 1, 1); err != nil {
		return err
	}
	return takeSeq(ctx, e.B, e.Name, 1, 2)
}

// A message whose lease is renewed is not delivered again. The lease here lasts three times as long as without renewal.
func progressRenews(ctx context.Context, e *Env) error {
	if err := first(e.open(ctx, e.Name, 2), publish(ctx, e.A, e.Name, 1)); err != nil {
		return err
	}
	d, err := pullSeq(ctx, e.A, e.Name, 1, 1)
	if err != nil {
		return err
	}
	lease := e.A.Info().Lease
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		again := n.Go("again", func(ctx context.Context) error { return takeSeq(ctx, e.B, e.Name, 1, 2) })
		for range 30 {
			if err := coir.Sleep(ctx, lease/10); err != nil {
				return err
			}
			d.Progress()
		}
		if again.State() == coir.StateEnded {
			return errors.New("it was delivered again although its lease was renewed")
		}
		return again.Wait(ctx) // set when the lease is no longer renewed
	})
}

// A message that is given back is delivered again after its delay.
func nak(ctx context.Context, e *Env) error {
	if err := first(e.open(ctx, e.Name, 2), publish(ctx, e.A, e.Name, 1)); err != nil {
		return err
	}
	d, err := pullSeq(ctx, e.A, e.Name, 1, 1)
	if err != nil {
		return err
	}
	d.Nak(0)
	if d, err = pullSeq(ctx, e.B, e.Name, 1, 2); err != nil {
		return err
	}
	delay, began := e.A.Info().Lease/4, coir.Now(ctx)
	d.Nak(delay)
	if err := takeSeq(ctx, e.A, e.Name, 1, 3); err != nil {
		return err
	}
	if took := coir.Now(ctx) - began; took < delay {
		return fmt.Errorf("it came after %v, before its delay of %v", took, delay)
	}
	return nil
}

// A delivery whose lease has ended can remove its message. So can both deliveries of a message.
func lateAck(ctx context.Context, e *Env) error {
	if err := first(e.open(ctx, e.Name, 1), publish(ctx, e.A, e.Name, 1)); err != nil {
		return err
	}
	d1, err := pullSeq(ctx, e.A, e.Name, 1, 1)
	if err != nil {
		return err
	}
	d2, err := pullSeq(ctx, e.B, e.Name, 1, 2)
	if err != nil {
		return err
	}
	return first(ack(ctx, d1), ack(ctx, d2), ack(ctx, d1),
		room(ctx, func() error { return publish(ctx, e.A, e.Name, 2) }), takeSeq(ctx, e.B, e.Name, 2, 1))
}

// A queue that was ended accepts nothing, delivers what it has, and then says that it is closed.
func end(ctx context.Context, e *Env) error {
	if err := first(e.open(ctx, e.Name, 2), publish(ctx, e.A, e.Name, 1)); err != nil {
		return err
	}
	d, err := pullSeq(ctx, e.B, e.Name, 1, 1)
	if err != nil {
		return err
	}
	stop := func(ctx context.Context) error { return e.A.End(ctx, e.Name) }
	if err := first(until(ctx, stop), until(ctx, stop),
		isNot("publish after End", publish(ctx, e.A, e.Name, 2), coir.ErrClosed)); err != nil {
		return err
	}
	for { // the other process soon learns of the end
		err := publish(ctx, e.B, e.Name, 1) // still stored
		if errors.Is(err, coir.ErrClosed) {
			break
		}
		if err := first(err, coir.Sleep(ctx, time.Millisecond)); err != nil {
			return err
		}
	}
	d.Nak(0) // the queue has not ended while a message is leased
	if err := takeSeq(ctx, e.A, e.Name, 1, 2); err != nil {
		return err
	}
	for _, t := range []remote.Transport{e.A, e.B} {
		_, err := pull(ctx, t, e.Name)
		if err := isNot("pull after End", err, coir.ErrClosed); err != nil {
			return err
		}
	}
	return nil
}

// End ends the waiting calls of Pull.
func endWakesPull(ctx context.Context, e *Env) error {
	if err := e.open(ctx, e.Name, 2); err != nil {
		return err
	}
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("pull", func(ctx context.Context) error {
			_, err := pull(ctx, e.B, e.Name)
			return isNot("pull after End", err, coir.ErrClosed)
		})
		return until(ctx, func(ctx context.Context) error { return e.A.End(ctx, e.Name) })
	})
}

// Tell reaches all functions that serve a subject, and none that has stopped serving.
func tellReachesAll(ctx context.Context, e *Env) error {
	got := coir.NewChan[string](coir.Unbounded)
	serve := func(t remote.Transport, as string) (func() error, error) {
		s, err := t.Serve(ctx, e.Name, func(data []byte) []byte {
			_ = got.TrySend(as + string(data))
			return nil
		})
		if err != nil {
			return nil, err
		}
		return s.Close, nil
	}
	closeA, err := serve(e.A, "a")
	if err != nil {
		return err
	}
	closeB, err := serve(e.B, "b")
	if err != nil {
		return err
	}
	hear := func(want ...string) error {
		e.A.Tell(e.Name, []byte("!"))
		seen := map[string]bool{}
		for len(seen) < len(want) {
			text, err := got.RecvTimeout(ctx, time.Second)
			if err != nil {
				e.A.Tell(e.Name, []byte("!")) // the message may be lost
				continue
			}
			seen[text] = true
		}
		for _, w := range want {
			if !seen[w] {
				return fmt.Errorf("it has reached %v, not %v", seen, want)
			}
		}
		return nil
	}
	if err := first(hear("a!", "b!"), closeA()); err != nil {
		return err
	}
	for err == nil { // drop the earlier messages
		_, err = got.TryRecv()
	}
	return first(hear("b!"), closeB())
}

// Request reaches one of the functions that serve a subject, and returns its answer. If nothing serves the subject,
// Request fails.
func requestReachesOne(ctx context.Context, e *Env) error {
	request := func(text string) (string, error) {
		try, cancel := coir.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		out, err := e.A.Request(try, e.Name, []byte(text))
		return string(out), err
	}
	_, err := request("x")
	if err := isNot("request that none serves", err, remote.ErrUnavailable); err != nil {
		return err
	}
	var calls atomic.Int32
	var closers []func() error
	for _, t := range []remote.Transport{e.A, e.B} {
		s, err := t.Serve(ctx, e.Name, func(data []byte) []byte {
			calls.Add(1)
			return append(data, '!')
		})
		if err != nil {
			return err
		}
		closers = append(closers, s.Close)
	}
	for i := range 10 {
		out, err := request(fmt.Sprint(i))
		if err := first(err, differs("answer", out, fmt.Sprint(i, "!")), differs("calls", int(calls.Load()), i+1)); err != nil {
			return err
		}
	}
	return first(closers[0](), closers[1]())
}

// An operation in a context that has ended has no effect, and returns the error of the context.
func endedContext(ctx context.Context, e *Env) error {
	if err := e.open(ctx, e.Name, 2); err != nil {
		return err
	}
	ended, cancel := coir.WithCancel(ctx)
	cancel()
	err := e.A.Publish(ended, e.Name, remote.Msg{ID: remote.ID{Sender: 1, Seq: 1}})
	if err := isNot("publish", err, context.Canceled); err != nil {
		return err
	}
	if errors.Is(err, remote.ErrUnknown) {
		return fmt.Errorf("publish in an ended context is unknown: %w", err)
	}
	_, err = e.A.Pull(ended, e.Name, 1)
	if err := isNot("pull", err, context.Canceled); err != nil {
		return err
	}
	_, err = e.A.Serve(ended, e.Name, func(data []byte) []byte { return data })
	if err := isNot("serve", err, context.Canceled); err != nil {
		return err
	}
	return first(publish(ctx, e.A, e.Name, 2), takeSeq(ctx, e.A, e.Name, 2, 1))
}

// A queue has one capacity.
func oneCapacity(ctx context.Context, e *Env) error {
	if err := e.open(ctx, e.Name, 2); err != nil {
		return err
	}
	if openQueue(ctx, e.B, e.Name, 3) == nil {
		return errors.New("a queue was opened again with another capacity")
	}
	return nil
}
