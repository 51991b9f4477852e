package board

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/wait"
)

// owner counts how often its parker is readied.
type owner struct {
	park.Parker
	readied int
}

func newOwner() *owner {
	o := new(owner)
	o.Init(o)
	return o
}

func (o *owner) Ready(*park.Parker, park.Place) { o.readied++ }
func (o *owner) Late(*park.Parker)              {}

// asleep arms the owner's parker and commits it, as a caller that has parked.
func (o *owner) asleep() park.Ticket {
	t := o.Arm()
	o.Commit()
	return t
}

// TestReadyListAgainstSlice makes random calls, and compares the ready list with a slice.
func TestReadyListAgainstSlice(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := new(Board)
		var hooks, ready []*Hook
		for range 8 {
			hooks = append(hooks, NewHook(b))
		}
		for step := range 300 {
			h := hooks[rnd.IntN(len(hooks))]
			switch rnd.IntN(4) {
			case 0, 1:
				if asleep, gone := h.Push(); asleep != nil || gone {
					t.Fatalf("seed %d, step %d: Push returned %v, %v", seed, step, asleep, gone)
				}
				if !slices.Contains(ready, h) {
					ready = append(ready, h)
				}
			case 2:
				var want *Hook
				if len(ready) > 0 {
					want, ready = ready[0], ready[1:]
				}
				if got := b.Shift(); got != want {
					t.Fatalf("seed %d, step %d: Shift returned %p, want %p", seed, step, got, want)
				}
			case 3:
				b.Drop(h)
				ready = slices.DeleteFunc(ready, func(r *Hook) bool { return r == h })
			}
		}
		for _, want := range ready {
			if got := b.Shift(); got != want {
				t.Fatalf("seed %d: at the end Shift returned %p, want %p", seed, got, want)
			}
		}
		if b.Shift() != nil || b.first != nil || b.last != nil {
			t.Fatalf("seed %d: the list is not empty at the end", seed)
		}
	}
}

// TestPushEndsTheWait: a push ends the published wait, once. While a hook is on the list, no wait is published.
func TestPushEndsTheWait(t *testing.T) {
	b := new(Board)
	one, two := NewHook(b), NewHook(b)
	o := newOwner()
	if !b.Publish(&o.Parker, o.asleep()) {
		t.Fatal("an empty board did not let the caller wait")
	}
	if p, _ := one.Push(); p != &o.Parker {
		t.Fatal("the push of a hook did not end the wait")
	}
	if p, _ := two.Push(); p != nil {
		t.Fatal("a wait was ended twice")
	}
	if r := o.Reason(); r != park.Data {
		t.Fatalf("the wait ended for %v", r)
	}
	if b.Publish(&o.Parker, o.asleep()) {
		t.Fatal("a caller waits although there are hooks on the list")
	}
	o.Wake(currentTicket(o), park.Cancelled, nil)
	b.Drop(one)
	b.Drop(two)
	if !b.Publish(&o.Parker, o.asleep()) {
		t.Fatal("an empty board did not let the caller wait")
	}
	b.Withdraw()
	if p := b.WakeWaiter(); p != nil {
		t.Fatal("a wait that was withdrawn has been ended")
	}
}

func currentTicket(o *owner) park.Ticket {
	t, _ := o.Waiting()
	return t
}

// TestWatch: a channel pushes the hook when it becomes ready, until the watch ends or the board is gone.
func TestWatch(t *testing.T) {
	b := new(Board)
	c := new(channel.Chan[int])
	c.Init(1, nil, channel.Wait, nil)
	h := NewHook(b)
	if h.Watch(&c.Core, channel.Receiving) != nil || b.Shift() != nil {
		t.Fatal("an empty channel is ready to receive from")
	}
	c.Lock()
	c.Put(1)
	c.Unlock()
	if b.Shift() != h {
		t.Fatal("a value in the channel did not push the hook")
	}
	late := NewHook(b)
	late.Watch(&c.Core, channel.Receiving)
	if b.Shift() != late {
		t.Fatal("a channel that is ready did not push the hook")
	}
	c.Lock()
	c.Take()
	if !h.EndWatch(&c.Core, channel.Receiving) || h.EndWatch(&c.Core, channel.Receiving) || h.Watches() {
		t.Fatal("EndWatch ends a watch once")
	}
	c.Put(2)
	c.Unlock()
	if b.Shift() != late || b.Shift() != nil {
		t.Fatal("after EndWatch only the other hook is pushed")
	}
	b.Abandon()
	c.Lock()
	c.Take()
	c.Put(3)
	c.Unlock()
	if b.Shift() != nil || late.Watches() {
		t.Fatal("the channel keeps the hook of a board that is gone")
	}
}

// queue is an event.
type queue struct{ wait.Queue }

func (q *queue) Withdraw(n *wait.Node) { q.Queue.Withdraw(n) }

// TestEventsAndTimes: an event and a time push their hooks; Abandon withdraws those that have not happened.
func TestEventsAndTimes(t *testing.T) {
	b := new(Board)
	clk := clock.NewVirtual()
	e := new(queue)
	timed, late, pinned, other := NewHook(b), NewHook(b), NewHook(b), NewHook(b)
	timed.ArmTimer(clk, 10)
	late.ArmTimer(clk, 20)
	one, ticket := pinned.Pin(e)
	e.Push(&one.Node, &one.Parker, ticket)
	two, ticket := other.Pin(e)
	e.Push(&two.Node, &two.Parker, ticket)

	clk.Advance(10)
	if b.Shift() != timed || b.Shift() != nil {
		t.Fatal("the time did not push its hook, and no other")
	}
	b.Drop(timed)
	_, asleep := e.Shift().Claim(park.Data)
	asleep.MakeReady(nil)
	if b.Shift() != pinned || b.Shift() != nil {
		t.Fatal("the event did not push its hook, and no other")
	}
	b.Drop(pinned)
	b.Abandon()
	if clk.Len() != 0 || !e.Empty() {
		t.Fatalf("Abandon left %d timers and %d nodes", clk.Len(), e.Len())
	}
	runtime.KeepAlive(two)
}

// TestSlotsAgainstMap: the table finds what was placed, and uses its slots again.
func TestSlotsAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Slots[int]
	placed := make(map[int]*int)
	largest := 0
	for i := range 2000 {
		if len(placed) < 50 && rnd.IntN(2) == 0 {
			v := new(i)
			slot := s.Place(v)
			if placed[slot] != nil {
				t.Fatalf("slot %d is given twice", slot)
			}
			placed[slot] = v
			largest = max(largest, slot)
			continue
		}
		for slot, v := range placed {
			if s.Get(slot) != v {
				t.Fatalf("slot %d has another value", slot)
			}
			s.Remove(slot)
			if s.Get(slot) != nil {
				t.Fatalf("slot %d is not empty", slot)
			}
			delete(placed, slot)
			break
		}
	}
	if largest >= 128 {
		t.Errorf("50 values took slot %d", largest)
	}
}
