//go:build corpus

package a

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"
)

// A rate limiter grants two requests in each minute, by the time the requests carry, and is asked over TCP. A request
// that finds the minute over begins the next one and counts itself. Finding it over and beginning the next are two
// steps. If a request is between them while others begin the minute and are granted, it begins the same minute once
// more, the count starts again at zero and a third request is granted.
//
// Class: atomicity
// Expect: fail
type rateLimiter struct {
	oneStep bool // find the minute over and begin the next in one step

	mu     sync.Mutex
	minute int
	used   int
}

func (l *rateLimiter) over(minute int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return minute > l.minute
}

func (l *rateLimiter) begin(minute int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.oneStep && minute <= l.minute {
		return
	}
	l.minute = minute
	l.used = 0
}

func (l *rateLimiter) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == 2 {
		return false
	}
	l.used++
	return true
}

func (l *rateLimiter) allow(minute int) bool {
	if l.over(minute) {
		l.begin(minute)
	}
	return l.take()
}

type rateServer struct {
	ln      net.Listener
	limiter *rateLimiter
	tasks   sync.WaitGroup
}

func (s *rateServer) serve() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.tasks.Go(func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for {
				var second int
				if _, err := fmt.Fscanln(in, &second); err != nil {
					return
				}
				fmt.Fprintln(conn, s.limiter.allow(second/60))
			}
		})
	}
}

// rateAsk asks for one request at each of the given seconds and returns how many are granted.
func rateAsk(t *testing.T, addr string, seconds ...int) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	granted := 0
	for _, second := range seconds {
		var ok bool
		fmt.Fprintln(conn, second)
		if _, err := fmt.Fscanln(in, &ok); err != nil {
			t.Error(err)
		}
		if ok {
			granted++
		}
	}
	return granted
}

func rateScene(t *testing.T, oneStep bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rateServer{ln: ln, limiter: &rateLimiter{oneStep: oneStep}}
	s.tasks.Go(s.serve)
	addr := ln.Addr().String()
	if n := rateAsk(t, addr, 5, 20, 55); n != 2 {
		t.Errorf("%d requests granted in the first minute", n)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 3 {
		wg.Go(func() {
			n := rateAsk(t, addr, 60)
			mu.Lock()
			defer mu.Unlock()
			granted += n
		})
	}
	wg.Wait()
	ln.Close()
	s.tasks.Wait()
	if granted != 2 {
		t.Errorf("%d requests granted in the second minute", granted)
	}
}

func TestBugRateLimit(t *testing.T) { rateScene(t, false) }

func TestFixedRateLimit(t *testing.T) { rateScene(t, true) }
