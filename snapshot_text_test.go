package coir

import (
	"testing"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/snapshot"
)

// A snapshot reads a channel after the fiber that waits to send to it. If the channel has room by then, the text does
// not say that the channel is full.
func TestOnlyFullChannelsAreCalledFull(t *testing.T) {
	for held, want := range map[int]string{2: "to send to orders (full, 2 of 2)", 1: "to send to orders"} {
		o := met{Object: snapshot.Object{ID: 7, Name: "orders", Len: held, Cap: 2}, texts: map[wording]string{}}
		if got := o.text(snapshot.WaitSend, policy.Op{Kind: policy.Send}); got != want {
			t.Errorf("with %d of 2 values the wait is %q, want %q", held, got, want)
		}
	}
}
