package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/model"
)

// A history as bytes. The first three bytes make the channels; then each step takes four:
//
//	 7   5 4      0    7    5 4   3 2      0    7       4 3       0    7       4 3       0
//	+-----+--------+  +------+-----+--------+  +---------+---------+  +---------+---------+
//	| how |  verb  |  | mode |limit| client |  | case 1  | case 0  |  | case 3  | case 2  |
//	+-----+--------+  +------+-----+--------+  +---------+---------+  +---------+---------+
//
// Any bytes are a history, and the meaning of a step does not depend on the others. So a fuzzer, or a search for the
// shortest history that shows a fault, may change bytes and leave out steps at will.
const (
	Chans     = 3     // each of these bytes makes a channel, modulo Kinds
	Kinds     = 6 * 4 // capacities and policies
	StepBytes = 4     // the length of a step

	fibers    = 4
	goroutine = fibers // the client after the fibers
	clients   = fibers + 1
	player    = clients // the player itself, which never waits, but may use Try operations
	mostSteps = 200
)

// verb is the operation of a step.
type verb uint8

const (
	send verb = iota
	recv
	trySend
	tryRecv
	sendTimeout
	recvTimeout
	selectFair
	selectTimeout
	selectPriority
	trySelect
	cancel // the operation that the client waits in
	closing
	abort
)

func (v verb) String() string {
	return [...]string{"Send", "Recv", "TrySend", "TryRecv", "SendTimeout", "RecvTimeout", "Select", "Select", "SelectPriority",
		"TrySelect", "cancel", "Close", "Abort"}[v]
}

// verbs contains each verb as often as it should occur.
var verbs = [32]verb{
	send, recv, trySend, tryRecv, sendTimeout, recvTimeout, selectFair, selectTimeout, selectPriority, trySelect,
	cancel, closing, abort,
	send, recv, trySend, tryRecv, send, recv, selectFair, selectTimeout, selectPriority, trySelect, cancel,
	send, recv, send, recv, selectFair, selectFair, selectPriority, cancel,
}

// how is the kind of context under which an operation is called.
type how uint8

const (
	own     how = iota // the client's own context
	scoped             // a scope of coir in it
	foreign            // a context of package context that does not come from coir
	dead               // a scope that has ended
)

func (h how) String() string {
	return [...]string{"", " in a scope", " in a foreign context", " in a dead scope"}[h]
}

var hows = [8]how{own, scoped, foreign, dead, own, scoped, foreign, scoped}

// limit is the time limit of an operation.
type limit uint8

const (
	none   limit = iota
	now          // the operation must not wait
	soon         // the operation waits, and nothing else happens until its time has passed
	hardly       // the operation has a timer, which does not fire
)

func (l limit) String() string {
	return [...]string{"", " within no time", " for a moment", " within the hour"}[l]
}

// step is a step after decoding.
type step struct {
	verb   verb
	client int
	how    how
	limit  limit
	long   bool     // a select with so many cases before these that their indexes do not fit in the word
	rush   bool     // the next step follows before any client woken by this one has run
	cases  []choice // of a select; otherwise the first names the channel
}

// choice is a case of a select, or the only one of another operation.
type choice struct {
	kind model.Kind
	on   int
}

func (s step) isSelect() bool { return s.verb >= selectFair && s.verb <= trySelect }

// tries reports whether the operation never waits and has no context.
func (v verb) tries() bool { return v == trySend || v == tryRecv || v == trySelect }

func readStep(b []byte) step {
	s := step{
		verb:   verbs[b[0]&31],
		how:    hows[b[0]>>5],
		client: int(b[1] & 7),
		rush:   b[1]>>5&1 == 1,
		long:   b[1]>>6 == 3,
	}
	if s.client >= clients {
		s.client %= clients
		if s.verb.tries() {
			s.client = player
		}
	}
	switch limit := limit(b[1] >> 3 & 3); s.verb {
	case sendTimeout, recvTimeout, selectTimeout:
		s.limit = max(limit, now)
	}
	for _, nibble := range []byte{b[2] & 15, b[2] >> 4, b[3] & 15, b[3] >> 4} {
		if c, ok := readChoice(nibble); ok {
			s.cases = append(s.cases, c)
		}
	}
	switch on := int(b[2]&3) % Chans; s.verb {
	case send, trySend, sendTimeout:
		s.cases = []choice{{model.Send, on}}
	case recv, tryRecv, recvTimeout, closing, abort:
		s.cases = []choice{{model.Recv, on}}
	}
	return s
}

func readChoice(nibble byte) (choice, bool) {
	on := int(nibble & 3)
	switch kind := nibble >> 2; {
	case kind == 0 && on < Chans:
		return choice{model.Send, on}, true
	case kind == 1 && on < Chans:
		return choice{model.Recv, on}, true
	case kind == 2:
		return choice{model.Never, 0}, true
	}
	return choice{}, false
}

// text describes the operation that the step begins; the clauses have the values to send.
func (s step) text(clauses []model.Clause) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", who(s.client), s.verb)
	if s.isSelect() && s.long {
		b.WriteString(" among many,")
		clauses = clauses[many:]
	}
	for i, c := range s.cases {
		if i > 0 {
			b.WriteByte(',')
		}
		switch c.kind {
		case model.Send:
			fmt.Fprintf(&b, " %d to %c", clauses[i].Value, 'a'+c.on)
		case model.Recv:
			fmt.Fprintf(&b, " from %c", 'a'+c.on)
		default:
			b.WriteString(" never")
		}
	}
	return b.String() + s.limit.String() + s.how.String()
}

// who returns the name of a client.
func who(client int) string {
	switch client {
	case goroutine:
		return "goroutine"
	case player:
		return "player"
	}
	return fmt.Sprintf("fiber %d", client)
}

// pair is a channel, real and modelled.
type pair struct {
	name  string
	real  *coir.Chan[int]
	model *model.Chan
	lost  []int // the values passed to OnUndelivered; guarded by the history's lock
}

// newPair makes a real and a modelled channel of one of the Kinds.
func (h *history) newPair(kind int) *pair {
	at, over := kind%Kinds/4, coir.OverflowPolicy(kind%4)
	capacity := [...]int{0, 1, 2, 3, coir.Unbounded, coir.Conflated}[at]
	if capacity == coir.Conflated {
		over %= coir.OverflowDropNewest // an unbounded channel has no other policies
	}
	p := &pair{
		name:  fmt.Sprintf("capacity %s, overflow: %v", [...]string{"0", "1", "2", "3", "unbounded", "conflated"}[at], over),
		model: model.New(capacity, model.Policy(over)),
	}
	p.real = coir.NewChan[int](capacity, coir.WithOverflow(over), coir.OnUndelivered(func(v int) {
		h.mu.Lock()
		p.lost = append(p.lost, v)
		h.mu.Unlock()
	}))
	return p
}

// read makes the channels, and returns the steps.
func (h *history) read(data []byte) (steps []step) {
	if len(data) < Chans {
		return nil
	}
	for _, b := range data[:Chans] {
		h.chans = append(h.chans, h.newPair(int(b)))
	}
	for s := range slices.Chunk(data[Chans:], StepBytes) {
		if len(s) == StepBytes && len(steps) < mostSteps {
			steps = append(steps, readStep(s))
		}
	}
	return steps
}
