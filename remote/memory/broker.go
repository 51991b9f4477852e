package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Broker stores the queues, and passes messages between nodes. [New] makes it.
//
// One lock guards the broker, its queues and its nodes. It is a coir.Cond, so that package sim sees which operations
// conflict. No operation between Lock and Unlock lets other fibers run: the consequences of a change are collected in
// effects, and happen after Unlock.
type Broker struct {
	settings
	ctx context.Context // never ends; identifies the simulation where no fiber runs

	cond    *coir.Cond
	queues  []*queue // in the order of opening: the order of a map would not replay
	servers []*server
	kept    map[string][]byte // the data of Put
	healed  bool              // no fault may happen, and those of before have ended
	turn    int               // chooses the next server for Request
}

// effects are the calls to make after Unlock: they end waits, and call functions of Serve.
type effects []func()

// Option is an option of [New].
type Option func(*settings)

type settings struct {
	info remote.Info
	left int  // faults that may still happen
	calm bool // no fault may happen yet
}

// WithLease sets how long a message is leased without progress. The default is 30 seconds.
func WithLease(d time.Duration) Option { return func(set *settings) { set.info.Lease = d } }

// WithWindow sets how long the ID of a message is remembered. The default is 2 minutes.
func WithWindow(d time.Duration) Option { return func(set *settings) { set.info.Window = d } }

// WithMeaning sets the meaning of a stored message that the broker promises. The default is [remote.MeaningDurable]: no
// fault loses a message that the broker has stored.
func WithMeaning(m remote.Meaning) Option { return func(set *settings) { set.info.Meaning = m } }

// WithFaults sets how many faults may happen in a schedule of a simulation. The default is 10. After the last one the
// network is well, except that a partition may last for a minute, and a late message may take 10 seconds: see
// [Broker.Heal].
func WithFaults(n int) Option { return func(set *settings) { set.left = n } }

// WithCalmStart lets no fault happen before the first message has reached the broker: by Publish, Request or Put. So a
// schedule does not use up its faults while the processes open their channels. The opening of a process that starts
// later, or again after a crash, has faults.
func WithCalmStart() Option { return func(set *settings) { set.calm = true } }

// New returns a broker without queues. A simulation makes one in each schedule.
func New(opts ...Option) *Broker {
	b := &Broker{
		settings: settings{
			info: remote.Info{Meaning: remote.MeaningDurable, Lease: 30 * time.Second, Window: 2 * time.Minute},
			left: 10,
		},
		ctx:  coir.Shield(context.Background()),
		cond: coir.NewCond(coir.WithName("broker")),
		kept: map[string][]byte{},
	}
	for _, o := range opts {
		o(&b.settings)
	}
	return b
}

// Len returns the number of messages that the queue holds, including those that are leased.
func (b *Broker) Len(name string) int {
	b.cond.Lock()
	defer b.cond.Unlock()
	if q := b.queue(name); q != nil {
		return len(q.entries)
	}
	return 0
}

// Heal ends the faults: from now on none happens, partitions are over, and no node crashes. So a test can check that a
// program succeeds in the end, within a short time. What was lost stays lost, and messages that are late arrive late.
func (b *Broker) Heal() {
	b.cond.Lock()
	defer b.cond.Unlock()
	b.healed = true
}

// unlock unlocks the broker, and then makes the calls in e.
func (b *Broker) unlock(e effects) {
	b.cond.Unlock()
	for _, f := range e {
		f()
	}
}

// now returns the time of the clock.
func (b *Broker) now() time.Duration { return coir.Now(b.ctx) }

// fault reports whether a fault happens now.
func (b *Broker) fault(name string) bool {
	if b.left == 0 || b.calm || b.healed || !coir.Simulated(b.ctx).Fault(name) {
		return false
	}
	b.left--
	return true
}

// choose returns a number below n, chosen by the schedule.
func (b *Broker) choose(n int) int { return coir.Simulated(b.ctx).Intn(n) }

// later calls f after d, with the lock held.
func (b *Broker) later(d time.Duration, f func(e *effects)) *alarm {
	a := &alarm{b: b, f: f}
	a.Start(b.ctx, a, d)
	return a
}

// alarm calls a function at a given time.
type alarm struct {
	coir.Alarm
	b *Broker
	f func(e *effects)
}

// Ended implements coir.Watcher.
func (a *alarm) Ended(error) {
	var e effects
	a.b.cond.Lock()
	a.f(&e)
	a.b.unlock(e)
}

// queue is a stored queue.
type queue struct {
	b        *Broker
	name     string
	capacity int
	ended    bool
	entries  []*entry // in the order of storing
	ids      []stored // of the last messages, in the order of storing
	late     int      // removed messages that still take a place
	pulls    []*pull  // the waiting calls of Pull
	alarm    *alarm   // for the next message that can be delivered; nil if there is none
}

// entry is a message of a queue.
type entry struct {
	msg   remote.Msg
	tries int
	due   time.Duration // the message can be delivered from this time on
	lease int           // counts the leases, so that an earlier one changes nothing
}

// stored holds the ID of a message, and the time at which it was stored.
type stored struct {
	id remote.ID
	at time.Duration
}

// pull is a call of Pull that waits at the broker.
type pull struct {
	node   *Node
	credit int
	reply  func(e *effects, ds []remote.Delivery, err error)
}

func (b *Broker) queue(name string) *queue {
	if i := slices.IndexFunc(b.queues, func(q *queue) bool { return q.name == name }); i >= 0 {
		return b.queues[i]
	}
	return nil
}

// open makes a queue, unless it exists.
func (b *Broker) open(name string, capacity int) error {
	q := b.queue(name)
	if q == nil {
		b.queues = append(b.queues, &queue{b: b, name: name, capacity: capacity})
		return nil
	}
	if q.capacity != capacity {
		return fmt.Errorf("memory: the queue %s has a capacity of %d: it cannot be opened with %d", name, q.capacity, capacity)
	}
	return nil
}

// notOpened returns the error of an operation on a queue that does not exist.
func notOpened(name string) error {
	return fmt.Errorf("memory: unknown queue %s: call Open first", name)
}

// publish stores a message.
func (q *queue) publish(e *effects, m remote.Msg) error {
	now := q.b.now()
	q.b.calm = false
	q.ids = slices.DeleteFunc(q.ids, func(s stored) bool { return s.at+q.b.info.Window <= now })
	switch {
	case q.ended:
		return fmt.Errorf("memory: publish to %s: %w", q.name, coir.ErrClosed)
	case slices.ContainsFunc(q.ids, func(s stored) bool { return s.id == m.ID }):
		return nil
	case len(q.entries)+q.late >= q.capacity:
		return fmt.Errorf("memory: publish to %s: %w", q.name, remote.ErrFull)
	}
	m.Data = slices.Clone(m.Data)
	q.ids = append(q.ids, stored{m.ID, now})
	q.entries = append(q.entries, &entry{msg: m})
	q.deliver(e)
	return nil
}

// remove removes a message, if it is in the queue.
func (q *queue) remove(e *effects, x *entry) {
	i := slices.Index(q.entries, x)
	if i < 0 {
		return
	}
	q.entries = slices.Delete(q.entries, i, i+1)
	if q.b.fault(faultLateRoom) {
		q.late++
		q.b.later(time.Duration(1+q.b.choose(3))*time.Millisecond, func(*effects) { q.late-- })
	}
	q.deliver(e)
}

// deliver leases messages to waiting pulls, while there are both.
func (q *queue) deliver(e *effects) {
	now := q.b.now()
	for len(q.pulls) > 0 {
		if q.ended && len(q.entries) == 0 {
			q.answer(e, nil, fmt.Errorf("memory: pull from %s: %w", q.name, coir.ErrClosed))
			continue
		}
		var ds []remote.Delivery
		for _, x := range q.entries {
			if x.due <= now && len(ds) < q.pulls[0].credit {
				x.lease++
				x.tries++
				x.due = now + q.b.info.Lease
				m := x.msg
				m.Data = slices.Clone(m.Data)
				ds = append(ds, &delivery{q.pulls[0].node, q, x, m, x.lease, x.tries})
			}
		}
		if len(ds) == 0 {
			break
		}
		q.answer(e, ds, nil)
	}
	q.arm(now)
}

// answer ends the first waiting pull.
func (q *queue) answer(e *effects, ds []remote.Delivery, err error) {
	p := q.pulls[0]
	q.pulls = q.pulls[1:]
	p.reply(e, ds, err)
}

// arm sets the alarm to the time at which the next message can be delivered to a waiting pull.
func (q *queue) arm(now time.Duration) {
	if q.alarm != nil {
		q.alarm.Stop() // if it has fired already, its call changes nothing
		q.alarm = nil
	}
	if len(q.pulls) == 0 || len(q.entries) == 0 {
		return
	}
	next := slices.MinFunc(q.entries, func(x, y *entry) int { return cmp.Compare(x.due, y.due) })
	q.alarm = q.b.later(max(next.due-now, 0), q.deliver)
}

// restart stops the broker abruptly, and starts it again. Leases and unanswered requests are lost.
func (b *Broker) restart(e *effects) {
	for _, q := range b.queues {
		q.pulls = nil
		for _, x := range q.entries {
			x.due = 0
			x.lease++
		}
		q.deliver(e)
	}
}
