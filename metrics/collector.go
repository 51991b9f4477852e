package metrics

import (
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

const (
	fresh      = 500 * time.Millisecond // how long scrapes share their numbers
	mostFibers = 100_000                // how many fibers a scrape reads
)

// source is the part of a runtime that a Collector reads.
type source interface {
	Stats() coir.Stats
	Snapshot(o snapshot.Options) *snapshot.Snapshot
}

// Collector reads the metrics of a runtime. Several goroutines may use it at the same time.
type Collector struct {
	of source

	mu      sync.Mutex // held during a scrape
	samples []Sample   // the last samples, which do not change; nil before the first scrape
	made    time.Time  // when they were complete
	scrapes int64
	groups  groups
	last    kept // the snapshot of the last scrape
	first   kept // taken just before the snapshot of a scrape
	next    kept // memory for the next scrape
}

// New returns a collector for a runtime. Any number of exporters can share one collector.
func New(of *coir.Runtime) *Collector { return newCollector(of) }

func newCollector(of source) *Collector { return &Collector{of: of, groups: newGroups()} }

// Samples returns the metrics. They are less than half a second old. The caller must not change them. If another call
// is computing them, Samples waits for it.
func (c *Collector) Samples() []Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.samples == nil || time.Since(c.made) >= fresh {
		c.samples = c.scrape()
		c.made = time.Now()
	}
	return c.samples
}

// scrape makes new samples. The caller holds c.mu.
func (c *Collector) scrape() []Sample {
	c.scrapes++
	v := &view{
		began: time.Now(), scrapes: c.scrapes,
		states: map[snapshot.State]int{}, waits: map[snapshot.WaitKind]waited{}, told: map[explanation]int{},
	}
	c.first.reset()
	n := 0
	c.first.keep(c.of.Snapshot(snapshot.Options{Each: func(f *snapshot.Fiber) bool {
		if n++; n > mostKept { // keep no more
			return false
		}
		c.first.add(f)
		return true
	}}), n)
	c.next.reset()
	s := c.of.Snapshot(snapshot.Options{Each: func(f *snapshot.Fiber) bool {
		if v.looked == mostFibers {
			v.cut = true
			return false
		}
		v.fiber(f)
		c.next.add(f)
		return true
	}})
	v.stats = c.of.Stats() // after the snapshot, so that fibers that ended meanwhile are included
	v.rest(s)
	v.groups = c.groups.count(s.Objects, v.began)

	c.next.keep(s, v.looked+v.omitted)
	// A deadlock that began after the last scrape is in the snapshot taken just before. Problems that must last for
	// some time to be reported, such as a fiber that does not yield, are found by comparing with the last scrape.
	for _, earlier := range []*snapshot.Snapshot{c.last.s, c.first.s} {
		told := map[explanation]int{}
		for _, e := range snapshot.Explain(earlier, c.next.s) {
			certainty := "likely"
			if e.Certain {
				certainty = "certain"
			}
			told[explanation{e.Kind, certainty}]++
		}
		for e, n := range told {
			v.told[e] = max(v.told[e], n)
		}
	}
	c.last, c.next = c.next, c.last

	samples := make([]Sample, 0, len(c.samples)+16)
	for i := range table {
		r := &table[i]
		r.read(v, func(value float64, labels ...string) {
			samples = append(samples, Sample{Name: r.Name, Labels: labels, Value: value})
		})
	}
	return samples
}

// view has the results of a scrape.
type view struct {
	began   time.Time
	taken   time.Time // when the snapshot was started; ages are relative to it
	scrapes int64
	stats   coir.Stats

	states  map[snapshot.State]int
	waits   map[snapshot.WaitKind]waited
	looked  int  // how many fibers were read
	cut     bool // there were more fibers
	omitted int

	goroutines int // how many goroutines that are not fibers wait

	open, cancelled int // how many nurseries are open, and how many are cancelled
	told            map[explanation]int
	groups          []*group
}

// waited counts the waits of one kind.
type waited struct {
	n      int
	oldest time.Time
}

// fiber counts a fiber.
func (v *view) fiber(f *snapshot.Fiber) {
	if f.State == snapshot.StateGoroutine {
		v.goroutines++
		return
	}
	v.looked++
	v.states[f.State]++
	if f.State != snapshot.StateWaiting {
		return
	}
	kind := snapshot.WaitUse
	switch {
	case len(f.Wait) > 1:
		kind = choice
	case len(f.Wait) == 1:
		kind = f.Wait[0].Kind
	}
	w := v.waits[kind]
	w.n++
	w.oldest = earlier(w.oldest, f.Since)
	v.waits[kind] = w
}

// rest counts everything in a snapshot except fibers.
func (v *view) rest(s *snapshot.Snapshot) {
	v.taken = s.Taken
	if v.cut {
		v.omitted = max(1, int(v.stats.Spawned-v.stats.Ended)-v.looked)
	}
	for i := range s.Nurseries {
		if s.Nurseries[i].Ended {
			v.cancelled++
		} else {
			v.open++
		}
	}
}

// age returns the number of seconds since at, or 0 if at is zero.
func (v *view) age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, v.taken.Sub(at).Seconds())
}

// earlier returns the earlier of two times. A zero time means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
