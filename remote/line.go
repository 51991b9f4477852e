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
// many places the line has ("want"). A receiver that has removed a value gives credit to one sender, in turn. It does
// so only when the removal is stored, because credit that overtakes the removal wakes the sender in vain. Credit wakes
// the first send of the line, which tries again.
//
// A removal that finds no want leaves spare credit: a want that comes later gets credit immediately. Otherwise a want
// that crosses the last removal would wait for another removal, which may never come. The number of such removals does
// not matter, because other senders use the room. So spare credit means "more": a send that succeeds with it wakes the
// next send of its line, until a send is refused. When the line has become empty, the credit goes back to the
// receivers, for another sender. So does the credit of a send that gives up. Credit that finds an empty line is
// dropped: with several receivers, a want gets credit from each of them, and unused credit would circulate for as long
// as the channel is full.
//
// A receiver announces itself when it begins ("hello"), and ends whose line is not empty send it their wants.
//
// All these messages are hints, and may be lost: by the network, or because the receiver that had the want has crashed.
// So the first send of a line tries from time to time without credit, and repeats the want. The other sends do not, so
// that 1000 waiting sends of a process do not make 1000 requests. Wants are numbered, so that an old want that arrives
// late changes nothing.
//
// Invariants:
//
//	L1 order:  a send that begins while the line is not empty joins its end.
//	L2 credit: the credit of a send that gives up goes to the next send of the line, or back to the receivers.
//	L3 alive:  if the line is not empty, its first place has a timer, or is about to try.
//
// Rejected: credit to all senders. It woke all of them, so 2,000 values were refused 3,540 times. Rejected: a count of
// spare removals. The count is wrong as soon as a sender uses the room without waiting.

// line is the queue of sends of one end that wait for room.
type line struct {
	name   string
	cond   coir.Cond // guards the fields below
	places []*place
	woken  uint64 // places that credit has woken
	wants  uint64 // messages about the line
}

// place is a place in the line.
type place struct {
	turn   *coir.Event // set when the place has credit
	credit bool        // the place has credit; written before turn is set, and read after the place has left the line
	more   bool        // another send may try after this one
}

// late returns how soon a send that had credit and was refused tries again. The removal that gave the credit may not
// have made room yet. With spare credit, the channel may really be full.
func (p *place) late() time.Duration {
	if p.more {
		return lateMax
	}
	return lateMin
}

func (l *line) init(name string) { l.name = name }

// enter takes a place if the line is not empty, so that a send does not overtake those that wait. Otherwise it returns
// nil.
func (l *line) enter() *place {
	l.cond.Lock()
	defer l.cond.Unlock()
	if len(l.places) == 0 {
		return nil
	}
	return l.add(len(l.places))
}

// park takes a place for a send that was refused: the first place if the send had its turn, and otherwise the last.
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

// message returns a message about the line for the receivers. unused means that the line has credit that it does not
// need.
func (l *line) message(sender uint64, unused bool) []byte {
	l.cond.Lock()
	defer l.cond.Unlock()
	l.wants++
	return want{sender: sender, number: l.wants, places: uint32(len(l.places)), unused: unused}.message()
}

// credit wakes the first n sends of the line. It reports whether the line had at least n.
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

// end wakes all sends, because the end was left. A send that takes a place at this moment notices when it polls.
func (l *line) end() { l.credit(l.len(), true) }

// remove takes a place out of the line. A place that has credit has left the line already.
func (l *line) remove(p *place) {
	l.cond.Lock()
	defer l.cond.Unlock()
	if i := slices.Index(l.places, p); i >= 0 {
		l.places = slices.Delete(l.places, i, i+1)
	}
}

// isFirst reports whether p is the first place of the line. If so, p leaves the line.
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

// wait waits until the place has credit, or until it is the first of the line and the poll time has passed. It returns
// an error if ctx ends first. In each case the place has left the line, and p.credit says whether it has credit.
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

// wants holds the senders that wait for credit from a receiver. They get it in turn.
type wants struct {
	senders []want
	spare   bool // a value was removed, and no sender wanted credit for it
}

// want says how many places the line of a sender has.
type want struct {
	sender uint64
	number uint64 // of the message
	places uint32
	unused bool // the sender had credit that it did not need
}

// set records a want. It returns the sender that gets credit, if there is one.
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

// take returns the sender whose turn it is, or records spare credit if no sender waits.
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
