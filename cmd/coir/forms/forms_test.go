//go:build corpus

package forms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var main struct {
	ran  atomic.Bool
	runs atomic.Int64
}

func TestMain(m *testing.M) {
	main.ran.Store(true)
	os.Exit(m.Run())
}

func TestMainHasRun(t *testing.T) {
	if !main.ran.Load() {
		t.Error("TestMain has not run")
	}
}

func TestCleanupRunsInReverse(t *testing.T) {
	var order []string
	t.Run("inner", func(t *testing.T) {
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() { order = append(order, "second") })
		done := make(chan bool)
		go close(done)
		<-done
	})
	if !slices.Equal(order, []string{"second", "first"}) {
		t.Error(order)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct{ a, b, want int }{{1, 2, 3}, {2, 2, 4}, {0, 0, 0}} {
		t.Run(fmt.Sprint(c.a, "+", c.b), func(t *testing.T) {
			sum := make(chan int)
			go func() { sum <- c.a + c.b }()
			if got := <-sum; got != c.want {
				t.Errorf("%d", got)
			}
		})
	}
}

func TestParallelSubtests(t *testing.T) {
	var n atomic.Int64
	t.Cleanup(func() {
		if n.Load() != 3 {
			t.Errorf("%d subtests have run", n.Load())
		}
	})
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			time.Sleep(time.Second)
			n.Add(1)
		})
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	time.Sleep(time.Hour)
}

func TestContextEndsBeforeCleanup(t *testing.T) {
	ctx := t.Context()
	stopped := make(chan bool)
	go func() {
		<-ctx.Done()
		close(stopped)
	}()
	t.Cleanup(func() { <-stopped })
}

// Expect: skip
func TestSkip(t *testing.T) {
	t.Skip("not today")
}

// Expect: fail
func TestFatalInASubtest(t *testing.T) {
	t.Run("inner", func(t *testing.T) {
		t.Fatal("as it is written")
	})
}

// Expect: panic
func TestPanic(*testing.T) {
	panic("as it is written")
}

// Expect: panic
func TestPanicInAGoroutine(*testing.T) {
	done := make(chan bool)
	go func() {
		defer close(done)
		panic(errors.New("as it is written"))
	}()
	<-done
}

func TestPanicThatIsRecovered(t *testing.T) {
	defer func() {
		if v := recover(); v != "as it is written" {
			t.Error(v)
		}
	}()
	panic("as it is written")
}

func TestGoexitOfAGoroutine(t *testing.T) {
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.Goexit()
	}()
	<-done
}

// Expect: panic
func TestExitWithSuccess(*testing.T) {
	os.Exit(0) // which package testing turns into a panic
}

// Expect: died
func TestExit(*testing.T) {
	os.Exit(1)
}

func TestInABubbleOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		done := make(chan bool)
		go func() {
			time.Sleep(time.Minute)
			close(done)
		}()
		synctest.Wait()
		<-done
		if passed := time.Since(began); passed != time.Minute { // a read of the clock does not move it
			t.Error(passed)
		}
	})
}

func TestTimersAreVirtual(t *testing.T) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	ticks := 0
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
			ticks++
		case <-ctx.Done():
		}
	}
	if passed := time.Since(began); ticks < 23 || ticks > 24 || passed < 24*time.Hour {
		t.Error(ticks, passed)
	}
}

func TestTenThousandGoroutines(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 10_000 {
		wg.Go(func() { n.Add(1) })
	}
	wg.Wait()
	if n.Load() != 10_000 {
		t.Error(n.Load())
	}
}

func TestPull(t *testing.T) {
	next, stop := iter.Pull(func(yield func(int) bool) {
		c := make(chan int)
		go func() {
			defer close(c)
			for i := range 3 {
				c <- i
			}
		}()
		for v := range c {
			if !yield(v) {
				return
			}
		}
	})
	defer stop()
	for want := range 3 {
		if got, ok := next(); got != want || !ok {
			t.Error(got, ok)
		}
	}
}

func TestStateThatLasts(t *testing.T) {
	n := main.runs.Add(1)
	c := make(chan bool, n)
	for range n { // so each run does more
		c <- true
	}
}

func TestFilesAndProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cat", name).Output()
	if err != nil || string(out) != "text" {
		t.Error(string(out), err)
	}
}

func TestNetworkOfThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.WriteString(c, "hello")
			err = errors.Join(err, c.Close())
		}
		served <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err := errors.Join(err, <-served); err != nil || string(text) != "hello" {
		t.Error(string(text), err)
	}
}

func TestHTTPOverAPipe(t *testing.T) {
	here, there := net.Pipe()
	conns := make(chan net.Conn, 1)
	conns <- there
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello "+strings.TrimPrefix(r.URL.Path, "/"))
	})}
	served := make(chan error, 1)
	l := &oneListener{conns: conns, closed: make(chan bool)}
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
	client := http.Client{Transport: transport}
	res, err := client.Get("http://example/there")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil || string(text) != "hello there" {
		t.Error(string(text), err)
	}
	_ = res.Body.Close()
	transport.CloseIdleConnections()
	_ = server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

type oneListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan bool
}

func (l *oneListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

// Expect: leak
func TestGoroutineLeftBehind(*testing.T) {
	go func() { <-make(chan bool) }()
}

// Expect: deadlock
func TestDeadlockBesideATicker(*testing.T) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	done := make(chan bool)
	go func() {
		for range ticker.C {
			if len(done) > 0 {
				return
			}
		}
	}()
	<-done
}

func TestSpinUntilATimeHasCome(t *testing.T) {
	var stop atomic.Bool
	time.AfterFunc(time.Second, func() { stop.Store(true) })
	for !stop.Load() {
		runtime.Gosched()
	}
	for began := time.Now(); time.Since(began) < time.Millisecond; {
		runtime.Gosched()
	}
}

var global sync.Mutex

// Expect: deadlock
func TestGlobalLockThatStaysLocked(*testing.T) {
	done := make(chan bool)
	go func() {
		defer close(done)
		global.Lock()
		defer global.Unlock()
	}()
	var local sync.Mutex
	local.Lock()
	go func() {
		global.Lock()
		local.Lock()
		global.Unlock()
		local.Unlock()
	}()
	<-done
	local.Unlock()
}

func TestSleepsOn(*testing.T) {
	go func() {
		for range 100_000 {
			time.Sleep(time.Second)
		}
	}()
}

// beat calls f every millisecond, on goroutines that timers start, until stop is called.
func beat(f func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	ended := false
	again := func() {
		mu.Lock()
		defer mu.Unlock()
		if f(); !ended {
			timer.Reset(time.Millisecond)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(time.Millisecond, again)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}
}

// Expect: deadlock
func TestDeadlockBesideABeat(*testing.T) {
	defer beat(func() {})()
	<-make(chan bool)
}

// A sleep of many beats is no deadlock.
func TestSleepBesideABeat(*testing.T) {
	defer beat(func() {})()
	time.Sleep(30 * time.Second)
}

// Expect: leak
func TestPullThatIsNotStopped(*testing.T) {
	next, _ := iter.Pull(slices.Values([]int{1, 2}))
	next()
}

// What a test is told of the machine is the same on each, or its schedules would not be.
func TestProcessors(t *testing.T) {
	if n := runtime.GOMAXPROCS(0); n != 2 {
		t.Error(n)
	}
}

// A cleanup is a part of the schedule.
func TestCleanupThatPolls(t *testing.T) {
	var ended atomic.Bool
	t.Cleanup(func() {
		for !ended.Load() {
			runtime.Gosched()
		}
	})
	go ended.Store(true)
}
