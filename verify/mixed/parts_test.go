//go:build corpus

package mixed

import (
	"net"
	"testing"
	"time"

	"github.com/coir-go/coir/explore"
)

// The accounts again, as a part of a test with a listener, which cannot run in a schedule. Only the second subtest has
// the bug.

func partly(t *testing.T, back func(a, b *account)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = l.Close() }()
	answered := make(chan error)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.Close()
		}
		answered <- err
	}()
	began := time.Now()
	for _, name := range []string{"same way", "both ways"} {
		t.Run(name, func(t *testing.T) {
			explore.Test(t, func(t *testing.T) {
				if name == "both ways" {
					moveBoth(t, func(a, b *account) { move(a, b, a, b) }, back)
				}
			})
		})
	}
	if d := time.Since(began); d > time.Hour {
		t.Errorf("the clock is not that of the machine: %v", d)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// Expect: deadlock
func TestBugPart(t *testing.T) { partly(t, func(a, b *account) { move(b, a, b, a) }) }

func TestFixedPart(t *testing.T) { partly(t, func(a, b *account) { move(b, a, a, b) }) }
