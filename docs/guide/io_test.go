package guide_test

// The code of io.md but for the database, which is in verify/iodb.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

func size(ctx context.Context, url string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.Copy(io.Discard, resp.Body)
}

func sizesPlain(ctx context.Context, urls []string) ([]int64, error) {
	return coir.Map(ctx, 8, slices.Values(urls), size)
}

func sizes(ctx context.Context, urls []string) ([]int64, error) {
	return coir.Map(ctx, 8, slices.Values(urls), size, coir.WithGoroutine())
}

func measure(ctx context.Context, urls *coir.Chan[string], sizes *coir.Chan[int64]) error {
	for url, err := range urls.All(ctx) {
		if err != nil {
			return err
		}
		n, err := coir.Blocking(ctx, func() (int64, error) { return size(ctx, url) })
		if err != nil {
			return err
		}
		if err := sizes.Send(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func newRuntime(t *testing.T, opts ...coir.RuntimeOption) *coir.Runtime {
	rt := coir.NewRuntime(opts...)
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// meeting returns the URLs of two pages, each of which is served only when the other has been asked for as well: a
// program must ask for both at the same time.
func meeting(t *testing.T) []string {
	var both sync.WaitGroup
	both.Add(2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		fmt.Fprint(w, r.URL.Path[1:])
	}))
	t.Cleanup(s.Close)
	return []string{s.URL + "/a", s.URL + "/bcd"}
}

// A call that holds its worker does not keep another fiber from running, even if there is one worker: it is replaced.
func TestSizes(t *testing.T) {
	rt := newRuntime(t, coir.WithWorkers(1))
	for name, f := range map[string]func(context.Context, []string) ([]int64, error){
		"plain":         sizesPlain,
		"WithGoroutine": sizes,
		"Blocking": func(ctx context.Context, urls []string) (all []int64, err error) {
			err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				in, out := coir.NewChan[string](2), coir.NewChan[int64](2)
				if _, err := in.SendMany(ctx, urls); err != nil {
					return err
				}
				in.Close()
				for i := range 2 {
					n.Go("measure", func(ctx context.Context) error { return measure(ctx, in, out) }, coir.WithIndex(i))
				}
				for range urls {
					n, err := out.Recv(ctx)
					if err != nil {
						return err
					}
					all = append(all, n)
				}
				return nil
			})
			slices.Sort(all)
			return all, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
				got, err := f(ctx, meeting(t))
				if !slices.Equal(got, []int64{1, 3}) {
					t.Errorf("got %v", got)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// lines are what was logged.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// The page is served when the fiber that waits for it has been logged.
func TestTheStallLog(t *testing.T) {
	old, flags, out := slog.Default(), log.Flags(), log.Writer()
	defer func() {
		slog.SetDefault(old)
		log.SetFlags(flags)
		log.SetOutput(out)
	}()
	logged, shown := make(lines, 100), make(chan string, 1)
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		line := <-logged
		for !strings.Contains(line, "level=WARN") {
			line = <-logged
		}
		shown <- line
	}))
	defer s.Close()
	err := newRuntime(t).Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("fetch", func(ctx context.Context) error {
			_, err := size(ctx, s.URL)
			return err
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	line := <-shown
	_, guide, _ := strings.Cut(read(t, "io.md"), "level=WARN")
	text, _, _ := strings.Cut(guide, "for=")
	if !strings.Contains(line, "level=WARN"+text) || strings.Count(line, "io_test.go:") != 2 {
		t.Errorf("the guide does not show the line\n%s", line)
	}
}

// The server.

type front struct {
	backends []string
	calls    *locks.Semaphore // of all requests together
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := coir.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	sizes, err := coir.Map(ctx, 4, slices.Values(f.backends), f.size, coir.WithGoroutine())
	switch {
	case errors.Is(err, context.DeadlineExceeded): // of coir, or of the HTTP client
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		fmt.Fprintln(w, sizes)
	}
}

func (f *front) size(ctx context.Context, url string) (int64, error) {
	if err := f.calls.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer f.calls.Release(1)
	return size(ctx, url)
}

func TestTheServerBoundsItsCalls(t *testing.T) {
	const most = 3
	var now, high atomic.Int64
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer now.Add(-1)
		for n := now.Add(1); ; {
			if h := high.Load(); n <= h || high.CompareAndSwap(h, n) {
				break
			}
		}
		fmt.Fprint(w, "body")
	}))
	defer back.Close()
	f := &front{slices.Repeat([]string{back.URL}, 4), locks.NewSemaphore(most, coir.WithName("calls"))}
	s := httptest.NewServer(f)
	defer s.Close()
	err := coir.ForEach(t.Context(), 8, slices.Values(make([]int, 40)), func(ctx context.Context, _ int) error {
		n, err := size(ctx, s.URL)
		if want := int64(len("[4 4 4 4]\n")); err == nil && n != want {
			err = fmt.Errorf("got %d bytes, want %d", n, want)
		}
		return err
	}, coir.WithGoroutine())
	if err != nil {
		t.Error(err)
	}
	if high.Load() > most {
		t.Errorf("%d calls at the same time", high.Load())
	}
}

// The deadline of a request ends its calls: the backend sees that its client has gone.
func TestTheServerHasDeadlines(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer back.Close()
	f := &front{[]string{back.URL}, locks.NewSemaphore(1)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code != http.StatusGatewayTimeout {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func serve(ctx context.Context, l net.Listener, h http.Handler, grace time.Duration) error {
	requests, cut := coir.WithCancel(coir.Shield(ctx)) // they continue when ctx has ended
	defer cut()
	srv := &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return requests }}
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("accept", func(context.Context) error {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}, coir.WithGoroutine())
		_ = coir.WaitCancel(ctx) // until the program is to stop, or accept has failed
		patience, cancel := coir.WithTimeout(requests, grace)
		defer cancel()
		_, err := coir.Blocking(ctx, func() (any, error) { return nil, srv.Shutdown(patience) })
		if err != nil { // some requests took too long
			cut()
			err = errors.Join(err, srv.Close())
		}
		return err
	})
}

// served is a server under test.
type served struct {
	url    string
	stop   context.CancelFunc
	result chan error
}

func start(t *testing.T, grace time.Duration, h http.HandlerFunc) *served {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &served{"http://" + l.Addr().String(), stop, make(chan error, 1)}
	go func() { s.result <- serve(ctx, l, h, grace) }()
	return s
}

// A request that is under way when the server is stopped is answered.
func TestServeFinishes(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-leave
		if r.Context().Err() == nil {
			fmt.Fprint(w, "answer")
		}
	})
	answer := make(chan int64)
	go func() {
		n, err := size(t.Context(), s.url)
		if err != nil {
			t.Error(err)
		}
		answer <- n
	}()
	<-entered
	s.stop()
	for { // until the server no longer listens
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			break
		}
		_ = c.Close()
	}
	close(leave)
	if n := <-answer; n != int64(len("answer")) {
		t.Errorf("got %d bytes", n)
	}
	if err := <-s.result; err != nil {
		t.Error(err)
	}
}

// A request that takes too long is cancelled, and the result says so.
func TestServeCutsOff(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	s := start(t, time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		defer close(left)
		close(entered)
		_ = coir.WaitCancel(r.Context())
	})
	go func() { _, _ = size(t.Context(), s.url) }()
	<-entered
	s.stop()
	if err := <-s.result; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-left
}

// A server that cannot accept any more ends with that error.
func TestServeFails(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := serve(t.Context(), l, http.NotFoundHandler(), time.Minute); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func echo(ctx context.Context, c *netio.Conn) error {
	defer func() { _ = c.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := c.ReadContext(ctx, buf)
		if err != nil {
			return err // io.EOF if the peer has closed its end
		}
		if _, err := c.WriteContext(ctx, buf[:n]); err != nil {
			return err
		}
	}
}

// TestEcho: the first client closes its end; the second does not, and its echo is cancelled.
func TestEcho(t *testing.T) {
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	connect := func() (client, server *netio.Conn) {
		c, err := netio.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c.(*netio.Conn), s.(*netio.Conn)
	}
	client, server := connect()
	_, idle := connect()
	err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("echo", func(ctx context.Context) error {
			if err := echo(ctx, server); !errors.Is(err, io.EOF) {
				t.Errorf("echo returned %v", err)
			}
			return nil
		})
		short, cancel := coir.WithCancel(ctx)
		defer cancel()
		n.Go("idle", func(context.Context) error {
			if err := echo(short, idle); !errors.Is(err, context.Canceled) {
				t.Errorf("the idle echo returned %v", err)
			}
			return nil
		})
		if _, err := client.WriteContext(ctx, []byte("hello")); err != nil {
			return err
		}
		if err := client.CloseWrite(); err != nil {
			return err
		}
		if got, err := io.ReadAll(client); string(got) != "hello" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		return nil // and cancel short
	})
	if err != nil {
		t.Fatal(err)
	}
}

type lineReader struct {
	ctx  context.Context
	conn *netio.Conn
}

func (r lineReader) Read(p []byte) (int, error) { return r.conn.ReadContext(r.ctx, p) }

func answerLines(ctx context.Context, c *netio.Conn, answer func(line string) string) error {
	defer func() { _ = c.Close() }()
	in := bufio.NewReaderSize(lineReader{ctx, c}, 4096)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err // io.EOF at the end; bufio.ErrBufferFull if the line is too long
		}
		if _, err := c.WriteContext(ctx, []byte(answer(string(line)))); err != nil {
			return err
		}
	}
}

// TestAnswerLines: whole lines are answered, whatever the network does, and no other.
func TestAnswerLines(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", "lines:7")
			if err != nil {
				return err
			}
			n.Go("server", func(ctx context.Context) error {
				c, err := l.(*netio.Listener).AcceptContext(ctx)
				if err != nil {
					return err
				}
				err = answerLines(ctx, c, func(line string) string {
					if line != "one\n" && line != "two\n" {
						s.Errorf("the server got %q", line)
					}
					return "re: " + line
				})
				s.Sometimes(errors.Is(err, io.EOF), "the end")
				s.Sometimes(errors.Is(err, syscall.ECONNRESET), "a reset")
				return nil
			})
			dialled, err := netio.Dial("tcp", "lines:7")
			if err != nil {
				return err
			}
			c := dialled.(*netio.Conn)
			defer func() { _ = c.Close() }()
			for _, part := range []string{"on", "e\ntw", "o\n"} {
				if _, err := c.WriteContext(ctx, []byte(part)); err != nil {
					return nil
				}
			}
			if err := c.CloseWrite(); err != nil {
				return nil
			}
			got, err := io.ReadAll(lineReader{ctx, c})
			if err == nil && string(got) != "re: one\nre: two\n" {
				s.Errorf("the client got %q", got)
			}
			return nil
		})
	}, sim.WithFaults("netio reset", "netio partial read", "netio delay"), sim.WithSchedules(500))
}
