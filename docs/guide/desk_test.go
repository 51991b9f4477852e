package guide_test

// The code of desk.md.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/sim"
)

// A map of ids.

type mapClient struct {
	send func(ctx context.Context, id int, request string) error

	mu      sync.Mutex
	last    int
	waiting map[int]chan string
}

func (c *mapClient) call(ctx context.Context, request string) (string, error) {
	answer := make(chan string)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	if err := c.send(ctx, id, request); err != nil {
		return "", err // the entry stays in the map
	}
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err() // the entry stays, and received will block
	}
}

func (c *mapClient) received(id int, text string) {
	c.mu.Lock()
	answer := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	answer <- text // blocks for good if the caller has left, and if the answer comes twice
}

// The map works, and keeps what the guide says that it keeps.
func TestMapClient(t *testing.T) {
	c := &mapClient{waiting: map[int]chan string{}}
	c.send = func(_ context.Context, id int, request string) error {
		go c.received(id, "re: "+request)
		return nil
	}
	if text, err := c.call(t.Context(), "a"); text != "re: a" || err != nil || len(c.waiting) != 0 {
		t.Errorf("%q, %v, %d left", text, err, len(c.waiting))
	}
	c.send = func(context.Context, int, string) error { return errLost }
	if _, err := c.call(t.Context(), "b"); !errors.Is(err, errLost) || len(c.waiting) != 1 {
		t.Errorf("%v, %d left", err, len(c.waiting))
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.send = func(context.Context, int, string) error { cancel(); return nil }
	if _, err := c.call(ctx, "c"); !errors.Is(err, context.Canceled) || len(c.waiting) != 2 {
		t.Errorf("%v, %d left", err, len(c.waiting))
	}
}

var errLost = errors.New("the connection is lost")

// A desk.

type client struct {
	send    func(ctx context.Context, id desk.ID, request string) error
	replies *desk.Desk[string]
}

func (c *client) call(ctx context.Context, request string) (string, error) {
	t, err := c.replies.OpenTimeout(ctx, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer t.Cancel()
	if err := c.send(ctx, t.ID(), request); err != nil {
		return "", err
	}
	return t.Wait(ctx)
}

func (c *client) received(id, text string) error {
	parsed, err := desk.ParseID(id)
	if err != nil {
		return err // is desk.ErrSyntax
	}
	return c.replies.Resolve(parsed, text)
}

// A call leaves nothing behind, however it ends.
func TestClientCall(t *testing.T) {
	c := &client{replies: desk.New[string](desk.WithName("replies"))}
	c.send = func(_ context.Context, id desk.ID, request string) error {
		return c.received(id.String(), "re: "+request)
	}
	if text, err := c.call(t.Context(), "a"); text != "re: a" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	c.send = func(context.Context, desk.ID, string) error { return errLost }
	if _, err := c.call(t.Context(), "b"); !errors.Is(err, errLost) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.send = func(context.Context, desk.ID, string) error { cancel(); return nil }
	if _, err := c.call(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := c.received("no id", "d"); !errors.Is(err, desk.ErrSyntax) {
		t.Error(err)
	}
	if st := c.replies.Stats(); st.Open != 0 || st.Opened != 3 || st.Resolved != 1 || st.Cancelled != 2 {
		t.Errorf("c.replies.Stats() = %+v, want Open 0, Opened 3, Resolved 1, Cancelled 2", st)
	}
}

// What Wait returns says how the ticket has ended.
func TestHowATicketEnds(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		d := desk.New[string](desk.WithName("replies"))
		in, leave := coir.WithCancel(ctx)
		open := func(ctx context.Context) *desk.Ticket[string] {
			t, err := d.OpenTimeout(ctx, time.Minute)
			if err != nil {
				s.Fatalf("%v", err)
			}
			return t
		}
		ends := func(t *desk.Ticket[string], want error) {
			if _, err := t.Wait(ctx); !errors.Is(err, want) {
				s.Errorf("%v, want %v", err, want)
			}
		}
		resolved, rejected, cancelled, inScope, failed := open(ctx), open(ctx), open(ctx), open(in), open(ctx)
		if err := errors.Join(d.Resolve(resolved.ID(), "yes"), d.Reject(rejected.ID(), errNoPage)); err != nil {
			s.Errorf("%v", err)
		}
		cancelled.Cancel()
		leave()
		ends(resolved, nil)
		ends(rejected, errNoPage)
		ends(cancelled, context.Canceled)
		ends(inScope, context.Canceled)
		if n := d.FailAll(errLost); n != 1 {
			s.Errorf("%d tickets failed", n)
		}
		ends(failed, errLost)
		late := open(ctx)
		impatient, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := late.Wait(impatient); !errors.Is(err, coir.ErrTimeout) || d.Len() != 1 {
			s.Errorf("a wait that is given up: %v, %d open", err, d.Len())
		}
		ends(late, coir.ErrTimeout)
		if s.Now() != time.Minute || d.Len() != 0 {
			s.Errorf("after %v, %d open", s.Now(), d.Len())
		}
	}, sim.WithSchedules(50))
}

// Bounds.

func newClient(send func(context.Context, desk.ID, string) error) *client {
	replies := desk.New[string](desk.WithName("replies"), desk.WithLimit(1000), desk.WithOverflow(coir.OverflowFail))
	return &client{send, replies}
}

func TestBounds(t *testing.T) {
	c := newClient(nil)
	for range c.replies.Cap() {
		if _, err := c.replies.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.call(t.Context(), "one too many"); !errors.Is(err, coir.ErrWouldBlock) {
		t.Error(err)
	}
	if st := c.replies.Stats(); st.Refused != 1 || st.Open != 1000 {
		t.Errorf("c.replies.Stats() = %+v, want Refused 1, Open 1000", st)
	}
}

// Answers that are wrong.

func status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, desk.ErrDuplicate):
		return http.StatusConflict // a sender that has missed the first acknowledgement need not try again
	case errors.Is(err, desk.ErrLate):
		return http.StatusGone // no caller waits any longer
	case errors.Is(err, desk.ErrSyntax):
		return http.StatusBadRequest
	default: // desk.ErrUnknown, desk.ErrForeign
		return http.StatusNotFound // made up, or from before a restart
	}
}

func TestStatus(t *testing.T) {
	c, other := newClient(nil), newClient(nil)
	tk, err := c.replies.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late, err := c.replies.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late.Cancel()
	forged := tk.ID().String()[:31] + "0"
	if forged == tk.ID().String() {
		forged = forged[:31] + "1"
	}
	for _, x := range []struct {
		name, id string
		at       *client
		want     int
	}{
		{"forged", forged, c, http.StatusNotFound},
		{"at another desk", tk.ID().String(), other, http.StatusNotFound},
		{"no id", strings.ToUpper(tk.ID().String()) + "x", c, http.StatusBadRequest},
		{"in time", tk.ID().String(), c, http.StatusOK},
		{"again", tk.ID().String(), c, http.StatusConflict},
		{"late", late.ID().String(), c, http.StatusGone},
	} {
		if got := status(x.at.received(x.id, "text")); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
	if text, err := tk.Wait(t.Context()); text != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if st := c.replies.Stats(); st.Late != 1 || st.Duplicate != 1 || st.Unknown != 1 {
		t.Errorf("c.replies.Stats() = %+v, want Late 1, Duplicate 1, Unknown 1", st)
	}
	if st := other.replies.Stats(); st.Foreign != 1 {
		t.Errorf("other.replies.Stats() = %+v, want Foreign 1", st)
	}
}

// A connection that is lost.

func (c *client) listen(ctx context.Context, answers *coir.Chan[[2]string]) error {
	for a, err := range answers.All(ctx) {
		if err != nil {
			return err
		}
		_ = c.received(a[0], a[1]) // Stats counts what is wrong with it
	}
	c.replies.FailAll(errLost)
	return nil
}

// Without a fiber that waits.

type result struct {
	request, text string
	err           error
}

type session struct {
	requests *coir.Chan[[2]string] // ids and requests; a fiber writes them to the connection
	answers  *coir.Chan[[2]string] // a fiber reads them from the connection, and closes the channel at its end
}

type redialer struct {
	dial    func(ctx context.Context) (*session, error)
	replies *desk.Desk[string]

	mu  sync.Mutex
	now *coir.Promise[*session] // the present session, or the next
}

func (r *redialer) run(ctx context.Context) error {
	for {
		s, err := r.dial(ctx)
		if err != nil {
			if err := coir.Sleep(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		r.session().Resolve(s)
		for a, err := range s.answers.All(ctx) {
			if err != nil {
				return err
			}
			if id, err := desk.ParseID(a[0]); err == nil {
				_ = r.replies.Resolve(id, a[1])
			}
		}
		r.mu.Lock()
		r.now = new(coir.Promise[*session]) // callers wait for the next session
		r.mu.Unlock()
		s.requests.Abort(errLost)  // no request can be sent on this one
		r.replies.FailAll(errLost) // those that were sent have no answer
	}
}

func (r *redialer) session() *coir.Promise[*session] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *redialer) call(ctx context.Context, request string) (string, error) {
	s, err := r.session().Wait(ctx)
	if err != nil {
		return "", err
	}
	t, err := r.replies.OpenTimeout(ctx, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer t.Cancel()
	if err := s.requests.Send(ctx, [2]string{t.ID().String(), request}); err != nil {
		return "", err
	}
	return t.Wait(ctx)
}

// TestRedialer: a call is answered or ends with errLost. None waits for its limit, and all tickets end.
func TestRedialer(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		r := &redialer{replies: desk.New[string](desk.WithName("replies")), now: new(coir.Promise[*session])}
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			var dials atomic.Int32
			r.dial = func(context.Context) (*session, error) {
				if dials.Add(1); s.Fault("refused") {
					return nil, errLost
				}
				requests := coir.NewChan[[2]string](1, coir.WithName("requests"))
				answers := coir.NewChan[[2]string](1, coir.WithName("answers"))
				n.Go("server", func(ctx context.Context) error {
					if err := serveBadly(ctx, s, requests, answers); !errors.Is(err, errLost) {
						return err
					}
					return nil
				})
				return &session{requests, answers}, nil
			}
			n.Go("run", r.run)
			err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for i := range 2 {
					n.Go("caller", func(ctx context.Context) error {
						for range 2 {
							text, err := r.call(ctx, "ping")
							if !errors.Is(err, errLost) && (err != nil || text != "pong") {
								s.Errorf("%q, %v", text, err)
							}
							s.Sometimes(err == nil && dials.Load() > 1, "answered by the second connection")
							s.Sometimes(errors.Is(err, coir.ErrClosed), "the queue has ended")
							s.Sometimes(err == errLost, "the ticket has ended") //nolint:errorlint // as FailAll was given it
						}
						return nil
					}, coir.WithIndex(i))
				}
				return nil
			})
			n.Cancel(nil)
			return err
		})
		if err != nil || r.replies.Len() != 0 {
			s.Errorf("%v, %v", err, r.replies)
		}
	}, sim.WithFaults("hang up", "refused", "twice"), sim.WithSchedules(1000))
}

func (c *client) post(ctx context.Context, request string, results *coir.Chan[result]) error {
	t, err := c.replies.OpenTimeout(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	t.OnDone(func(text string, err error) { _ = results.TrySend(result{request, text, err}) })
	if err := c.send(ctx, t.ID(), request); err != nil {
		return c.replies.Reject(t.ID(), err)
	}
	return nil
}

func TestPost(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		c := newClient(nil)
		c.send = func(_ context.Context, id desk.ID, request string) error {
			switch request {
			case "answered":
				return c.received(id.String(), "re: "+request)
			case "refused":
				return errLost
			}
			return nil
		}
		results := coir.NewChan[result](coir.Unbounded)
		got := map[string]string{}
		for _, request := range []string{"answered", "refused", "forgotten"} {
			if err := c.post(ctx, request, results); err != nil {
				s.Errorf("%v", err)
			}
		}
		for range 3 {
			r, err := results.Recv(ctx)
			if err != nil {
				s.Fatalf("%v", err)
			}
			got[r.request] = fmt.Sprint(r.text, r.err)
		}
		if got["answered"] != "re: answered<nil>" || got["refused"] != errLost.Error() ||
			got["forgotten"] != "desk: replies: "+coir.ErrTimeout.Error() {
			s.Errorf("the tickets ended with %q, want an answer, the rejection and a timeout", got)
		}
	}, sim.WithSchedules(100))
}

// Under sim.

func TestClient(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		requests := coir.NewChan[[2]string](10, coir.WithName("requests"))
		answers := coir.NewChan[[2]string](10, coir.WithName("answers"))
		c := newClient(func(ctx context.Context, id desk.ID, request string) error {
			return requests.Send(ctx, [2]string{id.String(), request})
		})
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("server", func(ctx context.Context) error { return serveBadly(ctx, s, requests, answers) })
			n.Go("listen", func(ctx context.Context) error { return c.listen(ctx, answers) })
			defer requests.Close()
			return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for i := range 2 {
					n.Go("caller", func(ctx context.Context) error {
						text, err := c.call(ctx, "ping")
						ended := errors.Is(err, coir.ErrTimeout) || errors.Is(err, errLost)
						if !ended && (err != nil || text != "pong") {
							s.Errorf("%q, %v", text, err)
						}
						return nil
					}, coir.WithIndex(i))
				}
				return nil
			})
		})
		st := c.replies.Stats()
		s.Sometimes(st.Resolved == 2, "both are answered")
		s.Sometimes(st.Late > 0, "an answer is late")
		s.Sometimes(st.Duplicate > 0, "an answer comes twice")
		s.Sometimes(st.Failed > 0, "the connection is lost")
		if st.Open != 0 || st.Opened != st.Resolved+st.TimedOut+st.Failed {
			s.Errorf("Stats() = %+v, want Open 0, Opened = Resolved + TimedOut + Failed", st)
		}
	}, sim.WithFaults("slow", "twice", "hang up"), sim.WithSchedules(1000))
}

func serveBadly(ctx context.Context, s *sim.Sim, requests, answers *coir.Chan[[2]string]) error {
	defer answers.Close()
	for r, err := range requests.All(ctx) {
		if err != nil || s.Fault("hang up") {
			return err
		}
		if s.Fault("slow") {
			if err := coir.Sleep(ctx, time.Minute); err != nil {
				return err
			}
		}
		if err := answers.Send(ctx, [2]string{r[0], "pong"}); err != nil {
			return err
		}
		if s.Fault("twice") {
			if err := answers.Send(ctx, [2]string{r[0], "pong"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// A ticket without a time limit whose answer is lost is a deadlock, and the report names the ticket.
func TestALostAnswerIsADeadlock(t *testing.T) {
	f := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		d := desk.New[string](desk.WithName("replies"))
		t, err := d.Open(ctx, coir.WithName("reply to ping"))
		if err != nil {
			s.Fatalf("%v", err)
		}
		_, _ = t.Wait(ctx)
	}).Failure
	if f == nil || f.Kind != sim.KindDeadlock ||
		!strings.Contains(f.Error(), "main waits in Ticket.Wait for the answer of ticket reply to ping") {
		t.Errorf("the simulation found %v, want a deadlock in which main waits for the answer", f)
	}
}
