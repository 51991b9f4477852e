package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/sim"
)

var errRefused = errors.New("refused")

// The test has clients, a forger, and a provider that may refuse, be slow, forget a job or call back twice. Each client
// gets its own result or the right error, each callback is counted, and no ticket stays open.
func TestService(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		const clients = 3
		type order struct {
			job string
			id  desk.ID
		}
		orders := coir.NewChan[order](coir.Unbounded, coir.WithName("orders"))
		svc := New(Config{
			Limit: 2 * time.Second, Jobs: 2,
			Start: func(ctx context.Context, job string, id desk.ID) error {
				if s.Fault("refuse") {
					return errRefused
				}
				return orders.Send(ctx, order{job, id})
			},
		})
		callbacks := 0
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			var left atomic.Int32
			left.Store(clients)
			for i, job := range []string{"a", "b", "c"} {
				n.Go("client", func(ctx context.Context) error {
					defer func() {
						if left.Add(-1) == 0 {
							orders.Close()
						}
					}()
					in, cancel := coir.WithTimeout(ctx, 5*time.Second)
					defer cancel()
					if s.Fault("hang up") {
						cancel()
					}
					result, err := svc.Do(in, job)
					switch code := http.StatusOK; {
					case err == nil && result != "done "+job:
						s.Errorf("%s: %q", job, result)
					case err != nil:
						code = status(err)
						fallthrough
					default:
						s.Sometimes(code == http.StatusOK, "a job is done")
						s.Sometimes(code == http.StatusGatewayTimeout, "a job times out")
						s.Sometimes(code == http.StatusServiceUnavailable, "a job is refused by the service")
						s.Sometimes(code == http.StatusBadGateway, "a job is refused by the provider")
						s.Sometimes(errors.Is(err, context.Canceled), "a client hangs up")
					}
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("provider", func(ctx context.Context) error {
				for o, err := range orders.All(ctx) {
					if err != nil {
						return err
					}
					if s.Fault("forget") {
						continue
					}
					if err := coir.Sleep(ctx, coir.Jitter(ctx, 4*time.Second)); err != nil {
						return err
					}
					times := 1
					if s.Fault("call twice") {
						times = 2
					}
					for range times {
						callbacks++
						err := svc.Callback(o.id.String(), "done "+o.job)
						s.Sometimes(errors.Is(err, desk.ErrLate), "a callback is late")
						s.Sometimes(errors.Is(err, desk.ErrDuplicate), "a callback comes twice")
					}
				}
				return nil
			})
			n.Go("forger", func(context.Context) error {
				for _, id := range []string{strings.Repeat("0", 32), "", "../jobs"} {
					if err := svc.Callback(id, "evil"); err == nil {
						s.Errorf("the id %q is taken", id)
					}
				}
				return nil
			})
			return nil
		})
		st := svc.Stats()
		// If the forger's id can be parsed, it is an unknown id or one of this desk.
		if err != nil || st.Open != 0 ||
			int(st.Resolved+st.Late+st.Duplicate+st.Unknown+st.Foreign) != callbacks+1 {
			s.Errorf("%v, %d callbacks, %+v", err, callbacks, st)
		}
	}, sim.WithFaults("refuse", "hang up", "forget", "call twice"), sim.WithSchedules(schedules()))
}

func schedules() int {
	if testing.Short() {
		return 500
	}
	return 2_500
}

// The same over HTTP: the provider is a server too.
func TestOverHTTP(t *testing.T) {
	ids := make(chan string, 1)
	var base string
	svc := New(Config{
		Limit: 100 * time.Millisecond, Jobs: 10,
		Start: func(ctx context.Context, job string, id desk.ID) error {
			code, text := post(t, ctx, base+"/provider", job+" "+id.String())
			if code != http.StatusOK {
				return errors.New(text)
			}
			return nil
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/", svc.Handler())
	mux.HandleFunc("POST /provider", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		job, id, ok := strings.Cut(string(body), " ")
		if err != nil || !ok || job == "bad" {
			http.Error(w, "no", http.StatusUnprocessableEntity)
			return
		}
		ids <- id
		if job != "slow" { // the callback arrives before the response, which must not matter
			if code, text := post(t, r.Context(), base+"/callbacks/"+id, "done "+job); code != http.StatusOK {
				t.Errorf("the callback: %d %s", code, text)
			}
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	base = server.URL
	check := func(path, body string, code int, want string) {
		t.Helper()
		got, text := post(t, t.Context(), base+path, body)
		if got != code || !strings.Contains(text, want) {
			t.Errorf("POST %s: %d %q, want %d %q", path, got, text, code, want)
		}
	}
	check("/jobs", "tea", http.StatusOK, "done tea")
	id := <-ids
	check("/callbacks/"+id, "again", http.StatusConflict, "has already been completed")
	check("/jobs", "slow", http.StatusGatewayTimeout, "")
	late := <-ids
	check("/callbacks/"+late, "done slow", http.StatusGone, "ended before")
	check("/jobs", "bad", http.StatusBadGateway, "not accepted")
	check("/callbacks/"+strings.ToUpper(id), "x", http.StatusBadRequest, "lower case")
	forged := id[:31] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", id[31])+1)%16])
	check("/callbacks/"+forged, "x", http.StatusNotFound, "no such ticket")
	check("/jobs", strings.Repeat("x", maxBody+1), http.StatusBadRequest, "cannot be read")
	if s := svc.Stats(); s.Open != 0 || s.Resolved != 1 || s.TimedOut != 1 || s.Duplicate != 1 || s.Late != 1 || s.Unknown != 1 {
		t.Errorf("svc.Stats() = %+v, want Open 0, Resolved 1, TimedOut 1, Duplicate 1, Late 1, Unknown 1", s)
	}
}

func post(t *testing.T, ctx context.Context, url, body string) (int, string) { //nolint:revive // t comes first
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}
