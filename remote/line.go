package remote

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/coir-go/coir"
)

// How a sender waits for room, and who wakes it.
//
// A send that is refused because the channel is full takes a place in the line of its end, and tells the receivers how
// many places there are ("want"). A receiver that has removed a value gives credit to one sender, in turn: only when
// the removal is stored, because credit that overtakes it wakes the sender in vain. Credit wakes the first of the line,
// which tries again.
//
// A removal that finds no want is noted as spare: a want that comes after it gets credit immediately. Otherwise a want
// that crosses the last removal would wait for the next, which may never come. How many such removals there were says
// nothing, because other senders use the room. So spare credit says "more": if the send succeeds, it wakes the next of
// its line, until one is refused. If its line is empty, that goes back to the receivers, for another sender. So does
// the credit of a send that gives up. Credit that finds an empty line is dropped: with several receivers a want gets
// credit of each, and what is not needed would go round for as long as the channel is full.
//
// A receiver that begins says so ("hello"), and the ends with a line tell it their wants.
//
// All these are hints, and may be lost: by the network, or because the receiver that had the want has crashed. So the
// first of a line tries from time to time without credit, and tells its want again. The others do not, so that 1000
// waiting sends of a process do not ask the broker 1000 times. Wants have a number, so that an old one that comes late
// changes nothing.
//
// Invariants:
//
//	L1 order:  a send that comes while there is a line joins its end.
//	L2 credit: credit that a send does not use, because it gives up, goes to the next of the line, or back.
//	L3 alive:  if the line is not empty, its first place has a timer, or is about to try.
//
// Rejected: credit to all senders. It woke all of them, for 3,540 refusals with 2,000 values. Rejected: a count of
// spare removals: it is wrong as soon as a sender that does not wait uses the room.

// line is the queue of sends of one end that wait for room.
type line struct {
	name   string
	cond   coir.Cond // guards what follows
	places []*place
	woken  uint64 // places that credit has woken
	wants  uint64 // messages about the line
}

// place is a place in the line.
type place struct {
	turn   *coir.Event // is set when it has credit
	credit bool        // the same; it is written by line.credit, before that, and read when it has left the line
	more   bool        // another may try after it
}

// late returns when a send that has credit, and is refused nevertheless, tries again: the removal that the credit is
// for may not have made room yet. With spare credit the channel may really be full.
func (p *place) late() time.Duration {
	if p.more {
		return lateMax
	}
	return lateMin
}

func (l *line) init(name string) { l.name = name }

// enter takes a place if there is a line, so that later sends do not overtake. It returns nil if there is none.
func (l *line) enter() *place {
	l.cond.Lock()
	defer l.cond.Unlock()
	if len(l.places) == 0 {
		return nil
	}
	return l.add(len(l.places))
}

// park takes a place for a send that was refused: the first, if it had credit, or else the last.
func (l *line) park(first bool) *place {
	l.cond.Lock()
	defer l.cond.Unlock()
	if first {
		return l.add(0)
	}
	return l.add(len(l.places))
}

func (l *line) add(at int) *place {
	p := &place{turn: coir.NewEvent(coir.WithName("room in " + l.name))}
	l.places = slices.Insert(l.places, at, p)
	return p
}

// len returns the number of places.
func (l *line) len() int {
	l.cond.Lock()
	defer l.cond.Unlock()
	return len(l.places)
}

func (l *line) credits() uint64 {
	l.cond.Lock()
	defer l.cond.Unlock()
	return l.woken
}

// message returns a message about the line for the receivers. unused says that it has credit that it does not need.
func (l *line) message(sender uint64, unused bool) []byte {
	l.cond.Lock()
	defer l.cond.Unlock()
	l.wants++
	return want{sender: sender, number: l.wants, places: uint32(len(l.places)), unused: unused}.message()
}

// credit wakes the first n of the line. It reports whether there were so many.
func (l *line) credit(n int, more bool) (used bool) {
	l.cond.Lock()
	used = n <= len(l.places)
	n = min(n, len(l.places))
	first := slices.Clone(l.places[:n])
	l.places = slices.Delete(l.places, 0, n)
	l.woken += uint64(n)
	for _, p := range first {
		p.credit, p.more = true, more
	}
	l.cond.Unlock()
	for _, p := range first {
		p.turn.Set()
	}
	return used
}

// end wakes all: the end was left. One that takes a place at this moment finds it out when it polls.
func (l *line) end() { l.credit(l.len(), true) }

// remove takes a place out of the line. It has left already if it has credit.
func (l *line) remove(p *place) {
	l.cond.Lock()
	defer l.cond.Unlock()
	if i := slices.Index(l.places, p); i >= 0 {
		l.places = slices.Delete(l.places, i, i+1)
	}
}

// isFirst reports whether p is the first of the line. If so, it leaves the line.
func (l *line) isFirst(p *place) bool {
	l.cond.Lock()
	defer l.cond.Unlock()
	if len(l.places) == 0 || l.places[0] != p {
		return false
	}
	l.places = l.places[1:]
	p.more = true
	return true
}

// wait waits until the place has credit, or is the first of the line and the poll time has passed. It returns an error
// if ctx ends first. In each case the place has left the line, and p.credit says whether it has credit.
func (l *line) wait(ctx context.Context, p *place, poll time.Duration) error {
	for {
		i, err := coir.Select(ctx, p.turn.DoneCase(), coir.After(poll))
		if err != nil {
			l.remove(p)
			return err
		}
		if i == 0 || l.isFirst(p) {
			return nil
		}
	}
}

// wants are the senders that wait for credit of a receiver, by turns.
type wants struct {
	senders []want
	spare   bool // a value was removed, and no sender wanted credit for it
}

// want is what a sender says about its line.
type want struct {
	sender uint64
	number uint64 // of the message
	places uint32
	unused bool // it had credit that it did not need
}

// set notes how many places a sender has. It returns a sender that gets credit.
func (w *wants) set(x want) (to uint64, ok bool) {
	i := slices.IndexFunc(w.senders, func(y want) bool { return y.sender == x.sender })
	switch {
	case i >= 0 && x.number <= w.senders[i].number: // it is old
	case i >= 0:
		w.senders[i] = x
	default:
		w.senders = append(w.senders, x)
	}
	w.senders = slices.DeleteFunc(w.senders, func(y want) bool { return y.places == 0 })
	if !w.spare && !x.unused {
		return 0, false
	}
	w.spare = false
	return w.take()
}

// take takes a want, in turn, or notes that there is spare credit.
func (w *wants) take() (to uint64, ok bool) {
	if len(w.senders) == 0 {
		w.spare = true
		return 0, false
	}
	x := w.senders[0]
	w.senders = w.senders[1:]
	if x.places--; x.places > 0 {
		w.senders = append(w.senders, x)
	}
	return x.sender, true
}

// The messages.

func creditSubject(sender uint64) string { return fmt.Sprintf("credit.%016x", sender) }

func wantSubject(name string) string { return "want." + name }

func helloSubject(name string) string { return "hello." + name }

func creditMessage(n int, more bool) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	if more {
		return append(b, 1)
	}
	return append(b, 0)
}

func parseCredit(b []byte) (n int, more, ok bool) {
	if len(b) != 5 {
		return 0, false, false
	}
	return int(binary.BigEndian.Uint32(b)), b[4] != 0, true
}

func (x want) message() []byte {
	b := binary.BigEndian.AppendUint64(nil, x.sender)
	b = binary.BigEndian.AppendUint64(b, x.number)
	b = binary.BigEndian.AppendUint32(b, x.places)
	if x.unused {
		return append(b, 1)
	}
	return append(b, 0)
}

func parseWant(b []byte) (x want, ok bool) {
	if len(b) != 21 {
		return x, false
	}
	return want{number(b[:8]), number(b[8:16]), binary.BigEndian.Uint32(b[16:]), b[20] != 0}, true
}
