// Package orders has small programs whose result depends on the order of their goroutines. Each writes its results into
// a file of its name, in the directory that ORDERS names.
package orders

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// results are of all schedules. They are written at the end: a schedule that writes may lose its turn to the kernel.
var results = map[string]*strings.Builder{}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir := os.Getenv("ORDERS"); dir != "" {
		for test, text := range results {
			if err := os.WriteFile(filepath.Join(dir, test), []byte(text.String()), 0o666); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(code)
}

func result(t *testing.T, args ...any) {
	b := results[t.Name()]
	if b == nil {
		b = new(strings.Builder)
		results[t.Name()] = b
	}
	fmt.Fprintln(b, args...)
}

func TestLocks(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	order := ""
	for i := range 2 {
		wg.Go(func() {
			mu.Lock()
			order += fmt.Sprint(i)
			mu.Unlock()
		})
	}
	wg.Wait()
	result(t, order)
}

func TestTryLock(t *testing.T) {
	var mu sync.Mutex
	done := make(chan bool)
	go func() {
		locked := mu.TryLock()
		if locked {
			mu.Unlock()
		}
		done <- locked
	}()
	mu.Lock()
	mu.Unlock()
	result(t, <-done)
}

func TestIndependent(t *testing.T) {
	var mu [2]sync.Mutex
	done := make(chan int, 2)
	for i := range 2 {
		go func() {
			mu[i].Lock()
			mu[i].Unlock()
			done <- i
		}()
	}
	result(t, <-done, <-done)
}

func TestSelects(t *testing.T) {
	a, b := make(chan int), make(chan int, 1)
	go func() { a <- 1 }()
	go func() {
		b <- 2
		close(b)
	}()
	order := ""
	for range 3 {
		select {
		case x := <-a:
			order += fmt.Sprint(x)
		case x := <-b:
			order += fmt.Sprint(x)
		}
	}
	result(t, order)
}

func TestSenderAndSelects(t *testing.T) {
	c, d := make(chan int), make(chan int, 1)
	got := make(chan int, 1)
	go func() {
		select {
		case x := <-c:
			got <- x
		case x := <-d:
			got <- x
			<-c
		}
	}()
	go func() { d <- 2 }()
	c <- 1
	result(t, <-got)
}

func TestReadersAndAWriter(t *testing.T) {
	var mu sync.RWMutex
	var wg sync.WaitGroup
	n, saw := 0, 0
	wg.Go(func() {
		mu.RLock()
		saw = n
		mu.RUnlock()
	})
	mu.Lock()
	n++
	mu.Unlock()
	wg.Wait()
	result(t, saw)
}

func TestCond(t *testing.T) {
	var mu sync.Mutex
	c := sync.NewCond(&mu)
	n, order := 0, ""
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for n == 0 {
				c.Wait()
			}
			n--
			order += fmt.Sprint(i)
		})
	}
	mu.Lock()
	n = 2
	c.Broadcast()
	mu.Unlock()
	wg.Wait()
	result(t, order)
}

func TestOnce(t *testing.T) {
	var once sync.Once
	var wg sync.WaitGroup
	first := 0
	wg.Go(func() { once.Do(func() { first = 1 }) })
	once.Do(func() { first = 2 })
	wg.Wait()
	result(t, first)
}

func TestTimeoutAndResult(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan bool, 1)
	go func() {
		time.Sleep(time.Second)
		done <- true
	}()
	select {
	case <-done:
		result(t, "done")
	case <-ctx.Done():
		result(t, ctx.Err())
		<-done
	}
}

func TestAtomicFlags(t *testing.T) { // with -atomics
	var a, b atomic.Bool
	var wg sync.WaitGroup
	var saw [2]bool
	wg.Go(func() {
		a.Store(true)
		saw[0] = b.Load()
	})
	b.Store(true)
	saw[1] = a.Load()
	wg.Wait()
	result(t, saw)
}

// connected returns both ends of a connection.
func connected(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestSocketWriters(t *testing.T) {
	a, b := connected(t)
	for i := range 2 {
		go func() { _, _ = a.Write([]byte{byte('1' + i)}) }()
	}
	got := ""
	for len(got) < 2 {
		buf := make([]byte, 2)
		n, _ := b.Read(buf)
		got += string(buf[:n])
	}
	result(t, got)
}

func TestSocketReaders(t *testing.T) {
	a, b := connected(t)
	_, _ = a.Write([]byte("12"))
	var got [2]string
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			buf := make([]byte, 1)
			_, _ = b.Read(buf)
			got[i] = string(buf)
		})
	}
	wg.Wait()
	result(t, got)
}

func TestSocketCloses(t *testing.T) {
	a, b := connected(t)
	done := make(chan bool)
	go func() { _ = a.Close(); done <- true }()
	_, first := b.Write([]byte("1"))
	_, second := b.Write([]byte("2"))
	<-done
	result(t, first == nil, second == nil)
}
