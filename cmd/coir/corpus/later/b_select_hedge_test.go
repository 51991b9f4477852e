//go:build corpus

package later

// A hedged request sends a second attempt when the first one takes too long, or at once when the first one fails.
// After a failure the timer is left running, and when it fires before the second attempt has answered, a third
// attempt goes out, although the backend allows two at most.
//
// Class: select
// Expect: fail

import (
	"errors"
	"sync"
	"testing"
	"time"
)

type hedgReply struct {
	text string
	err  error
}

var errHedgBusy = errors.New("replica is busy")

type hedgClient struct {
	calls    sync.WaitGroup
	launched int // used by the goroutine of do only
	replies  chan hedgReply
}

// launch sends the next attempt; the first replica needs a while and fails, the others answer at once.
func (c *hedgClient) launch() {
	n := c.launched
	c.launched++
	c.calls.Add(1)
	go func() {
		defer c.calls.Done()
		if n == 0 {
			time.Sleep(time.Millisecond)
			c.replies <- hedgReply{err: errHedgBusy}
			return
		}
		c.replies <- hedgReply{text: "ok"}
	}()
}

func (c *hedgClient) do(patience time.Duration, fixed bool) (string, error) {
	c.replies = make(chan hedgReply, 3)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	late := timer.C
	failed := 0
	c.launch()
	for {
		select {
		case r := <-c.replies:
			if r.err == nil {
				return r.text, nil
			}
			failed++
			if failed == 2 {
				return "", r.err
			}
			if c.launched < 2 {
				c.launch()
				if fixed {
					late = nil
				}
			}
		case <-late:
			c.launch()
		}
	}
}

func hedgScene(t *testing.T, fixed bool) {
	c := &hedgClient{}
	text, err := c.do(time.Millisecond, fixed)
	c.calls.Wait()
	if text != "ok" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if c.launched > 2 {
		t.Errorf("%d attempts, at most 2 are allowed", c.launched)
	}
}

func TestBugHedgedRequest(t *testing.T) { hedgScene(t, false) }

func TestFixedHedgedRequest(t *testing.T) { hedgScene(t, true) }
