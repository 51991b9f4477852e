package sim

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/coir-go/coir"
)

// intns are arguments for Intn, up to the largest int, whatever its size.
var intns = []int{1000, 1<<31 - 2, 1<<31 - 1, math.MaxInt>>(bits.UintSize/2) + 2, math.MaxInt >> 22, math.MaxInt>>1 + 2, math.MaxInt}

// Intn returns numbers in its range, whatever n is, and the same numbers when the decisions are made again.
//
// Spec: SM-02 (a schedule is its decisions)
// Spec: SM-03 (the same decisions give the same run)
func TestIntnOfAnyNumber(t *testing.T) {
	for name, strategy := range map[string]func(uint64) Strategy{
		"random": Random, "uniform": Uniform, "default": Default,
		"exhaustive": func(uint64) Strategy { return Exhaustive(-1) }, "dpor": func(uint64) Strategy { return DPOR() },
	} {
		for _, n := range intns {
			large := 0
			res := Explore(func(ctx context.Context, s *Sim) {
				for _, v := range []int{s.Intn(n), coir.Simulated(ctx).Intn(n)} {
					if v < 0 || v >= n {
						s.Errorf("Intn(%d) is %d", n, v)
					}
					if v > n/2 {
						large++
						_ = coir.Yield(ctx) // another run of the schedule must get here too
					}
				}
			}, WithStrategy(strategy), WithSchedules(200))
			if res.Failure != nil || res.Schedules != 200 || res.Complete {
				t.Errorf("%s, Intn(%d): %d schedules, complete %v: %v", name, n, res.Schedules, res.Complete, res.Failure)
			}
			if name == "random" && large == 0 {
				t.Errorf("%s, Intn(%d): no number is above the half of it", name, n)
			}
		}
	}
}

// A failure that needs a large number keeps it when it is made smaller, and its token draws it again.
//
// Spec: SM-05 (a token replays its schedule)
// Spec: SM-07 (a failing schedule is made smaller)
func TestATokenKeepsALargeNumber(t *testing.T) {
	for _, n := range intns {
		program := func(ctx context.Context, s *Sim) {
			for range 3 {
				_ = coir.Yield(ctx)
				if v := s.Intn(n); v > n/2 {
					s.Errorf("drew %d", v)
				}
			}
		}
		f := found(t, KindError, program, WithStrategy(Random))
		again, err := Replay(f.Token, program)
		if err != nil || again == nil || again.Text != f.Text {
			t.Errorf("Intn(%d): %q, and replayed: %v, %v", n, f.Text, again, err)
		}
		if f.Switches != 1 || f.unsure {
			t.Errorf("Intn(%d): %d decisions are not 0: %v", n, f.Switches, f)
		}
		says(t, f, fmt.Sprintf("intn %d → ", n))
	}
}

// Bytes makes numbers in the range, whatever the range is, and 0 when its data is used up.
func TestBytesOfAnyNumber(t *testing.T) {
	for _, n := range intns {
		choose := Bytes([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
		for range 20 {
			if v := choose(n); v < 0 || v >= n {
				t.Errorf("of %d: %d", n, v)
			}
		}
		if v := choose(n); v != 0 {
			t.Errorf("of %d, without data: %d", n, v)
		}
	}
}
