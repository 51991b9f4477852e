package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Node is the transport of one process, from its start to its end. It implements [remote.Transport].
type Node struct {
	b    *Broker
	name string

	// The lock of the broker guards the fields below.
	dead   bool
	mortal bool          // it is not decided yet whether the node crashes
	life   int           // operations until the node crashes; negative if it does not
	cut    time.Duration // no message passes before this time
	cancel func(error)   // cancels the process; nil if Run does not run it
}

// ErrCrashed is the error of operations of a node that has crashed.
var ErrCrashed = errors.New("memory: the node has crashed")

// Node returns the transport of a process that does not crash.
func (b *Broker) Node(name string) *Node { return &Node{b: b, name: name, life: -1} }

// Run runs f as a process, with its own transport. If the node crashes, the context of f ends, and later calls on the
// transport have no effect; when f has returned, Run calls it again. Run returns the result of the first call without a
// crash.
//
// Other effects of f must stop too: see [Node.Alive].
func (b *Broker) Run(ctx context.Context, name string, f func(ctx context.Context, t *Node) error) error {
	for {
		t := b.Node(name)
		err := b.once(ctx, t, f)
		if t.Alive() || coir.Ended(ctx) != nil {
			return err
		}
	}
}

// once runs f until it returns.
func (b *Broker) once(ctx context.Context, t *Node, f func(ctx context.Context, t *Node) error) error {
	ctx, cancel := coir.WithCancelCause(ctx)
	defer cancel(nil)
	t.cancel, t.mortal = cancel, true
	b.cond.Lock()
	t.decide()
	b.cond.Unlock()
	err := f(ctx, t)
	b.cond.Lock()
	defer b.cond.Unlock()
	t.unserve()
	return err
}

// decide decides whether the node crashes, as soon as faults may happen.
func (n *Node) decide() {
	b := n.b
	if !n.mortal || b.calm {
		return
	}
	n.mortal = false
	if b.fault(faultCrash) {
		n.life = b.choose(8) * [...]int{1, 4, 16}[b.choose(3)] // usually soon, sometimes late
	}
}

// Alive reports whether the node has not crashed. If a process changes something that other processes see, except
// through its transport, it must do so only while the node is alive, and in the same step: without an operation of coir
// after the call of Alive.
func (n *Node) Alive() bool {
	n.b.cond.Lock()
	defer n.b.cond.Unlock()
	return !n.dead
}

// Crash ends the process of the node, as the fault does.
func (n *Node) Crash() {
	var e effects
	n.b.cond.Lock()
	n.crash(&e)
	n.b.unlock(e)
}

func (n *Node) crash(e *effects) {
	if n.dead {
		return
	}
	n.dead = true
	n.unserve()
	for _, q := range n.b.queues {
		q.pulls = slices.DeleteFunc(q.pulls, func(p *pull) bool { return p.node == n })
	}
	if n.cancel != nil {
		*e = append(*e, func() { n.cancel(ErrCrashed) })
	}
}

// step counts an operation of the node, and reports whether the node is still alive.
func (n *Node) step(e *effects) bool {
	n.decide()
	if n.life == 0 && !n.b.healed {
		n.crash(e)
	}
	n.life--
	return !n.dead
}

// hop decides what happens to a message between the node and the broker. The message arrives once for each element of
// the result, after that delay.
func (n *Node) hop() []time.Duration {
	b := n.b
	now := b.now()
	if b.fault(faultPartition) {
		n.cut = now + [...]time.Duration{time.Second, 10 * time.Second, time.Minute}[b.choose(3)]
	}
	if now < n.cut && !b.healed || b.fault(faultLose) {
		return nil
	}
	at := []time.Duration{b.latency()}
	if b.fault(faultDuplicate) {
		at = append(at, b.latency())
	}
	return at
}

// latency returns the delay of a message.
func (b *Broker) latency() time.Duration {
	if !b.fault(faultDelay) {
		return 0
	}
	return [...]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second}[b.choose(4)]
}

// send passes a message over the network: it calls arrive each time the message arrives.
func (n *Node) send(e *effects, arrive func(e *effects)) {
	for _, d := range n.hop() {
		if d == 0 {
			arrive(e)
		} else {
			n.b.later(d, arrive)
		}
	}
}

// answer is an answer of the broker to a node.
type answer[R any] struct {
	value R
	err   error
}

// ask sends a request to the broker, and waits for its answer. Each time the request arrives, do is called with the
// lock held. It calls reply with the answer, at once or later. If gone is not nil, it is called when the caller no
// longer waits.
func ask[R any](ctx context.Context, n *Node, what string,
	do func(e *effects, reply func(e *effects, value R, err error)), gone func(),
) (R, error) {
	var none R
	var e effects
	var got answer[R] // if came is set
	came := false
	p := coir.NewEvent(coir.WithName("answer to " + what + " of " + n.name))
	n.b.cond.Lock()
	if err := coir.Ended(ctx); err != nil {
		n.b.unlock(nil)
		return none, fmt.Errorf("memory: %s: %w", what, err)
	}
	if !n.step(&e) {
		n.b.unlock(e)
		return none, ErrCrashed
	}
	if n.b.fault(faultRestart) {
		n.b.restart(&e)
	}
	if n.b.fault(faultRefuse) {
		n.b.unlock(e)
		return none, fmt.Errorf("memory: %s: %w", what, remote.ErrUnavailable)
	}
	n.send(&e, func(e *effects) {
		do(e, func(e *effects, value R, err error) {
			n.send(e, func(e *effects) {
				if !n.dead && !came {
					got, came = answer[R]{value, err}, true
					*e = append(*e, func() { p.Set() })
				}
			})
		})
	})
	alive := n.step(&e)
	n.b.unlock(e)
	if !alive { // the request may still arrive
		return none, fmt.Errorf("%w: %w", remote.ErrUnknown, ErrCrashed)
	}
	err := p.Wait(ctx)
	n.b.cond.Lock()
	defer n.b.cond.Unlock()
	if gone != nil {
		gone()
	}
	if !came { // checked even after an error: the answer may have arrived at the same moment
		return none, fmt.Errorf("memory: %s: %w: %w", what, remote.ErrUnknown, err)
	}
	return got.value, got.err
}

// askQueue is ask for a request about a queue whose answer has no value.
func (n *Node) askQueue(ctx context.Context, name, what string, do func(e *effects, q *queue) error) error {
	_, err := ask(ctx, n, what, func(e *effects, reply func(*effects, struct{}, error)) {
		err := notOpened(name)
		if q := n.b.queue(name); q != nil {
			err = do(e, q)
		}
		reply(e, struct{}{}, err)
	}, nil)
	return err
}

// tell sends a request that has no answer.
func (n *Node) tell(do func(e *effects)) {
	var e effects
	n.b.cond.Lock()
	if n.step(&e) {
		n.send(&e, do)
	}
	n.b.unlock(e)
}

// Info implements [remote.Transport].
func (n *Node) Info() remote.Info { return n.b.info }

// Open implements [remote.Transport].
func (n *Node) Open(ctx context.Context, queue string, capacity int) error {
	_, err := ask(ctx, n, "open "+queue, func(e *effects, reply func(*effects, struct{}, error)) {
		reply(e, struct{}{}, n.b.open(queue, capacity))
	}, nil)
	return err
}

// Publish implements [remote.Transport].
func (n *Node) Publish(ctx context.Context, name string, m remote.Msg) error {
	return n.askQueue(ctx, name, "publish to "+name, func(e *effects, q *queue) error { return q.publish(e, m) })
}

// End implements [remote.Transport].
func (n *Node) End(ctx context.Context, name string) error {
	return n.askQueue(ctx, name, "end "+name, func(e *effects, q *queue) error {
		q.ended = true
		q.deliver(e)
		return nil
	})
}

// Len implements [remote.Transport].
func (n *Node) Len(ctx context.Context, name string) (int, error) {
	return ask(ctx, n, "count the messages of "+name, func(e *effects, reply func(*effects, int, error)) {
		if q := n.b.queue(name); q != nil {
			reply(e, len(q.entries), nil)
		} else {
			reply(e, 0, notOpened(name))
		}
	}, nil)
}

// Ready implements [remote.Transport]. The broker can be used if it answers.
func (n *Node) Ready(ctx context.Context) error {
	_, err := ask(ctx, n, "ask for an answer", func(e *effects, reply func(*effects, struct{}, error)) {
		reply(e, struct{}{}, nil)
	}, nil)
	if err != nil {
		return fmt.Errorf("memory: node %s: %w", n.name, err)
	}
	return nil
}

// Lost implements [remote.Transport]. A node that is cut off does not know it.
func (n *Node) Lost() (since time.Time, err error) { return time.Time{}, nil }

// Leave implements [remote.Transport]. No messages were fetched ahead.
func (n *Node) Leave(string) {}

// Pull implements [remote.Transport].
func (n *Node) Pull(ctx context.Context, name string, credit int) ([]remote.Delivery, error) {
	var waits []*pull
	return ask(ctx, n, "pull from "+name, func(e *effects, reply func(*effects, []remote.Delivery, error)) {
		q := n.b.queue(name)
		if q == nil {
			reply(e, nil, notOpened(name))
			return
		}
		p := &pull{n, credit, reply}
		waits = append(waits, p)
		if !n.dead {
			q.pulls = append(q.pulls, p)
			q.deliver(e)
		}
	}, func() {
		if q := n.b.queue(name); q != nil {
			q.pulls = slices.DeleteFunc(q.pulls, func(p *pull) bool { return slices.Contains(waits, p) })
			q.arm(n.b.now())
		}
	})
}

// delivery implements remote.Delivery.
type delivery struct {
	n     *Node
	q     *queue
	x     *entry
	msg   remote.Msg
	lease int
	tries int
}

func (d *delivery) Msg() remote.Msg { return d.msg }

func (d *delivery) Tries() int { return d.tries }

// Ack also removes a message whose lease has ended, as NATS does.
func (d *delivery) Ack(ctx context.Context) error {
	return d.n.askQueue(ctx, d.q.name, "acknowledge "+d.q.name, func(e *effects, q *queue) error {
		q.remove(e, d.x)
		return nil
	})
}

func (d *delivery) Nak(delay time.Duration) {
	d.n.tell(func(e *effects) {
		if d.x.lease == d.lease {
			d.x.lease++
			d.x.due = d.q.b.now() + delay
			d.q.deliver(e)
		}
	})
}

func (d *delivery) Progress() {
	d.n.tell(func(e *effects) {
		if d.x.lease == d.lease {
			d.x.due = d.q.b.now() + d.q.b.info.Lease
			d.q.arm(d.q.b.now())
		}
	})
}

// server is a function of Serve.
type server struct {
	n       *Node
	subject string
	f       func(data []byte) []byte
	closed  atomic.Bool
}

// Close ends the serving. It takes no lock, because a cancel may call it: when a schedule fails at a decision, all
// fibers are cancelled, and decisions are made under the lock.
func (s *server) Close() error {
	s.closed.Store(true)
	return nil
}

// unserve removes the functions that the node serves.
func (n *Node) unserve() {
	n.b.servers = slices.DeleteFunc(n.b.servers, func(s *server) bool { return s.n == n })
}

// serving returns the servers of a subject.
func (b *Broker) serving(subject string) (found []*server) {
	b.servers = slices.DeleteFunc(b.servers, func(s *server) bool { return s.closed.Load() })
	for _, s := range b.servers {
		if s.subject == subject {
			found = append(found, s)
		}
	}
	return found
}

// there reports whether the node still serves the subject.
func (s *server) there() bool { return !s.closed.Load() && slices.Contains(s.n.b.servers, s) }

// Serve implements [remote.Transport].
func (n *Node) Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error) {
	if err := coir.Ended(ctx); err != nil {
		return nil, fmt.Errorf("memory: serve %s: %w", subject, err)
	}
	s := &server{n: n, subject: subject, f: f}
	n.b.cond.Lock()
	defer n.b.cond.Unlock()
	if n.dead {
		return nil, ErrCrashed
	}
	n.b.servers = append(n.b.servers, s)
	return s, nil
}

// call adds to e a call of the server's function. The caller holds the lock.
func (s *server) call(e *effects, data []byte, then func(answer []byte)) {
	data = slices.Clone(data)
	*e = append(*e, func() {
		if out := s.f(data); then != nil {
			then(out)
		}
	})
}

// Tell implements [remote.Transport].
func (n *Node) Tell(subject string, data []byte) {
	data = slices.Clone(data)
	n.tell(func(e *effects) {
		for _, s := range n.b.serving(subject) {
			s.n.send(e, func(e *effects) {
				if s.there() {
					s.call(e, data, nil)
				}
			})
		}
	})
}

// Request implements [remote.Transport].
func (n *Node) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	b := n.b
	data = slices.Clone(data)
	arrived, passed := false, false // a second arrival changes nothing
	return ask(ctx, n, "request to "+subject, func(e *effects, reply func(*effects, []byte, error)) {
		if arrived {
			return
		}
		arrived, b.calm = true, false
		all := b.serving(subject)
		if len(all) == 0 {
			reply(e, nil, fmt.Errorf("memory: request to %s: no node serves it: %w", subject, remote.ErrUnavailable))
			return
		}
		b.turn++
		s := all[b.turn%len(all)]
		s.n.send(e, func(e *effects) {
			if passed || !s.there() {
				return // the request arrived before, or the server has stopped meanwhile
			}
			passed = true
			s.call(e, data, func(answer []byte) {
				var e effects
				b.cond.Lock()
				s.n.send(&e, func(e *effects) { reply(e, answer, nil) })
				b.unlock(e)
			})
		})
	}, nil)
}

// Put implements [remote.Transport].
func (n *Node) Put(ctx context.Context, key string, data []byte) ([]byte, error) {
	data = slices.Clone(data)
	return ask(ctx, n, "put "+key, func(e *effects, reply func(*effects, []byte, error)) {
		n.b.calm = false
		if n.b.kept[key] == nil {
			n.b.kept[key] = data
		}
		reply(e, slices.Clone(n.b.kept[key]), nil)
	}, nil)
}

// Get implements [remote.Transport].
func (n *Node) Get(ctx context.Context, key string) ([]byte, error) {
	return ask(ctx, n, "get "+key, func(e *effects, reply func(*effects, []byte, error)) {
		reply(e, slices.Clone(n.b.kept[key]), nil)
	}, nil)
}
