package flavor

// Every store compared with a slice, and then what a slice cannot show: that a place is cleared when its value is
// taken, that a ring wraps around, and that a list frees its memory.

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
	"weak"
)

// stores makes one store of each kind, with its limit.
func stores[T any]() []struct {
	name  string
	room  int
	store Store[T]
} {
	const any = 1 << 30
	type row = struct {
		name  string
		room  int
		store Store[T]
	}
	rows := []row{{"List", any, new(List[T])}}
	for _, n := range []int{1, 2, 3, 7, 64} {
		rows = append(rows, row{fmt.Sprintf("Ring(%d)", n), n, newRing[T](n)})
	}
	return rows
}

func newRing[T any](n int) *Ring[T] {
	r := new(Ring[T])
	r.Init(n)
	return r
}

// Random puts and takes, in stretches that fill the store and stretches that empty it.
//
// Spec: CH-02 (kinds differ in what they store)
// Spec: CH-08 (a receive takes the oldest)
// Spec: CH-21 (one sender's values stay in order)
func TestStoresAgainstASlice(t *testing.T) {
	steps := 20_000
	if testing.Short() {
		steps = 5_000
	}
	seed := rand.Uint64()
	for _, row := range stores[int]() {
		t.Run(row.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			s := row.store
			var held []int
			puts := 5 // of ten
			for i := range steps {
				if i%500 == 0 {
					puts = 1 + rnd.IntN(9)
				}
				ring, isRing := s.(*Ring[int])
				if isRing && len(held) == 0 && rnd.IntN(2) == 0 {
					ring.Passed() // has no visible effect
				}
				if rnd.IntN(10) < puts && len(held) < row.room {
					held = append(held, i)
					s.Put(i)
				} else if len(held) > 0 {
					if v := s.Take(); v != held[0] {
						t.Fatalf("seed %d, step %d: took %d, want %d", seed, i, v, held[0])
					}
					held = held[1:]
				}
				if isRing && !ring.Holds(len(held)) {
					t.Fatalf("seed %d, step %d: it does not hold %d values", seed, i, len(held))
				}
			}
		})
	}
}

// A ring is filled and emptied from each place at which it can begin.
//
// Spec: CH-08 (a receive takes the oldest)
func TestRingGoesRound(t *testing.T) {
	const n = 5
	for start := range 2 * n {
		for fill := range n + 1 {
			r := newRing[int](n)
			for range start {
				r.Put(-1)
				r.Take()
			}
			for i := range fill {
				r.Put(i)
				if !r.Holds(i + 1) {
					t.Fatalf("from %d: it does not hold the %d values that were put", start, i+1)
				}
			}
			for i := range fill {
				if v := r.Take(); v != i {
					t.Fatalf("from %d: took %d, want %d", start, v, i)
				}
			}
			if !r.Holds(0) {
				t.Fatalf("from %d: everything was taken, and it holds something", start)
			}
		}
	}
}

// places returns all places of a store, used or not.
func places[T any](s Store[T]) (all []T) {
	switch s := s.(type) {
	case *Ring[T]:
		return s.buf
	case *List[T]:
		for _, seg := range segments(s) {
			all = append(all, seg.vals...)
		}
	}
	return all
}

// segments returns all segments of a list.
func segments[T any](l *List[T]) (all []*segment[T]) {
	for _, s := range []*segment[T]{l.first, l.spare} {
		for ; s != nil; s = s.next {
			all = append(all, s)
		}
	}
	return all
}

// Only as many places are in use as there are values: a store does not keep taken values.
func TestTakenPlacesAreEmpty(t *testing.T) {
	for _, row := range stores[int]() {
		t.Run(row.name, func(t *testing.T) {
			s, held := row.store, 0
			for round := range 40 {
				for i := range min(13*round, row.room-held) {
					s.Put(1 + i)
					held++
				}
				for range min(11*round, held) {
					s.Take()
					held--
				}
				full := 0
				for _, v := range places(s) {
					if v != 0 {
						full++
					}
				}
				if full != held {
					t.Fatalf("round %d: %d places hold something, and there are %d values", round, full, held)
				}
			}
		})
	}
}

// A taken value can be collected while the store lives.
func TestTakenValuesAreCollected(t *testing.T) {
	type thing struct{ _ [64]byte }
	for _, row := range stores[*thing]() {
		t.Run(row.name, func(t *testing.T) {
			s := row.store
			var taken []weak.Pointer[thing]
			pass := func() { // in a frame of its own, so that no pointer stays on the stack
				held := 0
				for range 3 * smallest {
					p := new(thing)
					if held == row.room {
						s.Take()
						held--
					}
					s.Put(p)
					held++
					taken = append(taken, weak.Make(p))
				}
				for ; held > 0; held-- {
					s.Take()
				}
			}
			pass()
			for range 3 {
				runtime.GC()
			}
			for i, w := range taken {
				if w.Value() != nil {
					t.Errorf("value %d of %d is still there", i, len(taken))
				}
			}
			runtime.KeepAlive(s)
		})
	}
}

// After a burst a list keeps at most two segments: the one in use, and the one that was emptied last. This holds while
// the burst is taken, not only at its end.
func TestListGivesItsMemoryBack(t *testing.T) {
	l := new(List[int])
	const burst, largestLen = 100_000, largest / int(unsafe.Sizeof(int(0)))
	for i := range burst {
		l.Put(i)
	}
	for left := burst; left > 0; left-- {
		if left%1000 == 0 {
			// The values in use begin and end inside a segment, and one segment is spare.
			if got, most := len(places(l)), left+3*largestLen; got > most {
				t.Fatalf("there are %d values, and places for %d; want %d at most", left, got, most)
			}
		}
		l.Take()
	}
	if n := len(segments(l)); n > 2 {
		t.Errorf("empty, it keeps %d segments", n)
	}
	if n := len(places(l)); n > 2*largestLen {
		t.Errorf("empty, it keeps %d places", n)
	}
}

// Segments begin small, double, and stay below a size in bytes, but each has at least one place.
func TestSegmentsGrowUpToASize(t *testing.T) {
	check := func(name string, lens, want []int) {
		t.Helper()
		if fmt.Sprint(lens) != fmt.Sprint(want) {
			t.Errorf("%s: the segments have room for %v, want %v", name, lens, want)
		}
	}
	check("8 bytes each", grown[int64](4000), []int{8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024})
	check("2 KB each", grown[[2048]byte](15), []int{4, 4, 4, 4})
	check("1 MB each", grown[[1 << 20]byte](3), []int{1, 1, 1})
	check("no size", grown[struct{}](30), []int{8, 16, 32})
}

// grown returns the size of each segment after n puts.
func grown[T any](n int) (lens []int) {
	l := new(List[T])
	for range n {
		var v T
		l.Put(v)
	}
	for _, s := range segments(l) {
		lens = append(lens, len(s.vals))
	}
	return lens
}

// A list that alternates between empty and a few values allocates nothing.
func TestListAtRestAllocatesNothing(t *testing.T) {
	for _, few := range []int{1, smallest - 1, smallest, smallest + 1, 3 * smallest} {
		l := new(List[int])
		round := func() {
			for i := range few {
				l.Put(i)
			}
			for range few {
				l.Take()
			}
		}
		for range 10 {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%d at a time: %v allocations a round", few, n)
		}
	}
}
