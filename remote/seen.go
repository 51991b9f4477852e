package remote

import "container/list"

// seen remembers which values had their effect, so that a second delivery to the same process can be hidden. For each
// sender it stores the highest number seen, and a bit for each of the numbers just below. A value that it does not know
// counts as not seen. So it never hides a value that had no effect, but it may fail to hide a very late duplicate.
type seen struct {
	senders map[uint64]*list.Element // the elements of order
	order   list.List                // of *marks, the most recently used first
}

// The bounds of seen: the values of each sender, and the senders.
const (
	seenValues  = 1024
	seenSenders = 10_000
)

// marks holds the seen values of one sender.
type marks struct {
	sender uint64
	high   uint64 // the highest number seen
	bits   [seenValues / 64]uint64
}

// add records that a value was seen.
func (s *seen) add(id ID) {
	at, ok := s.senders[id.Sender]
	if !ok {
		if s.senders == nil {
			s.senders = map[uint64]*list.Element{}
		}
		if s.order.Len() >= seenSenders {
			last := s.order.Back()
			delete(s.senders, s.order.Remove(last).(*marks).sender)
		}
		at = s.order.PushFront(&marks{sender: id.Sender})
		s.senders[id.Sender] = at
	}
	s.order.MoveToFront(at)
	at.Value.(*marks).add(id.Seq)
}

// has reports whether a value is known to have been seen.
func (s *seen) has(id ID) bool {
	at, ok := s.senders[id.Sender]
	return ok && at.Value.(*marks).has(id.Seq)
}

func (m *marks) add(seq uint64) {
	switch {
	case seq >= m.high+seenValues:
		m.bits = [len(m.bits)]uint64{}
		m.high = seq
	case seq > m.high:
		for i := m.high + 1; i <= seq; i++ {
			m.bits[i/64%uint64(len(m.bits))] &^= 1 << (i % 64)
		}
		m.high = seq
	case seq+seenValues <= m.high:
		return // too old to be remembered
	}
	m.bits[seq/64%uint64(len(m.bits))] |= 1 << (seq % 64)
}

func (m *marks) has(seq uint64) bool {
	return seq <= m.high && seq+seenValues > m.high && m.bits[seq/64%uint64(len(m.bits))]&(1<<(seq%64)) != 0
}
