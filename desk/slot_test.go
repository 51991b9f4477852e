package desk

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/soak"
)

// A slot whose generations are used up is not reused, because its locators would repeat.
//
// Spec: TK-15 (an old id never reaches a new ticket)
func TestSlotRetires(t *testing.T) {
	d := New[int](WithName("replies"))
	ctx := context.Background()
	first, err := d.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first.Cancel()
	s := d.shard(0)
	s.at(0).generation = maxGeneration - 1
	var last *Ticket[int]
	for range 3 * chunk {
		tk, err := d.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if tk.id.slot() == 0 {
			if last != nil {
				t.Fatal("the slot is used again")
			}
			last = tk
		}
		tk.Cancel()
	}
	if last == nil || last.id.generation() != maxGeneration {
		t.Fatal("the last generation was not used")
	}
	if err := d.Resolve(last.id, 1); !errors.Is(err, ErrLate) {
		t.Errorf("the slot has forgotten its last ticket: %v", err)
	}
}

// If a shard has no free slots, the ticket gets a slot in the next shard.
func TestFullShardPassesOn(t *testing.T) {
	d := New[int](WithName("replies"))
	s := d.shard(0)
	s.used = maxSlots
	tk, err := d.Open(context.Background())
	if err != nil || tk.id.shard() != 1 {
		t.Fatalf("it is in shard %d, %v", tk.id.shard(), err)
	}
	if err := d.Resolve(tk.id, 1); err != nil {
		t.Error(err)
	}
}

// Invariant S3: the desk remembers how each of the last tickets ended.
//
// Spec: TK-08 (late, unknown and duplicate completions differ)
func TestEndsAreRemembered(t *testing.T) {
	d := New[int](WithName("replies"))
	ctx := context.Background()
	var ids []ID
	for i := range 10 * chunk {
		tk, err := d.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := ErrLate
		if i%2 == 0 {
			want = ErrDuplicate
			if err := d.Resolve(tk.id, 1); err != nil {
				t.Fatal(err)
			}
		} else {
			tk.Cancel()
		}
		ids = append(ids, tk.id)
		if old := i - remembered; old >= 0 {
			if i%2 != old%2 {
				t.Fatal("the test looks at the wrong ticket")
			}
			if err := d.Resolve(ids[old], 1); !errors.Is(err, want) {
				t.Fatalf("%v of ticket %d after ticket %d", err, old, i)
			}
		}
	}
}

// Groups are stopped when they become empty, and reused.
func TestGroupsAreUsedAgain(t *testing.T) {
	d := New[int](WithName("replies"))
	var all []*Ticket[int]
	for range 3 {
		for range 2 * chunk {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			tk, err := d.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tk)
		}
		for _, tk := range all {
			tk.Cancel()
		}
	}
	s := d.shard(0)
	n := 0
	for g := s.spare; g != nil; g = g.next {
		n++
	}
	if n != s.spares || n > chunk || n == 0 {
		t.Errorf("%d groups are kept, and %d counted", n, s.spares)
	}
}

// The time to compare nonces does not depend on where they differ. The test is Welch's t-test over two sets of wrong
// ids, as in "Dude, is my code constant time?". The reason is that the code has no branch between the two loads and the
// result. The test is for make soak: on a busy machine it needs many samples.
func TestNonceTakesConstantTime(t *testing.T) {
	if !soak.On() {
		t.Skip("for make soak")
	}
	const nonce, batch, samples = 0x0123456789abcdef, 1000, 20_000
	wrong := [2]uint64{nonce ^ 1<<63, nonce ^ 1} // differ in the highest bit, in the lowest bit
	var took [2][]float64
	for i := range 2 * samples {
		begin := time.Now()
		for range batch {
			if sameNonce(nonce, wrong[i%2]) {
				t.Fatal("equal")
			}
		}
		took[i%2] = append(took[i%2], float64(time.Since(begin)))
	}
	var mean, variance [2]float64
	for k := range took {
		slices.Sort(took[k])
		took[k] = took[k][:samples*9/10] // the slowest tenth was interrupted
		for _, x := range took[k] {
			mean[k] += x / float64(len(took[k]))
		}
		for _, x := range took[k] {
			variance[k] += (x - mean[k]) * (x - mean[k]) / float64(len(took[k])-1)
		}
	}
	n := float64(len(took[0]))
	score := (mean[0] - mean[1]) / math.Sqrt(variance[0]/n+variance[1]/n)
	t.Logf("%.1f ns and %.1f ns a thousand, t = %.2f", mean[0], mean[1], score)
	if math.Abs(score) > 10 {
		t.Errorf("t = %.2f: how long it takes depends on the nonce", score)
	}
}
