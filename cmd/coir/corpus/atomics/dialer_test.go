//go:build corpus

package atomics

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A dialer makes its connection when it is first asked for. It stores the connection by CompareAndSwap, but does not
// check whether another goroutine was first. If so, it returns a connection that no other caller has.
//
// Class: atomicity
// Expect: fail

type connection struct {
	addr string
}

type dialer struct {
	conn atomic.Pointer[connection]
}

func (d *dialer) get() *connection {
	if c := d.conn.Load(); c != nil {
		return c
	}
	c := &connection{addr: "db:5432"}
	d.conn.CompareAndSwap(nil, c)
	return c
}

func (d *dialer) getFixed() *connection {
	if c := d.conn.Load(); c != nil {
		return c
	}
	d.conn.CompareAndSwap(nil, &connection{addr: "db:5432"})
	return d.conn.Load()
}

func runDialer(t *testing.T, get func(*dialer) *connection) {
	d := &dialer{}
	var got [2]*connection
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = get(d) })
	}
	wg.Wait()
	if got[0] != got[1] {
		t.Error("there are two connections")
	}
}

func TestBugDialer(t *testing.T) {
	runDialer(t, (*dialer).get)
}

func TestFixedDialer(t *testing.T) {
	runDialer(t, (*dialer).getFixed)
}
