package verify

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// These tests check the checker itself, with histories written by hand, of which it is known whether they are possible,
// and with channels that are broken on purpose, which the checker must reject.

// Histories for TestJudge: operations on channel a, or on b if it is named, with their intervals.

func span(call, ret int64, o *operation) *operation {
	o.call, o.ret = call, ret
	if o.verb != doCancel && o.slot == 0 {
		o.slot = own
	}
	return o
}

func sent(v int) *operation {
	return &operation{verb: doSend, clauses: []clause{{kind: clauseSend, value: v}}}
}

func received(v int) *operation {
	return &operation{verb: doRecv, clauses: []clause{{kind: clauseRecv}}, value: v}
}

// failed returns o with another result.
func failed(o *operation, r result) *operation {
	o.result, o.value = r, 0
	if r != gotClosed {
		o.at = -1
	}
	return o
}

// passing returns o in the form that does not wait.
func passing(o *operation) *operation {
	o.verb += doTrySend - doSend
	return o
}

// within returns o with a time limit.
func within(o *operation) *operation {
	o.verb += doSendTimeout - doSend
	o.limit = time.Microsecond
	return o
}

// waiting returns a call of Stats on a channel that finds the given numbers of waiters and values, none of them
// received.
func waiting(senders, receivers, values int) *operation {
	o := &operation{verb: doStats}
	o.stats.Send.Waiting, o.stats.Recv.Waiting = senders, receivers
	o.stats.Sent, o.stats.Len = uint64(values), values
	return o
}

func selected(v verb, at, value int, cs ...clause) *operation {
	return &operation{verb: v, clauses: cs, at: at, value: value}
}

func onB(o *operation) *operation {
	o.ch = 1
	o.clauses[0].ch = 1
	return o
}

// TestJudge checks, for each history, whether the specification accepts it.
func TestJudge(t *testing.T) {
	rendezvous, one, two := shape{0, coir.OverflowWait}, shape{1, coir.OverflowWait}, shape{2, coir.OverflowWait}
	oldest, newest := shape{1, coir.OverflowDropOldest}, shape{1, coir.OverflowDropNewest}
	closes := func() *operation { return &operation{verb: doClose, first: true} }
	aborts := func() *operation { return &operation{verb: doAbort, first: true} }
	caused := func(o *operation) *operation { o.caused = true; return o }
	under := func(o *operation) *operation { o.slot = 1; return o }
	type ops []*operation
	tests := []struct {
		name    string
		shape   shape
		ops     ops
		lost    map[int][]int64
		happens bool
	}{
		{"a rendezvous, the sender first", rendezvous, ops{span(1, 3, sent(1)), span(2, 4, received(1))}, nil, true},
		{"a rendezvous, the receiver first", rendezvous, ops{span(1, 4, received(1)), span(2, 3, sent(1))}, nil, true},
		{"a rendezvous with nobody", rendezvous, ops{span(1, 2, sent(1)), span(3, 4, received(1))}, nil, false},
		{"a value from nowhere", rendezvous, ops{span(1, 2, received(1))}, nil, false},
		{"a passing send beside a receiver", rendezvous, ops{span(1, 8, received(1)),
			span(2, 3, failed(passing(sent(2)), gotWouldBlock)), span(6, 7, sent(1))}, nil, true},
		{"a passing send beside a receiver that is seen", rendezvous, ops{span(1, 8, received(1)),
			span(2, 3, waiting(0, 1, 0)), span(4, 5, failed(passing(sent(2)), gotWouldBlock)), span(6, 7, sent(1))}, nil, false},
		{"a passing send to a receiver that is seen", rendezvous, ops{span(1, 6, received(1)), span(2, 3, waiting(0, 1, 0)),
			span(4, 5, passing(sent(1)))}, nil, true},

		{"in order", two, ops{span(1, 2, sent(1)), span(3, 4, sent(2)), span(5, 6, received(1)), span(7, 8, received(2))},
			nil, true},
		{"out of order", two, ops{span(1, 2, sent(1)), span(3, 4, sent(2)), span(5, 6, received(2)), span(7, 8, received(1))},
			nil, false},
		{"any order of sends that overlap", two, ops{span(1, 4, sent(1)), span(2, 3, sent(2)), span(5, 6, received(2)),
			span(7, 8, received(1))}, nil, true},
		{"delivered twice", two, ops{span(1, 2, sent(1)), span(3, 4, received(1)), span(5, 6, received(1))}, nil, false},
		{"lost", two, ops{span(1, 2, sent(1)), span(3, 4, failed(passing(received(0)), gotWouldBlock))}, nil, false},
		{"not there yet", two, ops{span(1, 4, sent(1)), span(2, 3, failed(passing(received(0)), gotWouldBlock)),
			span(5, 6, received(1))}, nil, true},
		{"more than it holds", one, ops{span(1, 2, sent(1)), span(3, 4, sent(2)), span(5, 6, received(1)),
			span(7, 8, received(2))}, nil, false},
		{"full", one, ops{span(1, 2, sent(1)), span(3, 4, failed(passing(sent(2)), gotWouldBlock)),
			span(5, 6, received(1))}, nil, true},
		{"not full", two, ops{span(1, 2, sent(1)), span(3, 4, failed(passing(sent(2)), gotWouldBlock)),
			span(5, 6, received(1))}, nil, false},

		{"receivers in the order in which they came", one, ops{span(1, 12, received(1)), span(2, 3, waiting(0, 1, 0)),
			span(4, 13, received(2)), span(5, 6, waiting(0, 2, 0)), span(7, 8, sent(1)), span(9, 10, sent(2))}, nil, true},
		{"receivers out of order", one, ops{span(1, 12, received(2)), span(2, 3, waiting(0, 1, 0)),
			span(4, 13, received(1)), span(5, 6, waiting(0, 2, 0)), span(7, 8, sent(1)), span(9, 10, sent(2))}, nil, false},
		{"a sender that waits is not overtaken", one, ops{span(1, 2, sent(1)), span(3, 20, sent(2)),
			span(4, 5, waiting(1, 0, 1)), span(6, 7, received(1)), span(8, 9, failed(passing(sent(3)), gotWouldBlock)),
			span(10, 11, received(2))}, nil, true},
		{"a sender that passes overtakes", one, ops{span(1, 2, sent(1)), span(3, 20, sent(2)), span(4, 5, waiting(1, 0, 1)),
			span(6, 7, received(1)), span(8, 9, passing(sent(3))), span(10, 11, received(2)),
			span(12, 13, received(3))}, nil, false},

		{"a sender that waits is delivered after a close", one, ops{span(1, 2, sent(1)), span(3, 20, sent(2)),
			span(4, 5, closes()), span(6, 7, received(1)), span(8, 9, received(2)),
			span(10, 11, failed(received(0), gotClosed))}, nil, true},
		{"a sender that came after a close", one, ops{span(4, 5, closes()), span(6, 20, sent(2)),
			span(8, 9, received(2))}, nil, false},
		{"a sender that waits is refused", one, ops{span(1, 2, sent(1)), span(3, 20, failed(sent(2), gotClosed)),
			span(4, 5, waiting(1, 0, 1)), span(6, 7, closes()), span(8, 9, received(1))}, nil, false},
		{"a sender that was late is refused", one, ops{span(1, 2, sent(1)), span(3, 20, failed(sent(2), gotClosed)),
			span(4, 5, closes()), span(6, 7, received(1))}, nil, true},
		{"closed with a value left", one, ops{span(1, 2, sent(1)), span(3, 4, closes()),
			span(5, 6, failed(received(0), gotClosed)), span(7, 8, received(1))}, nil, false},
		{"closed by nobody", one, ops{span(1, 2, failed(received(0), gotClosed))}, nil, false},
		{"closed twice", one, ops{span(1, 2, closes()), span(3, 4, closes())}, nil, false},
		{"an abort ends all waits", one, ops{span(1, 2, sent(1)), span(3, 20, caused(failed(sent(2), gotClosed))),
			span(4, 5, waiting(1, 0, 1)), span(6, 8, aborts())}, map[int][]int64{1: {7}}, true},
		{"an abort hands nothing over", one, ops{span(1, 2, sent(1)), span(6, 8, aborts())}, nil, false},

		{"timed out, and then a value", one, ops{span(1, 4, failed(within(received(0)), gotTimeout)), span(2, 3, sent(1)),
			span(5, 6, received(1))}, nil, true},
		{"timed out beside a value", one, ops{span(1, 2, sent(1)), span(3, 4, failed(within(received(0)), gotTimeout)),
			span(5, 6, received(1))}, nil, false},
		{"timed out after it was served", one, ops{span(1, 8, failed(within(received(0)), gotTimeout)),
			span(2, 3, waiting(0, 1, 0)), span(4, 5, sent(1)),
			span(6, 7, failed(passing(received(0)), gotWouldBlock))}, nil, false},
		{"timed out without a time", one, ops{span(1, 2, failed(received(0), gotTimeout))}, nil, false},
		{"cancelled", one, ops{span(1, 4, under(failed(received(0), gotCancel))),
			span(2, 3, under(&operation{verb: doCancel}))}, nil, true},
		{"cancelled before it looked", one, ops{span(1, 2, sent(1)), span(3, 6, under(failed(received(0), gotCancel))),
			span(4, 5, under(&operation{verb: doCancel})), span(7, 8, received(1))}, nil, true},
		{"cancelled by nobody", one, ops{span(1, 2, under(failed(received(0), gotCancel))),
			span(3, 4, under(&operation{verb: doCancel}))}, nil, false},

		{"a select does one clause", one, ops{span(1, 2, selected(doSelect, 1, 0, clause{kind: clauseSend, value: 1},
			clause{kind: clauseSend, ch: 1, value: 2})), span(3, 4, onB(received(2)))}, nil, true},
		{"a select does two clauses", one, ops{span(1, 2, selected(doSelect, 1, 0, clause{kind: clauseSend, value: 1},
			clause{kind: clauseSend, ch: 1, value: 2})), span(3, 4, onB(received(2))), span(5, 6, received(1))}, nil, false},
		{"a select chooses", one, ops{span(1, 2, sent(1)), span(3, 4, onB(sent(2))), span(5, 6, selected(doSelect, 1, 2,
			clause{kind: clauseRecv}, clause{kind: clauseRecv, ch: 1})), span(7, 8, received(1))}, nil, true},
		{"the first comes first", one, ops{span(1, 2, sent(1)), span(3, 4, onB(sent(2))),
			span(5, 6, selected(doSelectPriority, 1, 2, clause{kind: clauseRecv}, clause{kind: clauseRecv, ch: 1})),
			span(7, 8, received(1))}, nil, false},
		{"a select meets itself", rendezvous, ops{span(1, 2, selected(doSelect, 1, 1, clause{kind: clauseSend, value: 1},
			clause{kind: clauseRecv}))}, nil, false},
		{"two selects meet", rendezvous, ops{
			span(1, 4, selected(doSelect, 1, 2, clause{kind: clauseSend, value: 1}, clause{kind: clauseRecv})),
			span(2, 3, selected(doSelect, 0, 0, clause{kind: clauseSend, value: 2}, clause{kind: clauseRecv}))}, nil, true},
		{"a try with a clause that could happen", one, ops{span(1, 2, &operation{verb: doTrySelect, at: -1, result: gotWouldBlock,
			clauses: []clause{{kind: clauseRecv}, {kind: clauseSend, ch: 1, value: 1}}})}, nil, false},

		{"the oldest makes room", oldest, ops{span(1, 2, sent(1)), span(3, 5, sent(2)), span(6, 7, received(2))},
			map[int][]int64{1: {4}}, true},
		{"the newest is dropped", newest, ops{span(1, 2, sent(1)), span(3, 5, sent(2)), span(6, 7, received(1))},
			map[int][]int64{2: {4}}, true},
		{"the wrong one is dropped", newest, ops{span(1, 2, sent(1)), span(3, 5, sent(2)), span(6, 7, received(2))},
			map[int][]int64{1: {4}}, false},
		{"dropped in silence", oldest, ops{span(1, 2, sent(1)), span(3, 5, sent(2)), span(6, 7, received(2))}, nil, false},
		{"dropped and delivered", oldest, ops{span(1, 2, sent(1)), span(4, 5, received(1))}, map[int][]int64{1: {3}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newModel([2]shape{test.shape, test.shape}, test.ops, test.lost)
			if got := m.explains(); got != test.happens {
				for _, o := range m.ops {
					t.Log(o)
				}
				t.Errorf("explained: %v, want %v", got, test.happens)
			}
		})
	}
}

// mutant is a channel that is broken on purpose.
type mutant struct {
	name  string
	shape shape  // the intended shape of the channels
	real  *shape // their actual shape, if it differs
	seen  bool   // only Len and Stats reveal the fault
	do    func(h *history) performer
}

var mutants = []mutant{
	{name: "loses a value", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			if o.verb == doSend && o.clauses[0].value%4 == 0 {
				return
			}
			h.perform(ctx, o)
		}
	}},
	{name: "delivers a value twice", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		again := make(chan int, 1)
		return func(ctx context.Context, o *operation) {
			if o.verb == doTryRecv {
				select {
				case o.value = <-again:
					return
				default:
				}
			}
			h.perform(ctx, o)
			if o.verb == doRecv && o.result == gotOK {
				select {
				case again <- o.value:
				default:
				}
			}
		}
	}},
	{name: "swaps two values", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		kept := [2]chan int{make(chan int, 1), make(chan int, 1)}
		return func(ctx context.Context, o *operation) {
			if o.verb == doTryRecv || o.verb == doRecv {
				select {
				case o.value = <-kept[o.ch]:
					return
				default:
				}
			}
			h.perform(ctx, o)
			if o.verb != doRecv || o.result != gotOK {
				return
			}
			next, err := h.chans[o.ch].TryRecv()
			if err != nil {
				return
			}
			select {
			case kept[o.ch] <- o.value:
				o.value = next
			default: // this value is lost
			}
		}
	}},
	{name: "says closed while a value is left", shape: shape{3, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			if o.verb == doTryRecv && h.chans[o.ch].Stats().Closed {
				o.result = gotClosed
				return
			}
			h.perform(ctx, o)
		}
	}},
	{name: "refuses after a close those who wait", shape: shape{1, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			if o.verb == doClose {
				o.first = h.chans[o.ch].Abort(errAborted)
				return
			}
			h.perform(ctx, o)
		}
	}},
	{name: "closes late", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		late := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
		return func(ctx context.Context, o *operation) {
			if o.verb == doClose && !h.chans[o.ch].Stats().Closed {
				select {
				case late[o.ch] <- struct{}{}:
					o.first = true
					return
				default:
				}
			}
			h.perform(ctx, o)
			select {
			case <-late[o.ch]:
				h.chans[o.ch].Close()
			default:
			}
		}
	}},
	{name: "takes a value and says that it timed out", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			h.perform(ctx, o)
			if o.verb == doRecvTimeout && o.limit > 0 && o.result == gotOK {
				o.at, o.result, o.value = -1, gotTimeout, 0
			}
		}
	}},
	{name: "takes a value though it was cancelled", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			h.perform(ctx, o)
			if o.result == gotCancel {
				_, _ = h.chans[o.ch].TryRecv()
			}
		}
	}},
	{name: "misses receivers that wait", shape: shape{0, coir.OverflowWait}, seen: true, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			if o.verb == doTrySend && h.chans[o.ch].Stats().Recv.Waiting > 0 {
				o.at, o.result = -1, gotWouldBlock
				return
			}
			h.perform(ctx, o)
		}
	}},
	{name: "does two clauses of a select", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			h.perform(ctx, o)
			if o.verb == doSelect || o.verb == doTrySelect {
				for i, c := range o.clauses {
					if i != o.at && c.kind == clauseSend {
						_ = h.chans[c.ch].TrySend(c.value)
					}
				}
			}
		}
	}},
	{name: "takes any clause for the first", shape: shape{2, coir.OverflowWait}, do: func(h *history) performer {
		return func(ctx context.Context, o *operation) {
			if o.verb != doSelectPriority {
				h.perform(ctx, o)
				return
			}
			fair := *o
			fair.verb = doSelect
			h.perform(ctx, &fair)
			o.at, o.result, o.value, o.caused = fair.at, fair.result, fair.value, fair.caused
		}
	}},
	{name: "has a place too many", shape: shape{1, coir.OverflowWait}, real: &shape{2, coir.OverflowWait}},
	{name: "has a place too few", shape: shape{3, coir.OverflowWait}, real: &shape{2, coir.OverflowWait}},
	{name: "has a place where there is none", shape: shape{0, coir.OverflowWait}, real: &shape{1, coir.OverflowWait}},
	{name: "drops the newest for the oldest", shape: shape{1, coir.OverflowDropOldest},
		real: &shape{1, coir.OverflowDropNewest}},
	{name: "drops the oldest for the newest", shape: shape{2, coir.OverflowDropNewest},
		real: &shape{2, coir.OverflowDropOldest}},
	{name: "waits where it should fail", shape: shape{1, coir.OverflowFail}, real: &shape{1, coir.OverflowWait}},
}

// TestMutantsAreRejected checks that the checker does not accept everything. The counters of Stats reveal most mutants
// at once, so they are left out: the order of operations must reveal the faults.
func TestMutantsAreRejected(t *testing.T) {
	const enough = 300
	rts := newRuntimes(t)
	for _, mu := range mutants {
		t.Run(mu.name, func(t *testing.T) {
			for seed := range uint64(enough) {
				h := planHistory(seed)
				h.shapes = [2]shape{mu.shape, mu.shape}
				if mu.real != nil {
					h.chans = [2]*coir.Chan[int]{h.newChan(*mu.real), h.newChan(*mu.real)}
				}
				if mu.do != nil {
					h.do = mu.do(h)
				}
				if !h.run(rts[h.workers]) {
					t.Fatalf("the clients have not ended\n%v", h)
				}
				m := h.model()
				if !mu.seen {
					m = newModel(h.shapes, slices.DeleteFunc(m.ops, (*operation).looks), h.lost)
				}
				if !m.explains() {
					t.Logf("rejected at history %d", seed)
					return
				}
			}
			t.Errorf("%d histories were accepted", enough)
		})
	}
}
