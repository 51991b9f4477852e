package fanout

// Whatever the backends do, a request is answered by its deadline, and all its calls have ended by then.

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

var errRefused = errors.New("refused")

// TestAsk makes several requests, whose calls share two places. Each request is answered in time, with an answer or an
// error for each backend, and then none of its calls is left.
func TestAsk(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		const deadline, hedge, calls = 10 * time.Second, 2 * time.Second, 2
		var made, running atomic.Int64
		backend := func(ctx context.Context, query string) (string, error) {
			defer running.Add(-1)
			if n := running.Add(1); n > calls {
				s.Errorf("%d calls run", n)
			}
			made.Add(1)
			switch {
			case s.Fault("refuse"):
				return "", errRefused
			case s.Fault("slow"):
				return query, coir.Sleep(ctx, time.Minute)
			}
			return query, coir.Sleep(ctx, time.Duration(s.Intn(2))*time.Second)
		}
		g := New(Config{Deadline: deadline, Hedge: hedge, Calls: calls})
		g.Backends = append(g.Backends, backend, backend)

		var answers [2][]Answer
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i, query := range []string{"tea", "rice"} {
				n.Go("client", func(ctx context.Context) error {
					answers[i] = g.Ask(ctx, query)
					for _, a := range answers[i] {
						if (a.Text == query) == (a.Error != "") {
							s.Errorf("asked for %s, a backend answers %+v", query, a)
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
			return nil
		})
		if n := running.Load(); n != 0 {
			s.Errorf("%d calls have outlived their requests", n)
		}
		if s.Now() > deadline {
			s.Errorf("the answers took %v", s.Now())
		}
		some := status(slices.Concat(answers[:]...)) == http.StatusOK
		s.Sometimes(made.Load() == 4, "one call for each")
		s.Sometimes(made.Load() > 4 && s.Now() < deadline, "a second call helps")
		s.Sometimes(s.Now() == deadline && some, "a part of the answers")
		s.Sometimes(!some, "no answer")
	}, sim.WithFaults("refuse", "slow"), sim.WithSchedules(3000))
}

// TestCancel checks that when a client leaves, its calls end.
func TestCancel(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var running atomic.Int64
		g := New(Config{Deadline: time.Hour, Hedge: time.Second, Calls: 2})
		for range 2 {
			g.Backends = append(g.Backends, func(ctx context.Context, _ string) (string, error) {
				defer running.Add(-1)
				running.Add(1)
				return "", coir.WaitCancel(ctx)
			})
		}
		ctx, cancel := coir.WithCancel(ctx)
		defer cancel()
		err := coir.Run(coir.Shield(ctx), func(_ context.Context, n *coir.Nursery) error {
			n.Go("leave", func(ctx context.Context) error {
				defer cancel()
				return coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Second)
			})
			for _, a := range g.Ask(ctx, "") {
				if a.Error == "" {
					s.Errorf("a backend that did not answer counts as one that did")
				}
			}
			return nil
		})
		if n := running.Load(); err != nil || n != 0 {
			s.Errorf("%d calls are left, %v", n, err)
		}
	})
}

// TestPanic checks that a panic of a backend fails its request and not the process. Ask panics in the goroutine of the
// request, where net/http recovers.
func TestPanic(t *testing.T) {
	g := New(Config{Deadline: time.Minute, Hedge: time.Millisecond, Calls: 1})
	g.Backends = append(g.Backends, func(context.Context, string) (string, error) { panic("a bug") })
	defer func() {
		if p, ok := recover().(*coir.PanicError); !ok || p.Value != "a bug" {
			t.Errorf("Ask panics with %v", p)
		}
	}()
	g.Ask(t.Context(), "")
	t.Error("Ask returns")
}

// TestServe checks that when the service is stopped, it answers the current request, and Serve returns.
func TestServe(t *testing.T) {
	asked, goOn := coir.NewEvent(), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("q") != "tea & cake" {
			w.WriteHeader(http.StatusTeapot)
		}
		asked.Set()
		<-goOn
		_, _ = w.Write([]byte("ok"))
	}))
	defer behind.Close()
	refused := func(context.Context, string) (string, error) { return "", errRefused }
	g := New(Config{Deadline: time.Minute, Hedge: time.Millisecond, Calls: 8, Grace: time.Minute})
	g.Backends = append(g.Backends, Backend(http.DefaultClient, behind.URL), refused)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- g.Serve(ctx, l) }()
	var answers []Answer
	go func() {
		resp, err := http.Get("http://" + l.Addr().String() + "?q=tea+%26+cake")
		if err == nil {
			defer func() { _ = resp.Body.Close() }()
			err = json.NewDecoder(resp.Body).Decode(&answers)
		}
		answered <- err
	}()
	if err := asked.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	close(goOn)
	if err := <-answered; err != nil || len(answers) != 2 || answers[0] != (Answer{Text: "ok"}) || answers[1].Error == "" {
		t.Errorf("it answered %+v, %v", answers, err)
	}
	if err := <-served; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
