package explore_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir/explore"
)

// In the explored part time is virtual and exact, under go test and under coir test. The code around Test uses the
// network and real time. Under go test the part runs once. TestExplorePart of cmd/coir runs this test under coir test,
// where the part runs many times.
func TestClockIsVirtual(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = l.Close() }()
	real := time.Now()
	explore.Test(t, func(t *testing.T) {
		began := time.Now()
		done := make(chan bool)
		go func() {
			time.Sleep(time.Hour)
			close(done)
		}()
		<-done
		if d := time.Since(began); d != time.Hour {
			t.Errorf("an hour takes %v", d)
		}
	})
	if d := time.Since(real); d > 30*time.Minute {
		t.Errorf("outside it took %v", d)
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// Each subtest has its own explored part.
func TestSubtests(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			explore.Test(t, func(t *testing.T) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				sum := 0
				for range n {
					wg.Go(func() {
						mu.Lock()
						sum++
						mu.Unlock()
					})
				}
				wg.Wait()
				if sum != n {
					t.Errorf("%d, want %d", sum, n)
				}
			})
		})
	}
}
