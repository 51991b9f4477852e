package ticket_test

// Tickets under schedules of package sim: the replicas, the provider and the broker are parts of one program, and the
// network and their crashes are decisions of the schedule. Package remote/internal/mutants plants mistakes that these
// tests must find.

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/simtest"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
	"github.com/coir-go/coir/sim"
)

// service is what the test knows about the replicas. It survives their crashes.
type service struct {
	mu       sync.Mutex // for the race detector; guards replicas, tickets and what they point to
	s        *sim.Sim
	broker   *memory.Broker
	keys     *ticket.Keys
	replicas []*replica // nil while one starts
	orders   *coir.Chan[order]
	tickets  []*tally
}

// replica is a replica from its start to its end.
type replica struct {
	node *memory.Node
	desk *ticket.Desk[int]
}

// order is a ticket that the provider has to answer.
type order struct {
	token ticket.Token
	*tally
}

// tally is the fate of a ticket.
type tally struct {
	number  int
	resumed []int        // the values that its wait has returned
	failed  error        // or the error of the wait
	lost    bool         // its owner has crashed
	done    map[int]int  // by value: answers that completed the ticket
	same    map[int]bool // an answer is a duplicate
	late    map[int]bool // an answer was too late
}

// An answer contains the numbers of the ticket and of the event.
func value(ticket, event int) int { return ticket*10 + event }

// run runs a replica, which opens tickets and waits for them.
func (v *service) run(ctx context.Context, i, tickets int) error {
	opened := 0
	return v.broker.Run(ctx, "replica "+strconv.Itoa(i), func(ctx context.Context, node *memory.Node) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			d, err := ticket.New[int](ctx, n, node, audience, v.keys, ticket.WithStore(100))
			if err != nil {
				return err
			}
			v.mu.Lock()
			v.replicas[i] = &replica{node, d}
			v.mu.Unlock()
			for ; opened < tickets; opened++ {
				tk, err := d.Open(ctx, 20*time.Minute)
				if err != nil {
					return err
				}
				x := &tally{done: map[int]int{}, same: map[int]bool{}, late: map[int]bool{}}
				v.mu.Lock()
				x.number = len(v.tickets)
				v.tickets = append(v.tickets, x)
				v.mu.Unlock()
				n.Go("wait", func(ctx context.Context) error {
					got, err := tk.Wait(ctx)
					alive := node.Alive()
					v.mu.Lock()
					defer v.mu.Unlock()
					switch {
					case !alive:
						x.lost = true
					case err != nil:
						x.failed = err
					default:
						x.resumed = append(x.resumed, got)
					}
					return nil
				})
				if err := v.orders.TrySend(order{tk.Token(ticket.RightResolve), x}); err != nil {
					return err
				}
			}
			return coir.WaitCancel(ctx)
		})
	})
}

// any returns a replica, or nil if that replica is not running.
func (v *service) any() *replica {
	i := v.s.Intn(len(v.replicas))
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.replicas[i]
}

// tell passes an answer to replicas until the outcome is known.
func (v *service) tell(ctx context.Context, o order, event int) error {
	answer := value(o.number, event)
	for {
		r := v.any()
		if r == nil {
			if err := coir.Sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		in, cancel := coir.WithTimeout(ctx, [...]time.Duration{time.Minute, 2 * time.Second}[v.s.Intn(2)])
		out, err := r.desk.Resolve(in, o.token, "event "+strconv.Itoa(event), answer)
		cancel()
		if r.node.Alive() {
			v.s.Sometimes(out == ticket.OutcomeStored, "an answer is stored")
			v.mu.Lock()
			switch {
			case out == ticket.OutcomeDone:
				o.done[answer]++
			case out == ticket.OutcomeDuplicate:
				o.same[answer] = true
			case errors.Is(err, remote.ErrUnknown):
			case errors.Is(err, ticket.ErrEnded):
				o.late[answer] = true
			case errors.Is(err, ticket.ErrToken), errors.Is(err, ticket.ErrExpired):
				v.s.Errorf("a valid token is refused: %v", err)
			}
			v.mu.Unlock()
			if out != ticket.OutcomeNone || err != nil && errors.Is(err, ticket.ErrEnded) && !errors.Is(err, remote.ErrUnknown) {
				return nil
			}
		}
		if err := coir.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// forge passes an answer with a changed token to a replica.
func (v *service) forge(ctx context.Context, o order) {
	r := v.any()
	text := []byte(o.token.Reveal())
	text[v.s.Intn(len(text))] ^= 1
	token, err := ticket.ParseToken(string(text))
	if err != nil || r == nil {
		return
	}
	if _, err := r.desk.Resolve(ctx, token, "event 1", -1); !errors.Is(err, ticket.ErrToken) {
		v.s.Errorf("a forged token: %v", err)
	}
}

// settled reports whether each ticket was resumed, or its owner has crashed.
func (v *service) settled() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range v.tickets {
		if len(x.resumed) == 0 && x.failed == nil && !x.lost {
			return false
		}
	}
	return true
}

// Each ticket whose owner lives is resumed once, by one event, whatever the network, the processes and the broker do,
// however often the provider calls back, and whichever replica it calls. The outcome of each call is correct. An old
// token does not resume a process that has restarted.
func TestSimEachTicketIsResumedOnce(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		keys, err := ticket.NewKeys(1, secret(1))
		if err != nil {
			s.Errorf("%v", err)
			return
		}
		v := &service{
			s: s, broker: memory.New(), keys: keys, replicas: make([]*replica, 3),
			orders: coir.NewChan[order](coir.Unbounded),
		}
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			defer n.Cancel(nil)
			for i := range v.replicas {
				n.Go("replica", func(ctx context.Context) error { return v.run(ctx, i, 1) }, coir.WithIndex(i))
			}
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				for range v.replicas { // each opens one ticket
					o, err := v.orders.Recv(ctx)
					if err != nil {
						return err
					}
					v.forge(ctx, o)
					for _, event := range []int{1, 1, 2}[:1+s.Intn(3)] {
						n.Go("event", func(ctx context.Context) error { return v.tell(ctx, o, event) }, coir.WithIndex(event))
					}
				}
				return nil
			})
			for err == nil && !v.settled() { // a ticket that expires is a failure
				err = coir.Sleep(ctx, 10*time.Second)
			}
			return err
		})
		for _, x := range v.tickets {
			v.check(x)
		}
	}, simtest.Schedules(2000), sim.WithSteps(20_000), sim.WithFaults("remote lose", "remote duplicate", "remote delay",
		"remote refuse", "remote partition", "remote crash", "remote restart"))
}

// check checks a ticket.
func (v *service) check(x *tally) {
	completions := 0
	for _, n := range x.done {
		completions += n
	}
	switch {
	case completions > 1:
		v.s.Errorf("%d answers have completed one ticket", completions)
	case len(x.done)+len(x.same) > 2 || len(x.same) > 1:
		v.s.Errorf("answers with different keys are duplicates")
	}
	v.s.Sometimes(x.lost, "an owner crashes with an open ticket")
	if x.lost {
		return
	}
	if len(x.resumed) != 1 || x.failed != nil || x.resumed[0]/10 != x.number {
		v.s.Errorf("ticket %d was resumed with %v, %v", x.number, x.resumed, x.failed)
		return
	}
	for _, event := range []int{1, 2} {
		answer := value(x.number, event)
		is := x.resumed[0] == answer
		if !is && (x.done[answer] > 0 || x.same[answer]) || is && x.late[answer] {
			v.s.Errorf("an answer has another outcome than its caller was told")
		}
		v.s.Sometimes(is && x.same[answer], "an answer is a duplicate")
		v.s.Sometimes(!is && x.late[answer], "an answer comes after another")
	}
}

// An answer that arrives at the moment when its ticket ends either completes the ticket or is too late, and its outcome
// says which. The same answer again has the same outcome.
func TestSimAnswersAtTheEnd(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		keys, err := ticket.NewKeys(1, secret(1))
		if err != nil {
			s.Errorf("%v", err)
			return
		}
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			broker := memory.New()
			d, err := ticket.New[int](ctx, n, broker.Node("owner"), audience, keys)
			if err != nil {
				return err
			}
			defer d.Close()
			e, err := ticket.New[int](ctx, n, broker.Node("other"), audience, keys)
			if err != nil {
				return err
			}
			defer e.Close()
			tk, err := d.Open(ctx, time.Hour)
			if err != nil {
				return err
			}
			token, said := tk.Token(ticket.RightResolve|ticket.RightReject), make([]error, 3)
			var done, same atomic.Int32
			err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("cancel", func(context.Context) error { tk.Cancel(); return nil })
				for i, at := range []*ticket.Desk[int]{d, e, d} {
					n.Go("answer", func(ctx context.Context) error {
						out, err := at.Resolve(ctx, token, "key", 1)
						said[i] = err
						switch out {
						case ticket.OutcomeDone:
							done.Add(1)
						case ticket.OutcomeDuplicate:
							same.Add(1)
						}
						return nil
					}, coir.WithIndex(i))
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = tk.Wait(ctx)
			s.Sometimes(err == nil, "an answer completes it")
			s.Sometimes(err != nil, "it is cancelled")
			if done, same := done.Load(), same.Load(); err == nil && (done != 1 || same != 2) || err != nil && done+same != 0 {
				s.Errorf("the ticket ended with %v; the outcomes were %d times done, %d times duplicate, errors %v", err, done, same, said)
			}
			return nil
		})
	}, simtest.Schedules(2000))
}
