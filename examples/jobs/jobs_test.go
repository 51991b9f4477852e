package jobs

// Whatever fails, every accepted job ends with a result or an error, and the queue ends too.
//
// TestQueue is also an example of a test under package sim. The program runs unchanged, in thousands of orders, on
// virtual time, with faults that the schedule injects. Errorf reports what must never happen. Sometimes names what must
// happen in at least one schedule; otherwise the test checks too little.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/supervise"
)

var (
	errFailed  = errors.New("failed")
	errRefused = errors.New("refused")
)

func TestQueue(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		const workers, attempts, burst, clients = 2, 2, 2, 4
		var mu sync.Mutex // guards made and times; never held during an operation that may wait
		made := map[string]int{}
		var times []time.Duration
		var running atomic.Int64
		q := New(Config{
			Workers: workers, Waiting: 1, Attempts: attempts, Restarts: 2,
			Backoff: 100 * time.Millisecond, Every: time.Second, Burst: burst,
			Connect: func(context.Context) (func(context.Context, string) (string, error), error) {
				if s.Fault("refuse") {
					return nil, errRefused
				}
				return func(ctx context.Context, job string) (string, error) {
					mu.Lock()
					made[job]++
					times = append(times, s.Now())
					mu.Unlock()
					defer running.Add(-1)
					if n := running.Add(1); n > workers {
						s.Errorf("%d jobs run", n)
					}
					if err := coir.Sleep(ctx, time.Duration(s.Intn(2))*time.Second); err != nil {
						return "", err
					}
					switch {
					case s.Fault("fail"):
						return "", errFailed
					case s.Fault("panic"):
						panic("a bug")
					}
					return strings.ToUpper(job), nil
				}, nil
			},
		})

		results, errs, refused := [clients]string{}, [clients]error{}, [clients]error{}
		ctx, cancel := coir.WithCancel(ctx)
		defer cancel()
		var ended error
		err := coir.Run(coir.Shield(ctx), func(client context.Context, n *coir.Nursery) error {
			n.Go("queue", func(context.Context) error {
				ended = q.Run(ctx)
				return nil
			})
			for i := range clients {
				n.Go("client", func(client context.Context) error { // its context is never cancelled
					submit := client
					if s.Fault("impatient") {
						var leave context.CancelFunc
						submit, leave = coir.WithTimeout(client, time.Millisecond)
						defer leave()
					}
					var t *Ticket
					if t, refused[i] = q.Submit(submit, Priority(i%2), fmt.Sprint("job ", i)); t != nil {
						results[i], errs[i] = t.Wait(client)
					}
					return nil
				}, coir.WithIndex(i))
			}
			err := coir.Sleep(client, time.Duration(s.Intn(2))*time.Second)
			if s.Fault("cancel") {
				cancel()
			}
			q.Stop()
			return err
		})
		if err != nil {
			s.Errorf("%v", err)
		}

		var gaveUp *supervise.GaveUpError
		failed := errors.As(ended, &gaveUp) || ctx.Err() != nil
		if ended != nil && !failed {
			s.Errorf("the queue ended with %v", ended)
		}
		lost := false
		for i, err := range errs {
			job := fmt.Sprint("job ", i)
			lost = lost || err == ErrLost
			switch {
			case refused[i] != nil:
				if made[job] > 0 || !errors.Is(refused[i], ErrClosed) && !errors.Is(refused[i], coir.ErrTimeout) {
					s.Errorf("%s was refused with %v after %d attempts", job, refused[i], made[job])
				}
			case err == nil && results[i] != strings.ToUpper(job), made[job] > attempts:
				s.Errorf("%s returned %q after %d attempts", job, results[i], made[job])
			case err == errFailed && made[job] < attempts && !failed:
				s.Errorf("%s was tried %d times", job, made[job])
			case err == nil, err == ErrCrashed, err == errFailed:
			case !failed:
				s.Errorf("%s ended with %v", job, err)
			}
		}
		for i := burst; i < len(times); i++ {
			if times[i]-times[i-burst] < time.Second {
				s.Errorf("attempts at %v", times)
			}
		}
		all := errors.Join(append(errs[:], refused[:]...)...)
		s.Sometimes(all == nil && len(times) == clients, "all are done at the first attempt")
		s.Sometimes(all == nil && len(times) > clients, "a second attempt helps")
		s.Sometimes(!failed && slices.Contains(errs[:], errFailed), "a job has no more attempts")
		s.Sometimes(!failed && slices.Contains(errs[:], ErrCrashed), "a job panics, and the queue goes on")
		s.Sometimes(gaveUp != nil && lost, "the queue gives up and has jobs left")
		s.Sometimes(ctx.Err() != nil && lost, "the queue is cancelled and has jobs left")
		s.Sometimes(errors.Is(all, ErrClosed), "a client comes too late")
		s.Sometimes(!failed && errors.Is(all, coir.ErrTimeout), "a client does not wait for room")
	}, sim.WithFaults("fail", "panic", "refuse", "cancel", "impatient"), sim.WithSchedules(3000))
}

// TestUrgent checks that an urgent job overtakes waiting jobs, and that a job that waits for its next attempt lets all
// others pass.
func TestUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		q := New(Config{
			Workers: 1, Waiting: 4, Attempts: 2, Backoff: time.Second, Every: time.Millisecond, Burst: 1,
			Connect: func(context.Context) (func(context.Context, string) (string, error), error) {
				return func(_ context.Context, job string) (string, error) {
					order = append(order, job)
					if job == "fails" {
						return "", errFailed
					}
					return "done", nil
				}, nil
			},
		})
		var tickets []*Ticket
		for _, job := range []string{"fails", "a", "b"} {
			ticket, err := q.Submit(t.Context(), Normal, job)
			if err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, ticket)
		}
		if _, err := q.Submit(t.Context(), Urgent, "urgent"); err != nil {
			t.Fatal(err)
		}
		q.Stop()
		if err := q.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"urgent", "fails", "a", "b", "fails"}; !slices.Equal(order, want) {
			t.Errorf("the order was %q", order)
		}
		if _, err := tickets[0].Wait(t.Context()); err != errFailed {
			t.Errorf("the job that fails ended with %v", err)
		}
		if _, err := q.Submit(t.Context(), Urgent, "late"); !errors.Is(err, ErrClosed) {
			t.Errorf("after the stop Submit returns %v", err)
		}
	})
}
