package coir

import (
	"testing"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// TestValueOfALostClaimIsTakenBack: a sender writes its value into the cell of a waiting receiver before it claims the
// wait. If a cancellation has won that claim, the sender still has the value, which is then stored or refused as if
// there were no receiver. The sender also clears the cell before it unlocks, so that the cell does not keep the value
// alive.
func TestValueOfALostClaimIsTakenBack(t *testing.T) {
	// Spec: PK-11 (a wake tells whether it won)
	// Spec: PK-31 (a lost claim takes its value back)
	// Spec: CH-26 (a failed send keeps its value)
	// Spec: CH-56 (a cancelled wait takes no value and no place)
	for _, capacity := range []int{0, 1, Unbounded, Conflated} {
		c := NewChan[*int](capacity)
		g := new(park.Guest)
		g.Init()
		kit := new(wait.Kit)
		cell := wait.SoloCell[*int](kit, c.ch.Cells())
		race.Disable()
		ticket := g.Arm()
		c.ch.Lock()
		c.ch.PublishRecv(cell, &g.Parker, ticket)
		c.ch.Unlock()
		g.Wake(ticket, park.Cancelled, nil) // but its cell is not unlinked yet
		race.Enable()

		v := new(int)
		err := c.TrySend(v)
		if cell.Value != nil {
			t.Errorf("capacity %d: the value stays in the cell of a receiver that was cancelled", capacity)
		}
		if stored := err == nil; stored != (capacity != 0) {
			t.Errorf("capacity %d: TrySend returned %v", capacity, err)
		}
		if got, err := c.TryRecv(); capacity != 0 && (got != v || err != nil) {
			t.Errorf("capacity %d: received %p, %v; sent %p", capacity, got, err, v)
		}
	}
}
