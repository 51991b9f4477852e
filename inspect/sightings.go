package inspect

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// A lock and a pool do not record when they were taken: reading the clock would take longer than to lock. So the age of
// a hold is not in a snapshot. But a Watch and the requests to a handler take many snapshots, and remember since when
// each of them has shown the same holder. They share what they remember of a source: so the first request to a handler
// has the ages that a Watch knows.

const (
	leastSighted  = time.Second // the least age that is worth showing
	sightingKept  = time.Minute // how long an object is remembered that is not in the snapshots
	mostSightings = 10_000      // the most objects of a source that are remembered
)

// sightings remembers the holders of the objects of a source.
type sightings struct {
	users int // guarded by shared.mu

	mu      sync.Mutex
	last    time.Time // of the newest snapshot
	objects map[uint64]sighting
}

// sighting is what was seen of an object.
type sighting struct {
	at      time.Time // the last snapshot that showed it
	holders []held
	waited  time.Time // since when it was waited for; zero if it was not
}

type held struct {
	by    uint64
	since time.Time
}

// shared has the sightings of the sources that are looked at.
var shared = struct {
	mu sync.Mutex
	of map[Source]*sightings
}{of: map[Source]*sightings{}}

// sightingsOf returns the sightings of a source, which the caller must release.
func sightingsOf(of Source) *sightings {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	alone := !reflect.ValueOf(of).Comparable() // it cannot be a key
	var s *sightings
	if !alone {
		s = shared.of[of]
	}
	if s == nil {
		s = &sightings{objects: map[uint64]sighting{}}
	}
	if !alone {
		shared.of[of] = s
	}
	s.users++
	return s
}

// release ends the use of the sightings of a source. They are forgotten with the last user.
func (s *sightings) release(of Source) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if s.users--; s.users == 0 && reflect.ValueOf(of).Comparable() {
		delete(shared.of, of)
	}
}

// look remembers who holds the objects of a snapshot, and sets HeldSince and WaitedSince of the objects. Nothing is
// known if s is nil.
func (s *sightings) look(now *snapshot.Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := !now.Taken.Before(s.last) // not so if two snapshots were taken at the same time
	if newest {
		s.last = now.Taken
	}
	for i := range now.Objects {
		o := &now.Objects[i]
		was, known := s.objects[o.ID]
		is := was.next(o, now.Taken)
		is.show(o)
		switch {
		case !newest:
		case len(is.holders) == 0 && is.waited.IsZero():
			delete(s.objects, o.ID)
		case known || len(s.objects) < mostSightings:
			s.objects[o.ID] = is
		}
	}
	for id, x := range s.objects {
		if newest && now.Taken.Sub(x.at) > sightingKept {
			delete(s.objects, id)
		}
	}
}

// next returns the sighting of an object in the snapshot taken at a time. A holder that holds several values keeps the
// ages of as many as it has, the oldest first, because a pool lists loans in the order in which they were made.
func (x *sighting) next(o *snapshot.Object, at time.Time) sighting {
	is := sighting{at: at}
	before := slices.Clone(x.holders)
	for _, by := range o.Holders {
		one := held{by, at}
		if k := slices.IndexFunc(before, func(h held) bool { return h.by == by }); k >= 0 {
			one = before[k]
			before = slices.Delete(before, k, k+1)
		}
		is.holders = append(is.holders, one)
	}
	if o.Senders+o.Receivers+o.Waiters > 0 && (len(o.Holders) > 0 || o.Kind == "ticket") {
		if is.waited = x.waited; is.waited.IsZero() {
			is.waited = at
		}
	}
	return is
}

// show sets what a sighting says of an object.
func (x *sighting) show(o *snapshot.Object) {
	o.HeldSince, o.WaitedSince = nil, time.Time{}
	if !x.waited.IsZero() && x.at.Sub(x.waited) >= leastSighted {
		o.WaitedSince = x.waited
	}
	if !slices.ContainsFunc(x.holders, func(h held) bool { return x.at.Sub(h.since) >= leastSighted }) {
		return
	}
	for _, h := range x.holders {
		if x.at.Sub(h.since) < leastSighted {
			h.since = time.Time{}
		}
		o.HeldSince = append(o.HeldSince, h.since)
	}
}
