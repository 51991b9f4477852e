package buf

import (
	"math/rand/v2"
	"testing"
)

// Random transitions of one state: an ownership that has ended never returns, except to an owner whose hand-over
// failed, and no generation is issued twice.
func TestGenerationsAreIssuedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s state
		s.init(firstGen)
		issued := map[uint64]bool{firstGen: true}
		owners := []uint64{firstGen} // the last one owns the buffer; the others wait for their hand-overs to end
		var ended []uint64
		for range 300 {
			now := owners[len(owners)-1]
			for _, g := range ended {
				if s.valid(g) || s.pin(g) != stale {
					t.Fatalf("generation %d has ended, and is valid: %x", g, s.word.Load())
				}
			}
			if !s.valid(now) {
				t.Fatalf("generation %d owns, and is not valid: %x", now, s.word.Load())
			}
			switch rng.IntN(4) {
			case 0, 1: // begin a hand-over
				next, o := s.end(now)
				if o != done || issued[next] {
					t.Fatalf("end: %v, %d issued again: %v", o, next, issued[next])
				}
				issued[next] = true
				owners = append(owners, next)
			case 2: // a hand-over fails
				if len(owners) > 1 {
					before := owners[len(owners)-2]
					if o := s.restore(now, before); o != done {
						t.Fatalf("restore: %v", o)
					}
					owners, ended = owners[:len(owners)-1], append(ended, now)
				}
			case 3: // all hand-overs succeed
				ended = append(ended, owners[:len(owners)-1]...)
				owners = []uint64{now}
			}
			if len(ended) > 50 {
				ended = ended[1:]
			}
		}
	}
}

// A pinned ownership does not end, and is not restored.
func TestPinnedOwnershipDoesNotEnd(t *testing.T) {
	var s state
	s.init(firstGen)
	if s.pin(firstGen) != done {
		t.Fatal("cannot pin")
	}
	if _, o := s.end(firstGen); o != busy {
		t.Errorf("end of a pinned ownership: %v", o)
	}
	s.unpin()
	next, o := s.end(firstGen)
	if o != done {
		t.Fatal(o)
	}
	if s.pin(firstGen) != stale || s.pin(next) != done {
		t.Error("the new generation does not own")
	}
	if o := s.restore(next, firstGen); o != busy {
		t.Errorf("restore of a pinned ownership: %v", o)
	}
	s.unpin()
	for range maxPins {
		if s.pin(next) != done {
			t.Fatal("too few pins")
		}
	}
	if o := s.pin(next); o != busy {
		t.Errorf("one pin too many: %v", o)
	}
}

// If more hand-overs fail than the word can count, the owner still has its buffer.
func TestManyFailuresKeepTheOwner(t *testing.T) {
	var s state
	s.init(firstGen)
	for range maxFailures + 10 {
		next, o := s.end(firstGen)
		if o != done || s.restore(next, firstGen) != done || !s.valid(firstGen) || s.valid(next) {
			t.Fatalf("%v, %x", o, s.word.Load())
		}
	}
	if next, _ := s.end(firstGen); next != firstGen+1+maxFailures {
		t.Errorf("%d follows", next)
	}
}
