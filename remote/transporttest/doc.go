// Package transporttest contains the tests that every transport of package remote passes.
//
//	func TestTransport(t *testing.T) {
//		transporttest.Run(t, func(t testing.TB) (a, b remote.Transport) { ... })
//	}
//
// [RunSilent] is another test, with a broker that no longer answers.
//
// A case of the suite is an ordinary function of package coir. It also runs in a simulation, as the tests of package
// memory do.
package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Env holds the transports of two processes for a case, and a name for a queue or a subject.
type Env struct {
	A, B remote.Transport
	Name string
}

// Case is a test of a transport. It returns an error if the transport fails it.
type Case struct {
	Name string
	Run  func(ctx context.Context, e *Env) error
}

// Run runs all cases. It calls open for each. open returns the transports of two processes that pull from the same
// queues, and from no others. The lease should be short, because cases wait for its end.
func Run(t *testing.T, open func(t testing.TB) (a, b remote.Transport)) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			a, b := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			err := coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
				return c.Run(ctx, &Env{a, b, c.Name})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Cases returns the cases.
func Cases() []Case {
	return []Case{
		{"InOrder", inOrder},
		{"OneIDOneMessage", oneIDOneMessage},
		{"IDsAreOfTheirQueue", idsAreOfTheirQueue},
		{"Full", full},
		{"PullWaits", pullWaits},
		{"PullCredit", pullCredit},
		{"PullGivesUp", pullGivesUp},
		{"LeaseEnds", leaseEnds},
		{"ProgressRenews", progressRenews},
		{"Nak", nak},
		{"LateAck", lateAck},
		{"End", end},
		{"EndWakesPull", endWakesPull},
		{"TellReachesAll", tellReachesAll},
		{"RequestReachesOne", requestReachesOne},
		{"FirstPutCounts", firstPutCounts},
		{"OneOfManyPuts", oneOfManyPuts},
		{"EndedContext", endedContext},
		{"OneCapacity", oneCapacity},
		{"ChanExchange", chanExchange},
		{"ChanBound", chanBound},
		{"ChanWaits", chanWaits},
		{"ChanClose", chanClose},
		{"ChanDead", chanDead},
		{"ChanRevive", chanRevive},
		{"ChanSelect", chanSelect},
		{"Volatile", volatile},
		{"Promise", promise},
		{"PromisePeek", promisePeek},
	}
}

// differs returns an error if got is not want.
func differs[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v, not %v", what, got, want)
	}
	return nil
}

// isNot returns an error if err is not want.
func isNot(what string, err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: %v, not %v", what, err, want)
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// until repeats an operation until its outcome is known, because a transport does not repeat it.
func until(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		try, cancel := coir.WithTimeout(ctx, 5*time.Second)
		err := f(try)
		cancel()
		late := errors.Is(err, context.DeadlineExceeded) && coir.Ended(ctx) == nil
		if !late && !errors.Is(err, remote.ErrUnknown) && !errors.Is(err, remote.ErrUnavailable) {
			return err
		}
		if err := coir.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// publish publishes a message of the sender 1. Its data is its number.
func publish(ctx context.Context, t remote.Transport, queue string, seq uint64) error {
	return until(ctx, func(ctx context.Context) error {
		return t.Publish(ctx, queue, remote.Msg{ID: remote.ID{Sender: 1, Seq: seq}, Data: fmt.Appendf(nil, "%d", seq)})
	})
}

// openQueue opens a queue in one process.
func openQueue(ctx context.Context, t remote.Transport, queue string, capacity int) error {
	return until(ctx, func(ctx context.Context) error { return t.Open(ctx, queue, capacity) })
}

func (e *Env) open(ctx context.Context, queue string, capacity int) error {
	return first(openQueue(ctx, e.A, queue, capacity), openQueue(ctx, e.B, queue, capacity))
}

func ack(ctx context.Context, d remote.Delivery) error { return until(ctx, d.Ack) }

// pull pulls one message.
func pull(ctx context.Context, t remote.Transport, queue string) (d remote.Delivery, err error) {
	err = until(ctx, func(ctx context.Context) error {
		ds, err := t.Pull(ctx, queue, 1)
		if err == nil {
			d = ds[0]
		}
		return err
	})
	return d, err
}

// pullSeq pulls one message, and checks it.
func pullSeq(ctx context.Context, t remote.Transport, queue string, seq uint64, tries int) (remote.Delivery, error) {
	d, err := pull(ctx, t, queue)
	if err != nil {
		return nil, err
	}
	return d, first(
		differs("ID", d.Msg().ID, remote.ID{Sender: 1, Seq: seq}),
		differs("data", string(d.Msg().Data), fmt.Sprint(seq)),
		differs("tries", d.Tries(), tries))
}

// takeSeq pulls one message, checks it, and removes it.
func takeSeq(ctx context.Context, t remote.Transport, queue string, seq uint64, tries int) error {
	d, err := pullSeq(ctx, t, queue, seq, tries)
	if err != nil {
		return err
	}
	return ack(ctx, d)
}
