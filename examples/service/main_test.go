package main

// Whatever fails, each client gets an answer or an error, and the service ends.

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

var (
	errRefused = errors.New("refused")
	errGone    = errors.New("the parent has gone")
)

// faulty returns a service whose backends fail as s decides. They answer with the configuration, and count their
// panics.
func faulty(s *sim.Sim, panics *atomic.Int64) *Service {
	return New(Settings{
		Workers: 2, Queue: 1, Admission: time.Second, Patience: 2 * time.Second,
		Connect: func(context.Context) (Backend, error) {
			if s.Fault("refuse") {
				return nil, errRefused
			}
			return func(ctx context.Context, config, _ string) (string, error) {
				if s.Fault("panic") {
					panics.Add(1)
					panic("a bug")
				}
				if s.Fault("slow") {
					return "", coir.Sleep(ctx, time.Minute)
				}
				return config, coir.Sleep(ctx, time.Duration(s.Intn(2))*time.Millisecond)
			}, nil
		},
		Every: time.Minute, Report: func(int) {},
	})
}

// TestService runs clients, a change of the configuration and a graceful stop in many orders, with backends that refuse
// requests, panic and are slow.
func TestService(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var panics atomic.Int64
		v := faulty(s, &panics)
		v.Configure("old")
		var texts [4]string
		var errs [4]error
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("service", v.Run)
			for i := range texts {
				n.Go("client", func(ctx context.Context) error {
					if i == 0 {
						v.Configure("new")
					}
					texts[i], errs[i] = v.Do(ctx, "job")
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("stop", func(ctx context.Context) error { return shutDown(ctx, v, f, time.Hour) })
			return nil
		})

		givenUp := err != nil && strings.Contains(err.Error(), "given up")
		if err != nil && !givenUp {
			s.Errorf("the service ended with %v", err)
		}
		for i, err := range errs {
			switch {
			case err == nil && i == 0 && texts[i] != "new", err == nil && texts[i] == "":
				s.Errorf("client %d was answered under configuration %q", i, texts[i])
			case err == ErrLost && panics.Add(-1) < 0 && !givenUp:
				s.Errorf("client %d's request was lost by nobody", i)
			case err == nil, err == ErrBusy, err == ErrLost, errors.Is(err, coir.ErrTimeout), errors.Is(err, coir.ErrClosed):
			case !givenUp || !errors.Is(err, context.Canceled):
				s.Errorf("client %d got %v", i, err)
			}
		}
		some := func(is error) bool {
			return errors.Is(errors.Join(errs[:]...), is)
		}
		s.Sometimes(err == nil && errors.Join(errs[:]...) == nil, "all are answered")
		s.Sometimes(err == nil && some(ErrLost), "a worker has panicked and was started again")
		s.Sometimes(err == nil && some(ErrBusy), "the queue was full for too long")
		s.Sometimes(err == nil && some(coir.ErrTimeout), "a request took too long")
		s.Sometimes(err == nil && some(coir.ErrClosed), "a client came after the stop")
		s.Sometimes(errors.Is(err, errRefused), "a worker was given up")
	}, sim.WithFaults("refuse", "panic", "slow"))
}

// isCancelFor reports whether err is a cancellation error that has the given cause.
func isCancelFor(err, cause error) bool {
	return errors.Is(err, context.Canceled) && !errors.Is(err, cause) &&
		strings.HasSuffix(err.Error(), "cancelled: "+cause.Error())
}

// TestCancel checks that when the parent is cancelled, everything ends at once, Run returns the cancellation with its
// cause, and no client is left waiting.
func TestCancel(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		v := faulty(s, nil)
		var errs [4]error
		var ended error
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			parent, cancel := coir.WithCancelCause(ctx)
			for i := range errs {
				n.Go("client", func(ctx context.Context) error { // its context is never cancelled
					_, errs[i] = v.Do(ctx, "job")
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("parent", func(ctx context.Context) error {
				defer cancel(errGone)
				return coir.Sleep(ctx, time.Duration(s.Intn(5))*time.Millisecond)
			})
			ended = v.Run(parent)
			return nil
		})
		if err != nil || !isCancelFor(ended, errGone) {
			s.Errorf("the service ended with %v, %v", ended, err)
		}
		all := errors.Join(errs[:]...)
		s.Sometimes(all == nil, "all are answered")
		s.Sometimes(errors.Is(all, ErrLost), "a request was in the queue")
		s.Sometimes(errors.Is(all, context.Canceled), "a request was being answered")
		s.Sometimes(errors.Is(all, coir.ErrClosed), "a client came too late")
	})
}

// TestAStopThatTakesTooLong checks that a service that does not stop in time is cancelled.
func TestAStopThatTakesTooLong(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		v := faulty(s, nil)
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("service", v.Run)
			n.Go("client", func(ctx context.Context) error {
				_, err := v.Do(ctx, "job")
				if err != nil && !errors.Is(err, coir.ErrClosed) && !isCancelFor(err, errSlow) && err != ErrLost {
					s.Errorf("the client got %v", err)
				}
				return nil
			})
			return shutDown(ctx, v, f, time.Second)
		})
		if err != nil && !errors.Is(err, errSlow) {
			s.Errorf("the service ended with %v", err)
		}
		s.Sometimes(err == nil, "in time")
		s.Sometimes(err != nil, "too late")
	}, sim.WithFaults("slow"))
}

// TestWhoseDeadline checks that a client can tell its own deadline from a queue that is full for too long.
func TestWhoseDeadline(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		v := New(Settings{Admission: time.Second}) // no workers
		if _, err := v.Do(ctx, "job"); err != ErrBusy {
			s.Errorf("a full queue is %v", err)
		}
		ctx, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := v.Do(ctx, "job"); err == ErrBusy || !errors.Is(err, coir.ErrTimeout) {
			s.Errorf("the client's deadline is %v", err)
		}
	})
}

// The program prints what the README shows.
func TestItAnswers(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := shown(t, "README.md", "```\n\"Ada\""); out.String() != want {
		t.Fatalf("it printed\n%snot\n%s", out.String(), want)
	}
}

// TestInABubble runs the service in a synctest bubble, where fibers run on the bubble's own runtime. The service
// reports at the right times, and is stopped.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		defer func() {
			if err := rt.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		reports := 0
		began := time.Now()
		err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			v := New(Settings{Every: time.Minute, Report: func(int) { reports++ }, Workers: 1, Connect: func(context.Context) (Backend, error) { return greet, nil }})
			f := n.Go("service", v.Run)
			if err := coir.Sleep(ctx, 90*time.Second); err != nil {
				return err
			}
			return shutDown(ctx, v, f, time.Minute)
		})
		if took := time.Since(began); err != nil || reports != 1 || took != 90*time.Second {
			t.Errorf("%d reports in %v, %v", reports, took, err)
		}
	})
}

// TestTheGuideQuotesTheProgram checks that docs/guide/service.md quotes this program word for word.
func TestTheGuideQuotesTheProgram(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"service.go", "supervise.go", "main.go", "main_test.go"} {
		all.WriteString(read(t, name))
	}
	program := all.String()
	_, rest, found := strings.Cut(read(t, "../../docs/guide/service.md"), "```go\n")
	for quotes := 0; ; quotes++ {
		if !found {
			if quotes < 5 {
				t.Errorf("the guide has %d quotes", quotes)
			}
			return
		}
		var quote string
		quote, rest, _ = strings.Cut(rest, "```\n")
		for part := range strings.SplitSeq(quote, "\t...\n") {
			if !strings.Contains(program, part) {
				t.Errorf("the program does not have\n%s", part)
			}
		}
		_, rest, found = strings.Cut(rest, "```go\n")
	}
}

// shown returns the block of code in a file that begins with the given words.
func shown(t *testing.T, name, begins string) string {
	t.Helper()
	_, after, _ := strings.Cut(read(t, name), begins)
	block, _, _ := strings.Cut(after, "```\n")
	return strings.TrimPrefix(begins, "```\n") + block
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
