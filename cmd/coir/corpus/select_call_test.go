//go:build corpus

package corpus

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// A client calls a slow backend in a goroutine and waits for the answer or for a timeout. After the timeout the client
// no longer receives, and the goroutine that sends the answer blocks for ever.
//
// Class: select
// Expect: leak

var errCallTimeout = errors.New("call timed out")

const callLatency = 20 * time.Millisecond

func callBackend(key string) string {
	time.Sleep(callLatency)
	return "value of " + key
}

type callClient struct{}

func (c *callClient) call(key string, timeout time.Duration) (string, error) {
	answer := make(chan string)
	go func() {
		answer <- callBackend(key)
	}()
	select {
	case v := <-answer:
		return v, nil
	case <-time.After(timeout):
		return "", errCallTimeout
	}
}

type callClientFixed struct {
	calls sync.WaitGroup
}

func (c *callClientFixed) call(key string, timeout time.Duration) (string, error) {
	answer := make(chan string, 1)
	c.calls.Go(func() {
		answer <- callBackend(key)
	})
	select {
	case v := <-answer:
		return v, nil
	case <-time.After(timeout):
		return "", errCallTimeout
	}
}

func (c *callClientFixed) close() {
	c.calls.Wait()
}

func TestBugCall(t *testing.T) {
	c := &callClient{}
	v, err := c.call("size", callLatency)
	if err == nil && v != "value of size" {
		t.Errorf("call = %q", v)
	}
}

func TestFixedCall(t *testing.T) {
	c := &callClientFixed{}
	v, err := c.call("size", callLatency)
	if err == nil && v != "value of size" {
		t.Errorf("call = %q", v)
	}
	c.close()
}
