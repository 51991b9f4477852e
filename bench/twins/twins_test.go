package twins

// Both ways to write a program do the same. The tests run in bubbles of synctest, which have their own clock, and fail
// if a goroutine is left behind.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/examples/etl"
	"github.com/coir-go/coir/examples/fanout"
	"github.com/coir-go/coir/examples/jobs"
	"github.com/coir-go/coir/examples/logs"
)

var errBroken = errors.New("broken")

// inBubbles runs the test of a behaviour for each side, in a bubble.
func inBubbles(t *testing.T, name string, test func(t *testing.T, side Side)) {
	for _, side := range []Side{Coir, Errgroup} {
		t.Run(name+"/"+side.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, side) })
		})
	}
}

// TestNoLonger: a program is no longer than its twin, and the docs have the lines of both.
func TestNoLonger(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join(Coir.Dir, "..", "docs", "examples.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Programs {
		program, err := Lines(filepath.Join(Coir.Dir, name))
		twin, twinErr := Lines(filepath.Join(Errgroup.Dir, name))
		if err != nil || twinErr != nil || program == 0 || program > twin {
			t.Errorf("%s has %d lines (%v), its twin %d (%v)", name, program, err, twin, twinErr)
		}
		if row := fmt.Sprintf("| %s | %d / %d |", name, program, twin); !strings.Contains(string(docs), row) {
			t.Errorf("docs/examples.md does not have %q: go run ./twins/measure", row)
		}
	}
}

func TestLines(t *testing.T) {
	const text = "// A comment.\npackage p\n\nvar s = `one\n\ntwo` // and more\n/* no\ncode */\nfunc f() {\n\tg(\n\t)\n}\n"
	if n := linesOf([]byte(text)); n != 8 {
		t.Errorf("%d lines", n)
	}
}

// after returns a backend whose calls take these times, one after the other. Later calls are refused.
func after(side Side, times []time.Duration) func(context.Context, string) (string, error) {
	var calls atomic.Int64
	return func(ctx context.Context, query string) (string, error) {
		i := int(calls.Add(1)) - 1
		if i >= len(times) {
			return "", errBroken
		}
		return fmt.Sprint(query, i), side.Sleep(ctx, times[i])
	}
}

// ask sends a request to the handler, and returns the texts of the answers, or "-" for an error.
func ask(ctx context.Context, g Gateway, query string) (texts []string, status int) {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?q="+query, nil).WithContext(ctx))
	var answers []fanout.Answer
	_ = json.Unmarshal(w.Body.Bytes(), &answers)
	for _, a := range answers {
		if a.Error != "" {
			a.Text = "-"
		}
		texts = append(texts, a.Text)
	}
	return texts, w.Code
}

// TestFanout has two backends, the second of which answers after 2 ms.
func TestFanout(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		first  []time.Duration
		calls  int
		want   string
		status int
		took   time.Duration
	}{
		{"all answer", []time.Duration{ms}, 64, "q0 q0", 200, 2 * ms},
		{"a second call is faster", []time.Duration{90 * ms, 5 * ms}, 64, "q1 q0", 200, 45 * ms},
		{"a second call is slower", []time.Duration{50 * ms, 50 * ms}, 64, "q0 q0", 200, 50 * ms},
		{"one refuses", nil, 64, "- q0", 200, 40 * ms},
		{"one is too slow", []time.Duration{time.Hour, time.Hour}, 64, "- q0", 200, 150 * ms},
		{"one call at a time", []time.Duration{2 * ms}, 1, "q0 q0", 200, 4 * ms},
	} {
		inBubbles(t, c.name, func(t *testing.T, side Side) {
			g := side.Fanout(fanout.Config{Deadline: 150 * ms, Hedge: 40 * ms, Calls: c.calls, Backends: []func(
				context.Context, string) (string, error){after(side, c.first), after(side, []time.Duration{2 * ms})}})
			began := time.Now()
			texts, status := ask(t.Context(), g, "q")
			if got := strings.Join(texts, " "); got != c.want || status != c.status || time.Since(began) != c.took {
				t.Errorf("%q, status %d after %v", got, status, time.Since(began))
			}
		})
	}
	inBubbles(t, "all refuse", func(t *testing.T, side Side) {
		g := side.Fanout(fanout.Config{Deadline: time.Second, Hedge: ms, Calls: 1,
			Backends: []func(context.Context, string) (string, error){after(side, nil)}})
		texts, status := ask(t.Context(), g, "q")
		if strings.Join(texts, " ") != "-" || status != http.StatusBadGateway {
			t.Errorf("%q, status %d", texts, status)
		}
	})
	inBubbles(t, "the client leaves", func(t *testing.T, side Side) {
		g := side.Fanout(fanout.Config{Deadline: time.Hour, Hedge: time.Second, Calls: 1,
			Backends: []func(context.Context, string) (string, error){after(side, []time.Duration{time.Hour})}})
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		began := time.Now()
		if _, status := ask(ctx, g, "q"); status != http.StatusBadGateway || time.Since(began) != time.Minute {
			t.Errorf("status %d after %v", status, time.Since(began))
		}
	})
}

// TestStopUnderLoad: SIGTERM cuts off no request that the service is answering.
func TestStopUnderLoad(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has no SIGTERM")
	}
	for _, side := range []Side{Coir, Errgroup, Undeclared} {
		t.Run(side.Name, func(t *testing.T) {
			const clients = 8
			asked, goOn := make(chan struct{}, clients), make(chan struct{})
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked <- struct{}{}
				<-goOn
				_, _ = io.WriteString(w, "ok")
			}))
			defer behind.Close()
			g := side.Fanout(fanout.Config{
				Backends: []func(context.Context, string) (string, error){side.Backend(behind.Client(), behind.URL)},
				Deadline: time.Minute, Hedge: time.Minute, Calls: clients, Grace: time.Minute,
			})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
			defer stop()
			served := make(chan error, 1)
			go func() { served <- g.Serve(ctx, l) }()
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					text, err := get("http://" + l.Addr().String())
					if err != nil || strings.TrimSpace(text) != `[{"text":"ok"}]` {
						t.Errorf("a request was cut off: %q, %v", text, err)
					}
				})
			}
			for range clients {
				<-asked
			}
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Signal(syscall.SIGTERM)
			}
			if err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			close(goOn)
			if err := <-served; err != nil {
				t.Errorf("it ended with %v", err)
			}
			wg.Wait()
			if _, err := get("http://" + l.Addr().String()); err == nil {
				t.Error("it still answers")
			}
		})
	}
}

// get asks the service once, on a connection of its own.
func get(address string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// upTo returns a source of the numbers up to n, and then an error.
func upTo(n int, end error) func(context.Context) (int, error) {
	last := 0
	return func(context.Context) (int, error) {
		if last == n {
			return 0, end
		}
		last++
		return last, nil
	}
}

func TestETL(t *testing.T) {
	const items = 20
	for _, c := range []struct {
		name     string
		source   error // after 20 items
		broken   int   // the item that Load fails with
		rejected int   // this item, and multiples of it
		parallel int
		cancel   time.Duration
		want     etl.Report
		err      error
		took     time.Duration // each item takes a second
	}{
		{name: "all is loaded", source: io.EOF, parallel: 4, want: etl.Report{Read: 20, Loaded: 20}, took: 5 * time.Second},
		{
			name: "one at a time", source: io.EOF, parallel: 1,
			want: etl.Report{Read: 20, Loaded: 20}, took: 20 * time.Second,
		},
		{
			name: "some are rejected", source: io.EOF, parallel: 4, rejected: 5,
			want: etl.Report{Read: 20, Loaded: 16, Rejected: 4}, took: 5 * time.Second,
		},
		{
			name: "the source fails", source: errBroken, parallel: 4,
			want: etl.Report{Read: 20, Loaded: 20}, err: errBroken, took: 5 * time.Second,
		},
		{
			name: "loading fails", source: io.EOF, parallel: 4, broken: 9,
			want: etl.Report{Loaded: 8}, err: errBroken, took: 3 * time.Second,
		},
		{
			name: "cancelled", source: io.EOF, parallel: 4, cancel: 2500 * time.Millisecond,
			want: etl.Report{Loaded: 8}, err: context.DeadlineExceeded, took: 2500 * time.Millisecond,
		},
	} {
		inBubbles(t, c.name, func(t *testing.T, side Side) {
			ctx := t.Context()
			if c.cancel > 0 {
				limited, cancel := context.WithTimeout(ctx, c.cancel)
				defer cancel()
				ctx = limited
			}
			var running atomic.Int64
			var loaded []int
			began := time.Now()
			r, err := side.ETL(ctx, etl.Config[int, int]{
				Extract: upTo(items, c.source),
				Transform: func(ctx context.Context, item int) (int, error) {
					defer running.Add(-1)
					if n := running.Add(1); n > int64(c.parallel) {
						t.Errorf("%d items are transformed at a time", n)
					}
					if err := side.Sleep(ctx, time.Second); err != nil {
						return 0, err
					}
					if c.rejected > 0 && item%c.rejected == 0 {
						return 0, errBroken
					}
					return item, nil
				},
				Load: func(_ context.Context, rows []int) error {
					if len(rows) > 4 || len(rows) == 0 {
						t.Errorf("a batch of %d", len(rows))
					}
					if c.broken > 0 && rows[len(rows)-1] >= c.broken {
						return errBroken
					}
					loaded = append(loaded, rows...)
					return nil
				},
				Parallel: c.parallel, Batch: 4, Linger: time.Millisecond,
			})
			if took := time.Since(began); !errors.Is(err, c.err) || took < c.took || took > c.took+10*time.Millisecond {
				t.Errorf("it ended with %v after %v", err, took)
			}
			if r.Read != r.Loaded+r.Rejected+r.Lost || r.Loaded != len(loaded) || !slices.IsSorted(loaded) {
				t.Errorf("it loaded %v, and reports %+v", loaded, r)
			}
			want := c.want
			if want.Read == 0 { // it may have read any number
				want.Read, want.Lost = r.Read, r.Read-want.Loaded
			}
			if r != want {
				t.Errorf("it reports %+v", r)
			}
		})
	}
}

// member is a Conn for a test.
type member struct {
	side  Side
	says  *coir.Chan[string] // goroutines use it too; closed when the member leaves
	takes time.Duration

	heard []string
}

func newMember(side Side) *member { return &member{side: side, says: coir.NewChan[string](8)} }

func (m *member) ReadLine(ctx context.Context) (string, error) {
	text, err := m.says.Recv(ctx)
	if errors.Is(err, coir.ErrClosed) {
		err = io.EOF
	}
	return text, err
}

func (m *member) WriteLine(ctx context.Context, line string) error {
	m.heard = append(m.heard, line)
	return m.side.Sleep(ctx, m.takes)
}

func TestHub(t *testing.T) {
	inBubbles(t, "join, slow, leave, close", func(t *testing.T, side Side) {
		h := side.Hub(2)
		names := []string{"Ada", "Bob", "Eve"}
		members := make([]*member, len(names))
		errs := make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			members[i] = newMember(side)
			if name == "Eve" {
				members[i].takes = time.Hour
			}
			wg.Go(func() { errs[i] = h.Join(t.Context(), name, members[i]) })
			time.Sleep(time.Second)
		}
		if n := h.Len(); n != 3 {
			t.Errorf("%d members", n)
		}
		for i := range 4 {
			if err := members[0].says.Send(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		members[0].says.Close()
		time.Sleep(time.Minute)
		if n := h.Len(); n != 2 {
			t.Errorf("%d members", n)
		}
		h.Close()
		wg.Wait()
		said := "Ada: 0|Ada: 1|Ada: 2|Ada: 3"
		for i, want := range []string{
			"Ada has come|Bob has come|Eve has come|" + said,
			"Bob has come|Eve has come|" + said + "|Ada has left",
			"Eve has come|(3 missed)|Ada: 3|Ada has left",
		} {
			if got := strings.Join(members[i].heard, "|"); got != want || errs[i] != nil {
				t.Errorf("%s heard %q, not %q; %v", names[i], got, want, errs[i])
			}
		}
		late := newMember(side)
		if err := h.Join(t.Context(), "Zoe", late); err != nil || len(late.heard) != 0 {
			t.Errorf("after the close Zoe heard %q, %v", late.heard, err)
		}
	})
	inBubbles(t, "cancel", func(t *testing.T, side Side) {
		h := side.Hub(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Join(ctx, "Ada", newMember(side)); !errors.Is(err, context.DeadlineExceeded) || h.Len() != 0 {
			t.Errorf("Join returns %v, %d members are left", err, h.Len())
		}
	})
}

// doing returns a configuration whose workers do this.
func doing(do func(ctx context.Context, job string) (string, error)) jobs.Config {
	return jobs.Config{
		Workers: 1, Waiting: 4, Attempts: 3, Backoff: time.Second, Every: time.Millisecond, Burst: 1, Restarts: 3,
		Connect: func(context.Context) (func(context.Context, string) (string, error), error) { return do, nil },
	}
}

// submitted submits jobs, and returns their tickets.
func submitted(t *testing.T, q Queue, p jobs.Priority, texts ...string) (tickets []Ticket) {
	for _, text := range texts {
		ticket, err := q.Submit(t.Context(), p, text)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	return tickets
}

// ends checks the error of a job.
func ends(t *testing.T, ticket Ticket, want error) {
	t.Helper()
	if _, err := ticket.Wait(t.Context()); !errors.Is(err, want) {
		t.Errorf("a job ended with %v, not %v", err, want)
	}
}

func TestJobs(t *testing.T) {
	inBubbles(t, "urgent first, retry later", func(t *testing.T, side Side) {
		var order []string
		q := side.Jobs(doing(func(_ context.Context, job string) (string, error) {
			order = append(order, job)
			if job == "fails" {
				return "", errBroken
			}
			return strings.ToUpper(job), nil
		}))
		tickets := submitted(t, q, jobs.Normal, "fails", "a")
		tickets = append(tickets, submitted(t, q, jobs.Urgent, "urgent")...)
		q.Stop()
		if err := q.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Join(order, " "); got != "urgent fails a fails fails" {
			t.Errorf("the order was %s", got)
		}
		ends(t, tickets[0], errBroken)
		if result, err := tickets[1].Wait(t.Context()); result != "A" || err != nil {
			t.Errorf("a returned %q, %v", result, err)
		}
		if _, err := q.Submit(t.Context(), jobs.Normal, "late"); !errors.Is(err, side.Errors.Closed) {
			t.Errorf("after Stop, Submit returns %v", err)
		}
	})
	inBubbles(t, "a job panics", func(t *testing.T, side Side) {
		q := side.Jobs(doing(func(_ context.Context, job string) (string, error) { return job[1:], nil }))
		tickets := submitted(t, q, jobs.Normal, "", "ab")
		q.Stop()
		if err := q.Run(t.Context()); err != nil {
			t.Error(err)
		}
		ends(t, tickets[0], side.Errors.Crashed)
		ends(t, tickets[1], nil)
	})
	inBubbles(t, "no connection", func(t *testing.T, side Side) {
		c := doing(nil)
		tries := 0
		c.Connect = func(context.Context) (func(context.Context, string) (string, error), error) {
			tries++
			return nil, errBroken
		}
		q := side.Jobs(c)
		tickets := submitted(t, q, jobs.Normal, "a", "b")
		if err := q.Run(t.Context()); !errors.Is(err, errBroken) || tries != 1+c.Restarts {
			t.Errorf("it ended with %v after %d tries", err, tries)
		}
		ends(t, tickets[0], side.Errors.Lost)
		ends(t, tickets[1], side.Errors.Lost)
	})
	inBubbles(t, "cancel", func(t *testing.T, side Side) {
		q := side.Jobs(doing(side.slow(time.Hour)))
		tickets := submitted(t, q, jobs.Normal, "a", "b", "c", "d")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		waits := make(chan error, 2)
		go func() { // one call gets a place when the first job is taken, the other does not
			for range cap(waits) {
				_, err := q.Submit(t.Context(), jobs.Normal, "e")
				waits <- err
			}
		}()
		if err := q.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		ends(t, tickets[0], context.Canceled)
		for _, ticket := range tickets[1:] {
			ends(t, ticket, side.Errors.Lost)
		}
		if a, b := <-waits, <-waits; a != nil || b != nil && !errors.Is(b, side.Errors.Closed) {
			t.Errorf("those that waited for room got %v, %v", a, b)
		}
	})
	inBubbles(t, "rate", func(t *testing.T, side Side) {
		c := doing(side.slow(0))
		c.Workers, c.Every, c.Burst = 4, time.Second, 2
		q := side.Jobs(c)
		began := time.Now()
		submitted(t, q, jobs.Normal, "a", "b", "c", "d")
		submitted(t, q, jobs.Urgent, "e", "f", "g", "h")
		q.Stop()
		if err := q.Run(t.Context()); err != nil || time.Since(began) != 6*time.Second {
			t.Errorf("8 jobs took %v, %v", time.Since(began), err)
		}
	})
}

// slow returns a function that takes d for each job.
func (s Side) slow(d time.Duration) func(context.Context, string) (string, error) {
	return func(ctx context.Context, job string) (string, error) { return job, s.Sleep(ctx, d) }
}

// slowReader gives a line each second, and then fails.
type slowReader struct {
	side  Side
	lines int
	err   error
	open  *atomic.Int64
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.lines == 0 {
		return 0, r.err
	}
	r.lines--
	_ = r.side.Sleep(context.Background(), time.Second)
	return copy(p, "host 200 10\n"), nil
}

func (r *slowReader) Close() error {
	r.open.Add(-1)
	return nil
}

// TestLogs has two files with five lines each, one a second.
func TestLogs(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    error // of the second file
		cancel time.Duration
		lines  int // at least
		err    error
	}{
		{name: "all is counted", end: io.EOF, lines: 10},
		{name: "a file fails", end: errBroken, lines: 4, err: errBroken},
		{name: "cancelled", end: io.EOF, cancel: 3500 * time.Millisecond, lines: 4, err: context.DeadlineExceeded},
	} {
		inBubbles(t, c.name, func(t *testing.T, side Side) {
			ctx := t.Context()
			if c.cancel > 0 {
				limited, cancel := context.WithTimeout(ctx, c.cancel)
				defer cancel()
				ctx = limited
			}
			var open atomic.Int64
			progress := 0
			file := func(end error) func() (io.ReadCloser, error) {
				return func() (io.ReadCloser, error) {
					open.Add(1)
					return &slowReader{side, 5, end, &open}, nil
				}
			}
			r, err := side.Logs(ctx, logs.Config{
				Files:    []func() (io.ReadCloser, error){file(io.EOF), file(c.end)},
				Parallel: 2, Batch: 2, Every: 1500 * time.Millisecond,
				Progress: func(int) { progress++ },
			})
			if !errors.Is(err, c.err) || r.Lines < c.lines || r.Bad > 0 || r.Bytes != 10*r.Lines || r.Status[200] != r.Lines {
				t.Errorf("%+v, error %v", r, err)
			}
			if open.Load() != 0 || progress < 2 {
				t.Errorf("%d files are open, progress was shown %d times", open.Load(), progress)
			}
		})
	}
}
