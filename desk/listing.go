package desk

import (
	"cmp"
	"slices"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// describe describes the desk for a snapshot.
func (d *Desk[T]) describe(o *snapshot.Object) {
	st := d.Stats()
	o.Kind, o.Name, o.Len, o.Cap, o.High = "desk", d.name, st.Open, -1, st.High
	if d.places != nil {
		o.Cap = d.places.Cap()
	}
	for i := range d.shards {
		if s := d.shards[i].Load(); s != nil {
			o.Tickets = s.addOldest(o.Tickets)
		}
	}
	if o.Tickets = oldest(o.Tickets); len(o.Tickets) > 0 {
		o.Oldest = o.Tickets[0].Opened
	}
	if d.show != nil {
		d.show(o)
	}
}

// mostTickets is the largest number of a desk's open tickets in a snapshot.
const mostTickets = 100

// stamp records when the ticket in slot i was opened. The caller holds the lock.
func (s *shard[T]) stamp(i uint32) {
	for int(i/chunk) >= len(s.times) {
		s.times = append(s.times, new([chunk]time.Time))
	}
	s.times[i/chunk][i%chunk] = time.Now()
}

// addOldest adds the shard's tickets to the list and keeps the oldest. It holds the lock for one chunk at a time.
func (s *shard[T]) addOldest(to []snapshot.Ticket) []snapshot.Ticket {
	for from := uint32(0); ; from += chunk {
		s.lock.Lock()
		if from >= s.used {
			s.lock.Unlock()
			return to
		}
		for i := from; i < min(from+chunk, s.used); i++ {
			if t := s.at(i).ticket; t != nil {
				to = append(to, snapshot.Ticket{Name: t.Name(), Opened: s.times[i/chunk][i%chunk]})
			}
		}
		s.lock.Unlock()
		to = oldest(to)
	}
}

// oldest returns the tickets that were opened first, in order of time.
func oldest(all []snapshot.Ticket) []snapshot.Ticket {
	slices.SortStableFunc(all, func(a, b snapshot.Ticket) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), mostTickets)]
}
