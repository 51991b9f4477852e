package remote

import (
	"math/rand/v2"
	"testing"
)

// seen is exact for the values that it knows: it never reports a value that was not seen, and it knows the last values
// of each sender.
func TestSeenAgainstAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s seen
	all, high := map[ID]bool{}, map[uint64]uint64{}
	for range 200_000 {
		id := ID{Sender: r.Uint64N(3), Seq: 1}
		switch top := high[id.Sender]; r.IntN(10) {
		case 0:
			id.Seq = top + 1 + r.Uint64N(3000)
		case 1, 2:
			id.Seq = top + 1
		default:
			id.Seq = top - min(top, r.Uint64N(2000))
		}
		recent := id.Seq+seenValues > high[id.Sender]
		if has := s.has(id); has && !all[id] || !has && all[id] && recent {
			t.Fatalf("%v: %v, and it is %v (recent %v)", id, has, all[id], recent)
		}
		if r.IntN(2) == 0 {
			s.add(id)
			all[id] = true
			high[id.Sender] = max(high[id.Sender], id.Seq)
		}
	}
}

// The number of senders is bounded. The least recently used sender is forgotten.
func TestSeenForgetsSenders(t *testing.T) {
	var s seen
	for i := range uint64(seenSenders) + 1 {
		s.add(ID{Sender: i, Seq: 1})
	}
	if len(s.senders) != seenSenders || s.has(ID{Sender: 0, Seq: 1}) || !s.has(ID{Sender: seenSenders, Seq: 1}) {
		t.Errorf("%d senders", len(s.senders))
	}
}
