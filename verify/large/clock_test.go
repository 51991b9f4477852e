//go:build corpus

package large

import (
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// poller queries its source once in an interval, and passes the result to the store.
type poller struct {
	name   string
	every  time.Duration
	clock  clock.Clock
	rounds int
}

func (p *poller) run(readings chan<- string) {
	for range p.rounds {
		p.clock.Sleep(p.every)
		time.Sleep(time.Millisecond) // the source answers
		readings <- p.name
	}
}

// store counts readings, and prints a summary at each tick.
type store struct {
	mu        sync.Mutex
	byName    map[string]int
	summaries int
}

func (s *store) run(c clock.Clock, readings <-chan string, stop <-chan struct{}) {
	summary := c.Ticker(25 * time.Second)
	defer summary.Stop()
	for {
		select {
		case name := <-readings:
			s.mu.Lock()
			s.byName[name]++
			s.mu.Unlock()
		case <-summary.C:
			s.mu.Lock()
			s.summaries++
			s.mu.Unlock()
		case <-stop:
			return
		}
	}
}

// TestPollers advances a mock clock until ten pollers have done their rounds.
//
// Expect: deadlock
func TestPollers(t *testing.T) {
	mock := clock.NewMock()
	readings, stop := make(chan string, 4), make(chan struct{})
	s := &store{byName: make(map[string]int)}
	var pollers, others sync.WaitGroup
	others.Go(func() { s.run(mock, readings, stop) })

	for _, p := range []poller{
		{"disk", 10 * time.Second, mock, 6}, {"memory", 10 * time.Second, mock, 6},
		{"load", 10 * time.Second, mock, 6}, {"network", 15 * time.Second, mock, 4},
		{"queue", 15 * time.Second, mock, 4}, {"replicas", 20 * time.Second, mock, 3},
		{"backups", 20 * time.Second, mock, 3}, {"certificates", 30 * time.Second, mock, 2},
		{"licences", 30 * time.Second, mock, 2}, {"updates", 60 * time.Second, mock, 1},
	} {
		pollers.Go(func() { p.run(readings) })
	}

	ended := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				mock.Add(5 * time.Second)
			}
		}
	})
	pollers.Wait()
	close(ended)
	close(stop)
	others.Wait()

	if got := s.byName["disk"]; got != 6 {
		t.Errorf("the disk was read %d times, want 6", got)
	}
}
