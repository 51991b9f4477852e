//go:build corpus

package forms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
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
				t.Errorf("%d + %d is %d; want %d", c.a, c.b, got, c.want)
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

// Expect: panic
func TestLogAfterItsEnd(t *testing.T) {
	go func() { t.Log("too late") }()
}

func TestLogOfASubtestThatHasEnded(t *testing.T) {
	done := make(chan bool)
	t.Run("sub", func(t *testing.T) {
		go func() {
			t.Log("to the parent")
			close(done)
		}()
	})
	<-done
}

// In a bubble that a test makes itself, time is exact.
func TestExactTimeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Nanosecond)
				if passed := time.Since(began); passed != time.Duration(i) {
					t.Error(passed)
				}
			})
		}
		wg.Wait()
		if passed := time.Since(began); passed != 2 {
			t.Error(passed)
		}
	})
}

// Expect: fail
func TestShortTimerWhileTheTestRuns(t *testing.T) {
	timer := time.AfterFunc(time.Nanosecond, func() {})
	runtime.Gosched()
	if !timer.Stop() {
		t.Error("it has fired")
	}
}

// Two goroutines that sleep for the same time may wake in any order.
//
// Expect: fail
func TestSecondSleeperIsFirst(t *testing.T) {
	order := make(chan int, 2)
	for i := range 2 {
		go func() {
			time.Sleep(time.Millisecond)
			order <- i
		}()
	}
	if <-order == 1 {
		t.Error("the second is first")
	}
	<-order
}

// A goroutine that a subtest leaves running runs concurrently with the code after the subtest.
//
// Expect: fail
func TestSubtestLeavesARunner(t *testing.T) {
	var done atomic.Bool
	t.Run("sub", func(*testing.T) {
		go func() { done.Store(true) }()
	})
	if !done.Load() {
		t.Error("it has not run")
	}
}

// Expect: panic
func TestCleanupBesideARunner(t *testing.T) {
	var mu sync.Mutex
	closed, stop := false, make(chan bool)
	go func() {
		mu.Lock()
		defer mu.Unlock()
		if !closed {
			closed = true
			close(stop)
		}
	}()
	t.Cleanup(func() {
		mu.Lock()
		was := closed
		mu.Unlock()
		if !was {
			mu.Lock()
			closed = true
			mu.Unlock()
			close(stop)
		}
	})
}

// Expect: fail
func TestLooksIntoASyncMapAndThenStores(t *testing.T) {
	var made atomic.Int32
	var m sync.Map
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, ok := m.Load("config"); !ok {
				m.Store("config", made.Add(1))
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
}

// Expect: fail
func TestYieldsBetweenLookAndUse(t *testing.T) {
	var n atomic.Int32
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			was := n.Load()
			runtime.Gosched()
			n.Store(was + 1)
		})
	}
	wg.Wait()
	if n.Load() != 2 {
		t.Error("an update is lost")
	}
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

// A sleep during which a timer fires many times is not a deadlock.
func TestSleepBesideABeat(*testing.T) {
	defer beat(func() {})()
	time.Sleep(30 * time.Second)
}

// Expect: leak
func TestPullThatIsNotStopped(*testing.T) {
	next, _ := iter.Pull(slices.Values([]int{1, 2}))
	next()
}

// A test sees the same number of processors on every machine; otherwise its schedules would differ.
func TestProcessors(t *testing.T) {
	if n := runtime.GOMAXPROCS(0); n != 2 {
		t.Error(n)
	}
}

// The test runs itself in a new process, which must panic as under go test.
func TestRunsItselfAgain(t *testing.T) {
	if os.Getenv("FORMS_AGAIN") != "" {
		go panic("as it is written")
		select {}
	}
	c := exec.Command(os.Args[0], "-test.run=^TestRunsItselfAgain$")
	c.Env = append(os.Environ(), "FORMS_AGAIN=1")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: as it is written") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSignalToItself(t *testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	defer signal.Stop(c)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-c
}

// Expect: a signal at forms_test.go
func TestSignalThatDoesNotCome(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGUSR2)
	defer stop()
	<-ctx.Done()
}

func TestWaitsForSignalsOn(*testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	go func() { <-c }()
}

// Expect: deadlock
func TestClientThatDoesNotCome(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	_, _ = l.Accept()
}

// Expect: deadlock
func TestPipeThatNothingIsWrittenTo(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	_, _ = r.Read(make([]byte, 1))
}

var questions, answers = make(chan int), make(chan int)

func init() {
	go func() { // this goroutine belongs to no test
		for q := range questions {
			if q > 0 {
				answers <- q + 1
			}
		}
	}()
}

func TestGoroutineOutsideAnswers(t *testing.T) {
	questions <- 1
	select {
	case a := <-answers:
		if a != 2 {
			t.Error(a)
		}
	case <-time.After(time.Second):
		t.Error("it does not answer")
	}
}

// Stacks and counts of goroutines include only those of the test, because tests search them for leaks.
func TestGoroutinesOfItsOwn(t *testing.T) {
	before := runtime.NumGoroutine()
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		<-stop
		close(stopped)
	}()
	runtime.Gosched()
	text := make([]byte, 1<<16)
	text = text[:runtime.Stack(text, true)]
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		_, top, _ := strings.Cut(stack, "\n")
		if strings.HasPrefix(top, "testing.(*T).Run(") {
			continue // this goroutine waits for the test, as under go test
		}
		if strings.Contains(stack, "coirExplorer") || strings.Contains(stack, "durable") ||
			strings.Contains(stack, "bubble") {
			t.Errorf("a goroutine that is not the test's, or its state:\n%s", stack)
		}
	}
	if after := runtime.NumGoroutine(); before != 3 || after != 4 { // one is that of init, above
		t.Error(before, after)
	}
	close(stop)
	<-stopped
}

type janitor struct{ stop chan bool }

func TestGoroutineThatAFinalizerStops(*testing.T) {
	j := &janitor{make(chan bool)}
	go func(stop chan bool) { <-stop }(j.stop)
	runtime.SetFinalizer(j, func(j *janitor) { close(j.stop) })
}

// The arguments of the process are those that go test passes.
func TestArguments(t *testing.T) {
	if name := filepath.Base(os.Args[0]); name != "forms.test" {
		t.Error(name)
	}
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.") {
			t.Error(arg)
		}
	}
}

func TestAnOrdinaryTime(t *testing.T) {
	if now := time.Now().UTC(); now.YearDay() == 1 || now.Hour() == 0 || now.Minute() == 0 {
		t.Error(now, "is when jobs of a test may be due")
	}
}

// A file is older than the test, but not by years, because a certificate in it may expire.
func TestTheTimeOfAFile(t *testing.T) {
	info, err := os.Stat(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(info.ModTime()); age < 0 || age > 50*24*time.Hour {
		t.Error(info.ModTime(), "is the time of a new file, and now it is", time.Now())
	}
}

// A test counts only its own allocations. It runs for longer than the watcher of coir test sleeps.
func TestAllocations(t *testing.T) {
	x := uint64(1)
	n := testing.AllocsPerRun(1, func() {
		for range 30_000_000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
	})
	if n != 0 {
		t.Error(n, x)
	}
}

func portOfTwoTests(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.99:57391")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for x := uint64(1); x>>40 != 0xabcdef; { // for long enough that the other test runs meanwhile
		x = x*6364136223846793005 + 1442695040888963407
	}
}

func TestPortOfTwoTests(t *testing.T)    { portOfTwoTests(t) }
func TestPortOfTwoTestsToo(t *testing.T) { portOfTwoTests(t) }

// The stack of a test has the same height as under go test, because some loggers skip a number of callers.
func TestHeightOfItsStack(t *testing.T) {
	if n := runtime.Callers(0, make([]uintptr, 100)); n != 4 { // Callers, the test, tRunner, goexit
		t.Error(n)
	}
}

// Neither case of a select starves the other, whichever is first.
func TestSelectIsFair(t *testing.T) {
	always := make(chan bool)
	close(always)
	for _, first := range []bool{true, false} {
		stop := make(chan bool)
		go close(stop)
		a, b := always, stop
		if first {
			a, b = stop, always
		}
		for stopped := false; !stopped; {
			select {
			case <-a:
				stopped = first
			case <-b:
				stopped = !first
			}
		}
	}
}

// A cleanup runs as a part of the schedule.
func TestCleanupThatPolls(t *testing.T) {
	var ended atomic.Bool
	t.Cleanup(func() {
		for !ended.Load() {
			runtime.Gosched()
		}
	})
	go ended.Store(true)
}

var ranBefore atomic.Bool

// Ginkgo ends the process when a suite is run twice.
func TestEndsTheProcessWhenRunAgain(*testing.T) {
	if ranBefore.Swap(true) {
		os.Exit(1)
	}
}

// A deadline is on the clock of the test.
func TestItsDeadline(t *testing.T) {
	if d, ok := t.Deadline(); ok && time.Until(d) < time.Minute {
		t.Error(time.Until(d))
	}
}

var runs int

// coir test reports what the test does in a process of its own.
func TestNoticesEarlierRuns(t *testing.T) {
	if runs++; runs > 1 {
		t.Error("it has run before")
	}
}

var opened = make(chan bool)

func TestOpensOnce(*testing.T) {
	go close(opened)
	<-opened
}

// A goroutine left behind in each schedule does not hide that some schedules deadlock.
//
// Expect: deadlock
func TestLeavesOneBehindAndDeadlocks(*testing.T) {
	go func() { <-make(chan bool) }()
	var a, b sync.Mutex
	var wg sync.WaitGroup
	for _, l := range [][2]*sync.Mutex{{&a, &b}, {&b, &a}} {
		wg.Go(func() {
			l[0].Lock()
			defer l[0].Unlock()
			l[1].Lock()
			defer l[1].Unlock()
		})
	}
	wg.Wait()
}

// Times have a monotonic reading, and can be compared with times from before the test.
func TestMonotonic(t *testing.T) {
	now := time.Now()
	if now == now.Round(0) {
		t.Error("the time has no monotonic reading")
	}
	time.Sleep(time.Hour)
	if d := time.Since(now); d < time.Hour || d > time.Hour+time.Minute {
		t.Error(d)
	}
	if d := time.Since(loaded); d < time.Hour || d > 2*time.Hour {
		t.Error(d)
	}
}

var loaded = time.Now()

// A timer that is set to the longest possible time never fires.
func TestTimerForever(t *testing.T) {
	forever := time.NewTimer(math.MaxInt64)
	defer forever.Stop()
	select {
	case <-forever.C:
		t.Error("it has fired")
	case <-time.After(time.Millisecond):
	}
	forever.Reset(math.MaxInt64)
}

// A test may sleep many times, if it ends.
func TestSleepsInALoop(t *testing.T) {
	done := make(chan bool)
	ended := make(chan bool)
	go func() {
		<-done
		close(ended)
	}()
	for range 36_000 {
		time.Sleep(time.Second)
	}
	close(done)
	<-ended
}
