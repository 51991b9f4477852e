package clock

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// Both sides of a comparison run in one loop, in turns, and the median of the turns counts, so that a noisy neighbour
// affects both sides, and neither for long.

const (
	outstanding = 1_000_000
	turn        = 1000 // operations a side and turn
)

// BenchmarkArmStop: a deadline that is armed and then not needed, as most timeouts are, with a million others
// outstanding, of coir and of Go. The deadlines are random over an hour, so each arming meets a slot, and a neighbour
// in its list, that are not in the cache. "same" has the same delay for all, as a service has for its requests.
func BenchmarkArmStop(b *testing.B) {
	c := NewReal()
	defer c.Close()
	target := &counter{}
	others := make([]Timer, outstanding)
	goOthers := make([]*time.Timer, outstanding)
	for i := range others {
		d := time.Hour + rand.N(time.Hour)
		c.Arm(&others[i], int64(d), target, 0)
		goOthers[i] = time.AfterFunc(d, func() {})
	}
	b.Cleanup(func() {
		for _, t := range goOthers {
			t.Stop()
		}
	})
	for _, mode := range []struct {
		name  string
		delay func() time.Duration
	}{
		{"same", func() time.Duration { return 90 * time.Minute }},
		{"random", func() time.Duration { return time.Hour + rand.N(time.Hour) }},
	} {
		b.Run(mode.name, func(b *testing.B) {
			b.ReportAllocs()
			var timer Timer
			var ours, theirs []float64
			var delays [turn]time.Duration
			for n := 0; n < b.N; n += turn {
				for i := range delays {
					delays[i] = mode.delay()
				}
				begin := time.Now()
				for _, d := range delays {
					c.Arm(&timer, int64(d), target, 0)
					c.Stop(&timer)
				}
				middle := time.Now()
				for _, d := range delays {
					time.AfterFunc(d, func() {}).Stop()
				}
				theirs = append(theirs, float64(time.Since(middle))/turn)
				ours = append(ours, float64(middle.Sub(begin))/turn)
			}
			b.ReportMetric(median(ours), "coir-ns")
			b.ReportMetric(median(theirs), "go-ns")
			b.ReportMetric(median(ours)/median(theirs), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("allocs", func(b *testing.B) { // ours alone: the figure above counts Go's
		b.ReportAllocs()
		var timer Timer
		for b.Loop() {
			c.Arm(&timer, int64(90*time.Minute), target, 0)
			c.Stop(&timer)
		}
	})
	b.Run("with-now", func(b *testing.B) { // as a caller does it
		b.ReportAllocs()
		var timer Timer
		for b.Loop() {
			c.Arm(&timer, c.Now()+int64(90*time.Minute), target, 0)
			c.Stop(&timer)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			var timer Timer
			for pb.Next() {
				c.Arm(&timer, int64(90*time.Minute), target, 0)
				c.Stop(&timer)
			}
		})
	})
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkArmFire is the whole life of a timer, a million at once, in virtual time: dense, where a slot holds many
// timers and splitting sorts them, and sparse.
func BenchmarkArmFire(b *testing.B) {
	for _, span := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
		b.Run(span.String(), func(b *testing.B) {
			v := NewVirtual()
			target := &counter{}
			timers := make([]Timer, outstanding)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += outstanding {
				count := min(outstanding, b.N-n)
				for i := range count {
					v.Arm(&timers[i], v.Now()+rand.Int64N(int64(span)), target, 0)
				}
				v.Advance(span)
			}
			if target.expired != b.N {
				b.Fatalf("%d of %d fired", target.expired, b.N)
			}
		})
	}
}

type doneTarget struct{ done sync.WaitGroup }

func (d *doneTarget) Expire(uint64) { d.done.Done() }

// BenchmarkSleepers counts the passes that 100,000 random deadlines over a second of real time cost.
func BenchmarkSleepers(b *testing.B) {
	c := NewReal()
	defer c.Close()
	timers := make([]Timer, 100_000)
	target := &doneTarget{}
	for b.Loop() {
		now := c.Now()
		target.done.Add(len(timers))
		for i := range timers {
			c.Arm(&timers[i], now+rand.Int64N(int64(time.Second)), target, 0)
		}
		target.done.Wait()
	}
	b.ReportMetric(float64(c.Passes())/float64(b.N), "passes/op")
}
