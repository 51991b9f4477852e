package main

import (
	"maps"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// A snapshot contains counts. A rate is the difference of the counts of two snapshots. So past keeps a few numbers of
// each object and worker from earlier snapshots.

const (
	mostPoints  = 120    // the points of a curve: two minutes at the default interval
	mostTracked = 10_000 // the most objects that past tracks
)

// past is the data of earlier snapshots.
type past struct {
	pid     int
	taken   time.Time
	spawned rated
	objects map[uint64]*trail
	workers map[int]*labour
}

// rated is a count that grows, and its growth per second.
type rated struct {
	n   uint64
	at  time.Time
	per float64 // negative if unknown
}

// see adds a newer value of the count.
func (r *rated) see(n uint64, at time.Time) {
	d := at.Sub(r.at)
	switch {
	case r.at.IsZero() || n < r.n:
		r.per = -1
	case d <= 0:
		return
	default:
		r.per = float64(n-r.n) / d.Seconds()
	}
	r.n, r.at = n, at
}

// trail is the history of an object.
type trail struct {
	object         snapshot.Object // its last known state
	unseen         int             // the number of snapshots since then
	sent, received rated
	points         []point // the newest last
}

// point is the state of an object in one snapshot. Its numbers are negative if the object was not in the snapshot.
type point struct{ level, sent, received float64 }

// labour is the history of a worker.
type labour struct {
	ran   rated
	fiber uint64
	since time.Time // when it began to run this fiber, as far as the snapshots show
}

// level is the number that the curve of an object shows: the length of a channel with a buffer, or the number of fibers
// that wait for another object.
func level(o *snapshot.Object) float64 {
	if isChannel(o) && o.Cap != 0 {
		return float64(o.Len)
	}
	return float64(waiting(o))
}

// see adds a snapshot.
func (p *past) see(d *data) {
	if p.objects == nil || p.pid != d.Process.PID || d.Taken.Before(p.taken) { // the program was restarted
		*p = past{pid: d.Process.PID, objects: map[uint64]*trail{}, workers: map[int]*labour{}}
	}
	if !p.taken.IsZero() && !d.Taken.After(p.taken) { // the snapshot is not newer
		return
	}
	p.taken = d.Taken
	p.spawned.see(uint64(max(0, d.Process.Spawned)), d.Taken)
	for i := range d.Objects {
		o := &d.Objects[i]
		t := p.objects[o.ID]
		if t == nil {
			if len(p.objects) >= mostTracked {
				continue
			}
			t = &trail{}
			p.objects[o.ID] = t
		}
		t.object, t.unseen = *o, -1
		t.sent.see(o.Sent, d.Taken)
		t.received.see(o.Received, d.Taken)
		t.add(point{level(o), t.sent.per, t.received.per})
	}
	for id, t := range p.objects {
		t.unseen++
		switch {
		case t.unseen == mostPoints:
			delete(p.objects, id)
		case t.unseen > 0:
			t.add(point{-1, -1, -1})
		}
	}
	for i := range d.Workers {
		w := &d.Workers[i]
		l := p.workers[w.ID]
		if l == nil {
			l = &labour{}
			p.workers[w.ID] = l
		}
		before := l.ran.n
		l.ran.see(w.Beats, d.Taken)
		if l.since.IsZero() || l.fiber != w.Fiber || w.Beats != before {
			l.since = d.Taken
		}
		if !w.Since.IsZero() {
			l.since = w.Since
		}
		l.fiber = w.Fiber
	}
	maps.DeleteFunc(p.workers, func(_ int, l *labour) bool { return !l.ran.at.Equal(d.Taken) })
}

func (t *trail) add(p point) {
	if len(t.points) == mostPoints {
		copy(t.points, t.points[1:])
		t.points = t.points[:mostPoints-1]
	}
	t.points = append(t.points, p)
}

// curve returns one number for each point, and the largest number.
func (t *trail) curve(of func(point) float64) (values []float64, most float64) {
	for _, p := range t.points {
		v := of(p)
		values = append(values, v)
		most = max(most, v)
	}
	return values, most
}
