package buf

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Goroutines take slots and put them back, while others shut and open the stack. No slot is held twice, and none is
// lost.
func TestStackHasEachSlotOnce(t *testing.T) {
	const size, turns = 7, 20_000
	slots := make([]slot, size)
	var s stack
	for i := range uint32(size) {
		s.push(slots, i)
	}
	var held [size]atomic.Bool
	var mu sync.Mutex
	var aside []uint32 // slots released while the stack is shut
	put := func(i uint32) {
		if !s.push(slots, i) {
			mu.Lock()
			aside = append(aside, i)
			mu.Unlock()
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range turns {
				i, ok := s.pop(slots)
				if !ok {
					continue
				}
				if held[i].Swap(true) {
					t.Errorf("slot %d is held twice", i)
				}
				held[i].Store(false)
				put(i)
			}
		})
	}
	wg.Go(func() {
		for range turns / 10 {
			all := s.close(slots)
			if n := s.len(slots); n != 0 {
				t.Errorf("a shut stack has %d slots", n)
			}
			s.open()
			mu.Lock()
			all, aside = append(all, aside...), nil
			mu.Unlock()
			for _, i := range all {
				put(i)
			}
		}
	})
	wg.Wait()
	for _, i := range aside {
		s.push(slots, i)
	}
	seen := make(map[uint32]bool)
	if n := s.len(slots); n != size {
		t.Errorf("%d slots of %d", n, size)
	}
	for i, ok := s.pop(slots); ok; i, ok = s.pop(slots) {
		seen[i] = true
	}
	if len(seen) != size {
		t.Errorf("%d different slots of %d", len(seen), size)
	}
}

// Taking a slot and putting it back changes the head: a pop that started before must not succeed and install the slot
// that was below then.
func TestStackHeadNeverComesBack(t *testing.T) {
	slots := make([]slot, 3)
	var s stack
	for i := range uint32(3) {
		s.push(slots, i)
	}
	seen := map[uint64]bool{s.head.Load(): true}
	look := func() {
		if h := s.head.Load(); seen[h] {
			t.Errorf("the head is %x again", h)
		} else {
			seen[h] = true
		}
	}
	for range 5 {
		a, _ := s.pop(slots)
		look()
		b, _ := s.pop(slots)
		look()
		s.push(slots, a)
		look()
		s.push(slots, b)
		look()
		all := s.close(slots)
		look()
		s.open()
		look()
		for _, i := range all {
			s.push(slots, i)
			look()
		}
	}
}
