package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkPingPong(b *testing.B) {
	ping, pong := make(chan int), make(chan int)
	go func() {
		for v := range ping {
			pong <- v
		}
		close(pong)
	}()
	for i := range b.N {
		ping <- i
		<-pong
	}
	close(ping)
}

func BenchmarkBufferedChannel(b *testing.B) {
	c := make(chan int, 16)
	for i := range b.N {
		c <- i
		<-c
	}
}

func BenchmarkMutex(b *testing.B) {
	var mu sync.Mutex
	for range b.N {
		mu.Lock()
		mu.Unlock() //nolint:staticcheck // the cost of the two is measured
	}
}

func BenchmarkMutexContended(b *testing.B) {
	var mu sync.Mutex
	n := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range b.N {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func BenchmarkSelect(b *testing.B) {
	one, two := make(chan int, 1), make(chan int, 1)
	for i := range b.N {
		if i%2 == 0 {
			one <- i
		} else {
			two <- i
		}
		select {
		case <-one:
		case <-two:
		}
	}
}

func BenchmarkTimers(b *testing.B) {
	for range b.N {
		time.NewTimer(time.Hour).Stop()
	}
}

func BenchmarkSpawn(b *testing.B) {
	for range b.N {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {})
		}
		wg.Wait()
	}
}

func BenchmarkAtomics(b *testing.B) {
	var n atomic.Int64
	var p atomic.Pointer[int]
	x := new(int)
	for range b.N {
		n.Add(1)
		p.Store(x)
	}
}

func BenchmarkSyncMap(b *testing.B) {
	var m sync.Map
	m.Store("key", 1)
	for range b.N {
		m.Load("key")
	}
}

type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

func BenchmarkMapsAndGarbage(b *testing.B) {
	for i := range b.N {
		m := map[int]*node{}
		for k := range 100 {
			m[k*i] = tree(3)
		}
	}
}

// BenchmarkEcho sends a byte over a loopback connection, and receives it back.
func BenchmarkEcho(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			_ = c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	p := make([]byte, 1)
	for b.Loop() {
		if _, err := c.Write(p); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHTTP makes a request on a connection that is kept alive.
func BenchmarkHTTP(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer s.Close()
	client := s.Client()
	for b.Loop() {
		r, err := client.Get(s.URL)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
}

// TestSmall is a small test: two goroutines, a lock and a WaitGroup.
func TestSmall(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	n := 0
	for range 2 {
		wg.Go(func() {
			mu.Lock()
			n++
			mu.Unlock()
		})
	}
	wg.Wait()
	if n != 2 {
		t.Error(n)
	}
}

// TestSmallAtomics is the same with an atomic counter instead of the lock.
func TestSmallAtomics(t *testing.T) {
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 2 {
		wg.Go(func() { n.Add(1) })
	}
	wg.Wait()
	if n.Load() != 2 {
		t.Error(n.Load())
	}
}

func TestManyGoroutines(t *testing.T) {
	const many = 10_000
	var wg sync.WaitGroup
	c := make(chan int)
	for i := range many {
		wg.Go(func() { c <- i })
	}
	sum := 0
	for range many {
		sum += <-c
	}
	wg.Wait()
	if sum != many*(many-1)/2 {
		t.Error(sum)
	}
}
