package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/coir-go/coir"
)

// The sequential specification of one or two channels says what each operation does when no other operation runs.
//
// An operation that waits cannot be one step of a sequential specification, because another operation completes it. So
// it has two steps, as in the dual data structures of Scherer and Scott:
//
//	begin  It checks its channels. If it need not wait, it does its work. Otherwise it joins the queues of its channels,
//	       where other operations see it.
//	end    It has been completed by now; or it gives up, and is no longer in any queue.
//
// The operation that completes a waiting operation does so in one of its own steps: a receive that finds a sender in
// the queue takes the value from it. So both sides of a rendezvous share one moment, the begin of the second operation.
// That moment is in the interval of each side, because the other side's begin comes before it and its end after. No
// pairing of operations is needed or assumed. A close leaves the senders in the queue: senders that joined the queue
// before it are still delivered, and later senders are refused.
//
// The begin of an operation may be anywhere in its interval, and so may the end of one that gives up. The end of an
// operation that succeeded is its return. An operation whose context had already ended when it checked was never in a
// queue: then its end comes before its begin, and the begin does nothing. It is not recorded which of the two happened,
// so both orders are tried.
//
// The results of all operations are known when a history is judged. So a step that passes a value to a waiting
// operation is wrong at once if that operation did not return this value.

// verb is the kind of an operation.
type verb uint8

const (
	doSend verb = iota
	doRecv
	doTrySend
	doTryRecv
	doSendTimeout
	doRecvTimeout
	doSelect
	doSelectPriority
	doTrySelect
	doClose
	doAbort
	doCancel
	doLen
	doStats
)

func (v verb) String() string {
	return [...]string{"Send", "Recv", "TrySend", "TryRecv", "SendTimeout", "RecvTimeout", "Select", "SelectPriority",
		"TrySelect", "Close", "Abort", "cancel", "Len", "Stats"}[v]
}

// result is how an operation ended.
type result uint8

const (
	gotOK result = iota
	gotClosed
	gotWouldBlock
	gotTimeout
	gotCancel
)

func (r result) String() string {
	return [...]string{"ok", "closed", "would block", "timed out", "cancelled"}[r]
}

type clauseKind uint8

const (
	clauseSend clauseKind = iota
	clauseRecv
	clauseAfter // a time
	clauseNever // the zero Case
)

// clause is a case of a select. Every send and every receive is a select with one clause.
type clause struct {
	kind  clauseKind
	ch    int
	value int
	time  time.Duration
}

func (c clause) String() string {
	switch c.kind {
	case clauseSend:
		return fmt.Sprintf("%c<-%d", 'a'+c.ch, c.value)
	case clauseRecv:
		return fmt.Sprintf("<-%c", 'a'+c.ch)
	case clauseAfter:
		return fmt.Sprintf("after %v", c.time)
	}
	return "never"
}

// operation is one call: its plan and its result.
type operation struct {
	id       int
	client   int
	verb     verb
	ch       int // of verbs that are not selects
	clauses  []clause
	limit    time.Duration // of SendTimeout and RecvTimeout
	slot     int           // the context under which it runs, or which it cancels; own is the client's own
	deadline time.Duration // of a context made for this operation alone; 0 if there is none
	standard bool          // the context belongs to package context
	pause    int           // how often the client yields first
	spin     int           // how long the client then spins

	call, ret int64 // times on the history's clock
	took      time.Duration
	at        int // the clause that happened, or -1
	result    result
	value     int  // the received value
	caused    bool // the returned error has the cause passed to Abort
	first     bool // of Close and Abort
	stats     coir.ChanStats
	wrong     string // a fault that no order of operations can explain
}

const own = -1

// waits reports whether the operation may wait.
func (o *operation) waits() bool {
	switch o.verb {
	case doSend, doRecv, doSelect, doSelectPriority:
		return true
	case doSendTimeout, doRecvTimeout:
		return o.limit > 0
	}
	return false
}

// bounded reports whether something other than its channels will end the operation.
func (o *operation) bounded() bool {
	return o.slot != own || o.limit > 0 || o.deadline > 0 ||
		slices.ContainsFunc(o.clauses, func(c clause) bool { return c.kind == clauseAfter })
}

// looks reports whether the operation changes nothing.
func (o *operation) looks() bool { return o.verb == doLen || o.verb == doStats }

// gaveUp reports whether the operation, if it was in a queue, left it without being completed.
func (o *operation) gaveUp() bool {
	return o.at < 0 || o.clauses[o.at].kind == clauseAfter && o.clauses[o.at].time > 0
}

// clausesOn counts the clauses on one side of a channel.
func (o *operation) clausesOn(kind clauseKind, ch int) (n int) {
	for _, c := range o.clauses {
		if c.kind == kind && c.ch == ch {
			n++
		}
	}
	return n
}

func (o *operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%3d,%3d] client %d  %v ", o.call, o.ret, o.client, o.verb)
	switch {
	case o.clauses != nil:
		var cs []string
		for _, c := range o.clauses {
			cs = append(cs, c.String())
		}
		b.WriteString(strings.Join(cs, ", "))
	case o.verb != doCancel:
		b.WriteByte(byte('a' + o.ch))
	}
	if o.verb == doSendTimeout || o.verb == doRecvTimeout {
		fmt.Fprintf(&b, " within %v", o.limit)
	}
	if o.slot != own {
		fmt.Fprintf(&b, " context %d", o.slot)
	}
	if o.deadline > 0 {
		fmt.Fprintf(&b, " deadline %v", o.deadline)
	}
	fmt.Fprintf(&b, " -> %s", o.outcome())
	return b.String()
}

func (o *operation) outcome() string {
	switch o.verb {
	case doClose, doAbort:
		return fmt.Sprint(o.first)
	case doCancel:
		return "done"
	case doLen:
		return fmt.Sprint(o.stats.Len)
	case doStats:
		s := &o.stats
		return fmt.Sprintf("len %d, sent %d, received %d, dropped %d, closed %v, waiting %d and %d",
			s.Len, s.Sent, s.Received, s.Dropped, s.Closed, s.Send.Waiting, s.Recv.Waiting)
	}
	out := o.result.String()
	if len(o.clauses) > 1 && o.at >= 0 {
		out = fmt.Sprintf("%d: %s", o.at, out)
	}
	if o.at >= 0 && o.clauses[o.at].kind == clauseRecv && o.result == gotOK {
		out += fmt.Sprintf(" %d", o.value)
	}
	return out
}

// shape has the parameters with which a channel was made.
type shape struct {
	capacity int
	over     coir.OverflowPolicy
}

func (s shape) String() string {
	switch s.capacity {
	case coir.Unbounded:
		return "unbounded"
	case coir.Conflated:
		return "conflated"
	case 0:
		return fmt.Sprintf("rendezvous, %v", s.over)
	}
	return fmt.Sprintf("bounded %d, %v", s.capacity, s.over)
}

// room returns how many values a channel of that shape buffers.
func (s shape) room() int {
	switch s.capacity {
	case coir.Unbounded:
		return 1 << 20
	case coir.Conflated:
		return 1
	}
	return s.capacity
}

func (s shape) policy() coir.OverflowPolicy {
	if s.capacity == coir.Conflated {
		return coir.OverflowDropOldest
	}
	return s.over
}

// life says whether a channel has been closed or aborted.
type life uint8

const (
	isOpen life = iota
	isClosed
	isAborted
)

// chanState is the state of a channel between two steps. Values and ids of operations are one byte each, so that states
// can be compared.
type chanState struct {
	buf                     string // values, the oldest first
	senders, receivers      string // waiting operations in order of arrival; a select counts once
	life                    life
	sent, received, dropped uint8
}

type state struct {
	ch      [2]chanState
	over    uint8 // contexts that have been cancelled, one bit each
	waited  set   // operations that were in a queue
	refused set   // operations that ended before they began
}

// set is a set of operations.
type set [4]uint64

func (s *set) add(id int) { s[id/64] |= 1 << (id % 64) }

func (s *set) has(id int) bool { return s[id/64]&(1<<(id%64)) != 0 }

// moment is one of the two steps of an operation.
type moment struct {
	o   *operation
	end bool
}

// model judges one history.
type model struct {
	shapes [2]shape
	ops    []*operation    // by id
	lost   map[int][]int64 // when OnUndelivered was called, by value
}

func newModel(shapes [2]shape, ops []*operation, lost map[int][]int64) *model {
	slices.SortFunc(ops, func(a, b *operation) int { return int(a.call - b.call) })
	for i, o := range ops {
		o.id = i
	}
	return &model{shapes, ops, lost}
}

// explains reports whether some order of the steps explains the history.
func (m *model) explains() bool { return porcupine.CheckOperations(m.porcupine()) }

// porcupine returns the specification and the history in the form that the checker needs.
func (m *model) porcupine() (porcupine.Model, []porcupine.Operation) {
	spec := porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, _ any) (bool, any) {
			st := in.(moment)
			if st.end {
				next, legal := m.end(s.(state), st.o)
				return legal, next
			}
			next, legal := m.begin(s.(state), st.o)
			return legal, next
		},
		DescribeOperation: func(in, _ any) string {
			if st := in.(moment); st.end {
				return fmt.Sprintf("end of %v", st.o)
			}
			return in.(moment).o.String()
		},
		DescribeState: func(s any) string { return s.(state).String() },
	}
	// Each tick of the history's clock is four ticks here, so that an end that is a return comes after its begin and
	// before operations that were called later.
	var steps []porcupine.Operation
	for _, o := range m.ops {
		begin := porcupine.Operation{ClientId: o.client, Input: moment{o, false}, Call: 4 * o.call, Return: 4 * o.ret}
		steps = append(steps, begin)
		if !o.waits() {
			continue
		}
		end := begin
		end.Input = moment{o, true}
		if !o.gaveUp() {
			end.Call, end.Return = 4*o.ret+1, 4*o.ret+2
		}
		steps = append(steps, end)
	}
	return spec, steps
}

// begin is the first step of an operation, and the only step of an operation that does not wait.
func (m *model) begin(s state, o *operation) (state, bool) {
	switch o.verb {
	case doClose:
		return m.close(s, o, isClosed)
	case doAbort:
		return m.close(s, o, isAborted)
	case doCancel:
		s.over |= 1 << o.slot
		return s, true
	case doLen:
		return s, o.stats.Len == len(s.ch[o.ch].buf)
	case doStats:
		return s, m.stats(&s, o)
	}
	if s.refused.has(o.id) {
		return s, true
	}
	first, chosen := -1, false
	for i, c := range o.clauses {
		if m.ready(&s, c) {
			if first < 0 {
				first = i
			}
			chosen = chosen || i == o.at
		}
	}
	switch {
	case first >= 0:
		if !chosen || o.verb == doSelectPriority && o.at != first {
			return s, false
		}
		legal := m.do(&s, o)
		return s, legal
	case o.waits():
		s.enqueue(o)
		return s, o.result != gotWouldBlock
	}
	return s, o.at < 0 && o.result != gotCancel
}

// ready reports whether a clause need not wait.
func (m *model) ready(s *state, c clause) bool {
	ch := &s.ch[c.ch]
	switch c.kind {
	case clauseSend:
		sh := m.shapes[c.ch]
		return ch.life != isOpen || ch.receivers != "" || len(ch.buf) < sh.room() || sh.policy() != coir.OverflowWait
	case clauseRecv:
		return ch.life != isOpen || ch.senders != "" || ch.buf != ""
	case clauseAfter:
		return c.time <= 0
	}
	return false
}

// do performs the clause that happened, which is ready. It reports whether the recorded result is possible.
func (m *model) do(s *state, o *operation) bool {
	c := o.clauses[o.at]
	ch := &s.ch[c.ch]
	switch c.kind {
	case clauseSend:
		if ch.life != isOpen {
			return o.result == gotClosed && (ch.life == isClosed || o.caused)
		}
		return m.put(s, o, c)
	case clauseRecv:
		if ch.life == isAborted || ch.life == isClosed && ch.buf == "" && ch.senders == "" {
			return o.result == gotClosed && (ch.life == isClosed || o.caused)
		}
		return m.take(s, o, c)
	}
	return o.result == gotOK
}

// put sends on an open channel that is ready.
func (m *model) put(s *state, o *operation, c clause) bool {
	ch := &s.ch[c.ch]
	if ch.receivers != "" {
		ch.sent++
		ch.received++
		return o.result == gotOK && m.complete(s, ch.receivers[0], clauseRecv, c.ch, c.value)
	}
	if len(ch.buf) < m.shapes[c.ch].room() {
		ch.sent++
		ch.buf += string([]byte{byte(c.value)})
		return o.result == gotOK
	}
	if m.shapes[c.ch].policy() == coir.OverflowFail {
		return o.result == gotWouldBlock
	}
	dropped := c.value
	if m.shapes[c.ch].policy() == coir.OverflowDropOldest && ch.buf != "" {
		dropped = int(ch.buf[0])
		ch.buf = ch.buf[1:] + string([]byte{byte(c.value)})
	}
	ch.sent++
	ch.dropped++
	return o.result == gotOK && m.handedOver(dropped, o)
}

// take receives from a channel that has a value or a waiting sender.
func (m *model) take(s *state, o *operation, c clause) bool {
	ch := &s.ch[c.ch]
	ch.received++
	v := 0
	if ch.buf != "" {
		v, ch.buf = int(ch.buf[0]), ch.buf[1:]
	}
	if ch.senders != "" {
		id := ch.senders[0]
		sender := m.ops[id]
		if !m.complete(s, id, clauseSend, c.ch, 0) {
			return false
		}
		ch.sent++
		moved := sender.clauses[sender.at].value
		if v == 0 {
			v = moved
		} else {
			ch.buf += string([]byte{byte(moved)})
		}
	}
	return o.result == gotOK && o.value == v && m.lost[v] == nil
}

// complete ends the wait of an operation with data, and reports whether the operation ended in that way. If several
// clauses are on the same side of the channel, it does not matter which one happened.
func (m *model) complete(s *state, id byte, kind clauseKind, ch, value int) bool {
	s.dequeue(id)
	o := m.ops[id]
	if o.at < 0 || o.result != gotOK {
		return false
	}
	c := o.clauses[o.at]
	return c.kind == kind && c.ch == ch && (kind == clauseSend || o.value == value && m.lost[value] == nil)
}

// close performs Close or Abort.
func (m *model) close(s state, o *operation, to life) (state, bool) {
	ch := &s.ch[o.ch]
	if o.first != (ch.life == isOpen) {
		return s, false
	}
	if ch.life >= to {
		return s, true
	}
	ch.life = to
	ended := ch.receivers
	if to == isAborted {
		ended += ch.senders
		for _, v := range []byte(ch.buf) {
			if at := m.lost[int(v)]; len(at) != 1 || at[0] < o.call {
				return s, false
			}
		}
		ch.buf = ""
	}
	for _, id := range []byte(ended) {
		w := m.ops[id]
		if !s.waiting(id) { // both sides belong to one select
			continue
		}
		s.dequeue(id)
		if w.at < 0 || w.result != gotClosed {
			return s, false
		}
		c := w.clauses[w.at]
		if c.ch != o.ch || c.kind == clauseSend && to != isAborted || to == isAborted && !w.caused {
			return s, false
		}
	}
	return s, true
}

// end is the second step of an operation that may have waited.
func (m *model) end(s state, o *operation) (state, bool) {
	id := byte(o.id)
	if !o.gaveUp() {
		return s, !s.waiting(id)
	}
	refusable := false // its context had ended when it checked
	switch {
	case o.at >= 0: // a time
	case o.result == gotTimeout:
		if o.limit <= 0 && o.deadline <= 0 {
			return s, false
		}
		refusable = o.deadline > 0
	case o.result == gotCancel:
		if o.slot == own || s.over&(1<<o.slot) == 0 {
			return s, false
		}
		refusable = true
	default:
		return s, false
	}
	if s.waiting(id) {
		s.dequeue(id)
		return s, true
	}
	s.refused.add(o.id)
	return s, refusable
}

// stats reports whether the state is compatible with the result of Stats. The operation that completes another one
// removes it from the queue in which it found it. An operation that gave up, and the other clauses of a select, are
// counted until they have left the queues, which they do before they return. So there is a range of possible counts.
func (m *model) stats(s *state, o *operation) bool {
	ch, got := &s.ch[o.ch], &o.stats
	if got.Len != len(ch.buf) || got.Closed != (ch.life != isOpen) || got.Sent != uint64(ch.sent) ||
		got.Received != uint64(ch.received) || ch.life != isAborted && got.Dropped != uint64(ch.dropped) {
		return false
	}
	return m.within(s, o, clauseSend, ch.senders, got.Send.Waiting) &&
		m.within(s, o, clauseRecv, ch.receivers, got.Recv.Waiting)
}

func (m *model) within(s *state, o *operation, kind clauseKind, queue string, n int) bool {
	least := 0
	for _, id := range []byte(queue) {
		least += m.ops[id].clausesOn(kind, o.ch)
	}
	most := least
	for _, w := range m.ops {
		if s.waited.has(w.id) && !s.waiting(byte(w.id)) && w.ret > o.call {
			most += w.clausesOn(kind, o.ch)
			if !w.gaveUp() && w.clauses[w.at].kind == kind && w.clauses[w.at].ch == o.ch {
				most--
			}
		}
	}
	return least <= n && n <= most
}

// handedOver reports whether the value was passed to OnUndelivered, once, while o ran.
func (m *model) handedOver(value int, o *operation) bool {
	at := m.lost[value]
	return len(at) == 1 && at[0] > o.call && at[0] < o.ret
}

func (s *state) waiting(id byte) bool {
	for i := range s.ch {
		if strings.IndexByte(s.ch[i].senders, id) >= 0 || strings.IndexByte(s.ch[i].receivers, id) >= 0 {
			return true
		}
	}
	return false
}

func (s *state) enqueue(o *operation) {
	s.waited.add(o.id)
	stand := func(q *string) {
		if n := len(*q); n == 0 || (*q)[n-1] != byte(o.id) {
			*q += string([]byte{byte(o.id)})
		}
	}
	for _, c := range o.clauses {
		switch c.kind {
		case clauseSend:
			stand(&s.ch[c.ch].senders)
		case clauseRecv:
			stand(&s.ch[c.ch].receivers)
		}
	}
}

func (s *state) dequeue(id byte) {
	for i := range s.ch {
		for _, q := range []*string{&s.ch[i].senders, &s.ch[i].receivers} {
			if at := strings.IndexByte(*q, id); at >= 0 {
				*q = (*q)[:at] + (*q)[at+1:]
			}
		}
	}
}

func (s state) String() string {
	var b strings.Builder
	for i := range s.ch {
		ch := &s.ch[i]
		fmt.Fprintf(&b, "%c: %s %v, senders %v, receivers %v; ", 'a'+i, [...]string{"open", "closed", "aborted"}[ch.life],
			[]byte(ch.buf), []byte(ch.senders), []byte(ch.receivers))
	}
	return fmt.Sprintf("%scancelled %b", b.String(), s.over)
}
