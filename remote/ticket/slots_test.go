package ticket

import (
	"testing"
	"time"

	"github.com/coir-go/coir/desk"
)

// A slot is used again when its tokens have expired, or when many others have ended after it. Then an answer to its old
// ticket is too late.
func TestASlotIsUsedAgain(t *testing.T) {
	var s slots
	now := time.Unix(1000, 0)
	first, one := s.open(desk.ID{}, now.Add(time.Hour), now)
	if _, c := s.claim(first, one, keyHash{1}); c != won {
		t.Error(c)
	}
	s.end(first, one, true)
	for i := range remembered {
		x, generation := s.open(desk.ID{}, now.Add(time.Hour), now)
		if x == first {
			t.Fatalf("the slot is used again when %d others have ended", i)
		}
		s.end(x, generation, false)
	}
	if _, c := s.claim(first, one, keyHash{1}); c != duplicate {
		t.Error(c)
	}
	again, two := s.open(desk.ID{}, now.Add(time.Second), now)
	if again != first || two == one {
		t.Errorf("slot %d, generation %d", again, two)
	}
	for _, key := range []keyHash{{1}, {2}} {
		if _, c := s.claim(first, one, key); c != gone {
			t.Errorf("an answer to the old ticket: %v", c)
		}
	}
	if _, c := s.claim(again, two, keyHash{1}); c != won {
		t.Error(c)
	}
	if _, c := s.claim(1<<31, 1, keyHash{1}); c != gone {
		t.Error(c)
	}
	used := s.used
	for range 10 {
		now = now.Add(2 * time.Hour)
		x, generation := s.open(desk.ID{}, now.Add(time.Second), now)
		s.end(x, generation, false)
	}
	if s.used != used {
		t.Errorf("%d slots, although tokens have expired; it were %d", s.used, used)
	}
}

// A slot that has had all generations is not used again.
func TestGenerationsEnd(t *testing.T) {
	var s slots
	now := time.Unix(1000, 0)
	i, _ := s.open(desk.ID{}, now, now)
	s.at(i).generation = 1<<32 - 1
	s.end(i, 1<<32-1, false)
	if j, _ := s.open(desk.ID{}, now, now); j == i {
		t.Error("the slot is used again")
	}
}
