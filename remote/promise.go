package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/remote/internal/trouble"
	"github.com/coir-go/coir/remote/internal/unique"
)

// Promise is a result that comes later and is stored under a key of the program, such as "payment 4711". Any process
// may complete it. Any process may wait for it, even one that starts later, because the result is stored. The first
// completion wins, and the result does not change. [NewPromise] makes a Promise. Any number of fibers and goroutines
// may use it.
//
// A Promise does not behave like a [coir.Promise]: completing it is a request, and the outcome may be unknown.
type Promise[T any] struct {
	key string
	t   Transport
	set settings
}

// ErrRejected is the error of a wait for a promise or a ticket that was completed by Reject. Compare with errors.Is:
// the returned error contains the reason.
var ErrRejected = errors.New("remote: rejected")

// The shortest and the longest interval at which a wait polls for the result, because the message that the promise was
// completed may be lost.
const (
	lookMin = time.Second
	lookMax = 10 * time.Second
)

// NewPromise returns the promise with the key. It makes no request. All processes must use the same type and the same
// codec. The options are [WithCodec] and [WithMeaning]: NewPromise fails if the transport promises less than
// [MeaningDurable], unless WithMeaning accepts that.
func NewPromise[T any](t Transport, key string, opts ...Option) (*Promise[T], error) {
	p := &Promise[T]{key: key, t: t, set: settle[T](opts)}
	if m := t.Info().Meaning; m < p.set.meaning {
		return nil, fmt.Errorf("remote: promise %s: this transport promises only that a result is %v, not %v: change the "+
			"server settings, or accept it with WithMeaning", key, m, p.set.meaning)
	}
	return p, nil
}

// Key returns the key of the promise.
func (p *Promise[T]) Key() string { return p.key }

// String returns a short description of the promise.
func (p *Promise[T]) String() string { return "remote.Promise(" + p.key + ")" }

// Resolve completes the promise with v. It reports whether this call has won: if not, the promise has another result,
// which Wait returns. In both cases a result is stored. While the broker cannot be reached, or does not answer, Resolve
// tries again until ctx ends, and then returns the error of ctx. That error also matches [ErrUnknown] if an attempt may
// have stored v, or may still store it. Then call Resolve again, even in a later process.
func (p *Promise[T]) Resolve(ctx context.Context, v T) (won bool, err error) {
	data, err := p.set.codec.Marshal(v)
	if err != nil {
		return false, fmt.Errorf("remote: resolve %s: the codec cannot encode the value: %w", p.key, err)
	}
	if won, err = p.complete(ctx, resultValue, data); err != nil {
		return false, fmt.Errorf("remote: resolve %s: %w", p.key, err)
	}
	return won, nil
}

// Reject completes the promise with an error that contains the reason: Wait returns [ErrRejected]. Reject returns the
// same as [Promise.Resolve].
func (p *Promise[T]) Reject(ctx context.Context, reason string) (won bool, err error) {
	if won, err = p.complete(ctx, resultError, []byte(reason)); err != nil {
		return false, fmt.Errorf("remote: reject %s: %w", p.key, err)
	}
	return won, nil
}

// A stored result has a kind, a number that identifies the call that has stored it, and the value or the reason.
const (
	resultValue = 'v'
	resultError = 'e'
	resultHead  = 1 + 8
)

func (p *Promise[T]) complete(ctx context.Context, kind byte, data []byte) (won bool, err error) {
	call := unique.Number(ctx) // the same for all attempts: one may find the result of an earlier one
	mine := append(binary.BigEndian.AppendUint64([]byte{kind}, call), data...)
	var stored []byte
	err = attempt.Repeat(ctx, 0, func(ctx context.Context) error {
		stored, err = p.t.Put(ctx, storeKey(p.key), mine)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(stored) < resultHead {
		return false, errors.New("the result that is stored cannot be read")
	}
	p.t.Tell(promiseSubject(p.key), nil)
	return number(stored[1:resultHead]) == call, nil
}

func promiseSubject(key string) string { return "promise." + key }

func storeKey(key string) string { return "promise." + key }

// Wait waits until any process has completed the promise, even before this process began. It returns the value, or an
// error that matches [ErrRejected]. It waits while the broker cannot be reached. If ctx ends first, it returns the
// error of ctx. That error also matches [ErrUnavailable] if the broker is known to be away at that time.
//
// To wait in a select, start a fiber that waits, and use its DoneCase. To look without waiting, use [Promise.Peek].
func (p *Promise[T]) Wait(ctx context.Context) (v T, err error) {
	w := &waiter{t: p.t, key: p.key}
	ctx, end := w.begin(ctx, waitVerb)
	defer end()
	data, err := w.look(ctx)
	if data == nil && err == nil {
		data, err = w.await(ctx)
	}
	if err == nil {
		v, err = p.result(data)
	}
	if err != nil {
		return v, fmt.Errorf("remote: wait for %s: %w", p.key, err)
	}
	return v, nil
}

// Peek asks the broker whether the promise has been completed, and does not wait until it is. If it is, done is true,
// and Peek returns the same as [Promise.Wait]: the value, or an error that matches [ErrRejected]. Peek may miss a
// completion of a moment ago. While the broker cannot be reached, or does not answer, Peek tries again until ctx ends,
// and then returns the error that Wait would return. So give ctx a time limit.
func (p *Promise[T]) Peek(ctx context.Context) (v T, done bool, err error) {
	w := &waiter{t: p.t, key: p.key}
	ctx, end := w.begin(ctx, peekVerb)
	defer end()
	data, err := w.look(ctx)
	if done = data != nil; done && err == nil {
		v, err = p.result(data)
	}
	if err != nil {
		return v, done, fmt.Errorf("remote: peek at %s: %w", p.key, err)
	}
	return v, done, nil
}

// result returns the value or the error that is stored.
func (p *Promise[T]) result(data []byte) (v T, err error) {
	switch {
	case len(data) < resultHead:
		err = errors.New("the result that is stored cannot be read")
	case data[0] == resultError:
		err = fmt.Errorf("%w: %s", ErrRejected, data[resultHead:])
	default:
		err = p.set.codec.Unmarshal(data[resultHead:], &v)
	}
	return v, err
}

// waiter is a wait for the promise with the key, or a look at it.
type waiter struct {
	t       Transport
	key     string
	away    error          // of the last request, if the broker could not be reached
	trouble trouble.Record // the same for snapshots
}

// look reads the result, if there is one.
func (w *waiter) look(ctx context.Context) (data []byte, err error) {
	err = attempt.Repeat(ctx, 0, func(in context.Context) error {
		data, err = w.t.Get(in, storeKey(w.key))
		w.heard(ctx, err)
		return err
	})
	if ended := coir.Ended(ctx); err != nil && ended != nil {
		err = w.gaveUp(ended) // not ErrUnknown: reading changes nothing
	}
	return data, err
}

// heard records what the outcome of a request says about the broker, unless ctx has ended meanwhile.
func (w *waiter) heard(ctx context.Context, err error) {
	w.trouble.Heard(ctx, err, brokerAway)
	switch {
	case errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown):
		w.away = err
	case err == nil || coir.Ended(ctx) == nil:
		w.away = nil
	}
}

// gaveUp returns the error of a wait whose context has ended. If the broker is known to be away, the error says why.
func (w *waiter) gaveUp(ended error) error {
	if _, lost := w.t.Lost(); lost != nil {
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, lost, ended)
	}
	if w.away != nil {
		return fmt.Errorf("%w: %w", w.away, ended)
	}
	return ended
}

// await reads the result when a process says that there is one, and also polls.
func (w *waiter) await(ctx context.Context) ([]byte, error) {
	var told atomic.Pointer[coir.Event] // replaced before each look
	told.Store(w.event())
	var polls polling
	timer := coir.NewTimer(&polls, coir.WithBackground(), coir.WithName("poll of "+w.key))
	poll := attempt.Backoff{Next: lookMin, Most: lookMax}
	for serving := false; ; {
		if !serving {
			var s io.Closer
			err := attempt.Within(ctx, openTime, func(ctx context.Context) (err error) {
				s, err = w.t.Serve(ctx, promiseSubject(w.key), func([]byte) []byte {
					told.Load().Set()
					return nil
				})
				return err
			})
			if serving = err == nil; serving {
				defer func() { _ = s.Close() }()
			} // otherwise poll, and try to serve again
		}
		next := w.event()
		told.Store(next)
		data, err := w.look(ctx)
		if data != nil || err != nil {
			return data, err
		}
		polls.next = coir.Now(ctx) + poll.Next
		if _, err := coir.Select(ctx, next.DoneCase(), timer.WaitCase(nil)); err != nil {
			return nil, w.gaveUp(err)
		}
		poll.Grow()
	}
}

// event returns an event that is set when a process says that there is a result.
func (w *waiter) event() *coir.Event { return coir.NewEvent(coir.WithName("result of " + w.key)) }

// polling is the schedule of the polls of a wait. They are in the background: a program in which nothing happens but
// polls is stuck, and package sim says so.
type polling struct{ next time.Duration }

// Due implements coir.Schedule.
//
//go:norace
func (p *polling) Due(int, time.Duration) time.Duration { return p.next }

// Take implements coir.Schedule.
//
//go:norace
func (p *polling) Take(int, time.Duration) int { return 0 }

// Words implements coir.Schedule.
func (p *polling) Words(int) string { return "for the next" }
