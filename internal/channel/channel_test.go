package channel

// One goroutine calls each operation under the lock, and the waits are those of sleepers, which never sleep. So the
// tests can compare the channel step by step with a slice and two lists.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/flavor"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/wait"
)

// sleeper is one wait. It counts how often it is readied, which a channel never does.
type sleeper struct {
	park.Parker
	cell   *wait.Cell[int]
	ticket park.Ticket
	side   Side
	value  int         // what it sends, or is to be given
	ended  park.Reason // None while it waits
	parked bool        // it has gone to sleep, and not only armed

	readied int
}

func (s *sleeper) Ready(*park.Parker, park.Place) { s.readied++ }

func (s *sleeper) Late(*park.Parker) {}

// newSleeper arms a wait.
func newSleeper(side Side, v int, cell *wait.Cell[int]) *sleeper {
	s := &sleeper{side: side, value: v, cell: cell}
	s.Init(s)
	s.ticket = s.Arm()
	return s
}

// park commits the wait if yes is true, as a waiter does after publishing.
func (s *sleeper) park(yes bool) {
	s.parked = yes && s.Commit()
}

// parker returns what a claim of the wait returns: the parker to ready if the wait sleeps.
func (s *sleeper) parker() *park.Parker {
	if s != nil && s.parked {
		return &s.Parker
	}
	return nil
}

// onlooker is a watcher.
type onlooker struct {
	park.Parker
	Watch
	side   Side
	sleeps bool // it returns its parker when it is notified
	gone   bool
	told   int
}

func newOnlooker(side Side, sleeps bool) *onlooker {
	o := &onlooker{side: side, sleeps: sleeps}
	o.Watcher = o
	return o
}

func (o *onlooker) BecameReady() (*park.Parker, bool) {
	o.told++
	if o.sleeps && !o.gone {
		return &o.Parker, false
	}
	return nil, o.gone
}

func (o *onlooker) Gone() bool { return o.gone }

// reference is the simplest possible channel.
type reference struct {
	limit   int
	over    Overflow
	state   State
	values  []int
	waiting [2][]*sleeper // including those that have ended and are not withdrawn yet
	watch   [2][]*onlooker

	told  []*park.Parker // to ready, of watchers
	stats Stats
}

// next removes and returns the oldest wait of a side that has not ended. It drops the ended ones before it.
func (r *reference) next(side Side) *sleeper {
	for len(r.waiting[side]) > 0 {
		s := r.waiting[side][0]
		r.waiting[side] = r.waiting[side][1:]
		if s.ended == park.None {
			return s
		}
	}
	return nil
}

// tell notifies the watchers of a side, and drops those that are gone.
func (r *reference) tell(side Side) {
	r.watch[side] = slices.DeleteFunc(r.watch[side], func(o *onlooker) bool { return o.gone })
	for _, o := range r.watch[side] {
		if o.sleeps {
			r.told = append(r.told, &o.Parker)
		}
	}
}

func (r *reference) put(v int) (park.Reason, *sleeper) {
	if r.state != Open {
		return park.Closed, nil
	}
	if s := r.next(Receiving); s != nil {
		s.ended, s.value = park.Data, v
		r.stats.Sent++
		r.stats.Received++
		return park.Data, s
	}
	if len(r.values) >= r.limit {
		return park.None, nil
	}
	r.values = append(r.values, v)
	r.stats.Sent++
	r.stats.High = max(r.stats.High, len(r.values))
	r.tell(Receiving)
	return park.Data, nil
}

func (r *reference) take() (v int, _ park.Reason, _ *sleeper) {
	if r.state == Aborted {
		return 0, park.Closed, nil
	}
	full := len(r.values) > 0
	if full {
		v, r.values = r.values[0], r.values[1:]
	}
	if s := r.next(Sending); s != nil {
		s.ended = park.Data
		r.stats.Sent++
		r.stats.Received++
		if !full {
			return s.value, park.Data, s
		}
		r.values = append(r.values, s.value)
		return v, park.Data, s
	}
	switch {
	case full:
		r.stats.Received++
		r.tell(Sending)
		return v, park.Data, nil
	case r.state == Closed:
		return 0, park.Closed, nil
	}
	return 0, park.None, nil
}

func (r *reference) displace(v int) (lost int, _ park.Reason) {
	if r.over == Fail {
		r.stats.Side[Sending].WouldBlock++
		return 0, park.Refused
	}
	r.stats.Sent++
	r.stats.Dropped++
	if r.over == DropOldest && len(r.values) > 0 {
		lost = r.values[0]
		r.values = append(r.values[1:], v)
		return lost, park.Data
	}
	return v, park.Data
}

// ready reports whether an operation need not wait, according to the queues.
func (r *reference) ready(side Side) bool {
	if side == Sending {
		return len(r.values) < r.limit || len(r.waiting[Receiving]) > 0 || r.state != Open || r.over != Wait
	}
	return len(r.values) > 0 || len(r.waiting[Sending]) > 0 || r.state != Open
}

// now returns what Stats must return.
func (r *reference) now() Stats {
	s := r.stats
	s.State, s.Len = r.state, len(r.values)
	if r.state == Aborted {
		s.Len, s.Dropped = 0, s.Dropped+uint64(len(r.values))
	}
	for side := range s.Side {
		s.Side[side].Waiting = len(r.waiting[side])
	}
	return s
}

// script plays random operations on a channel and on the reference.
type script struct {
	t    *testing.T
	rnd  *rand.Rand
	seed uint64
	c    Chan[int]
	ref  reference
	kit  wait.Kit
	last int         // value sent
	lost []int       // values that were not delivered
	all  []*sleeper  // not finished yet
	rows []*onlooker // not withdrawn
}

func (s *script) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// ready checks the parkers that an operation returns to be readied: that of the wait it ended, and those of watchers in
// any order.
func (s *script) ready(got *park.Parker, ended *sleeper) {
	s.t.Helper()
	var want []*park.Parker
	if p := ended.parker(); p != nil {
		want = append(want, p)
	}
	want = append(want, s.ref.told...)
	s.ref.told = nil
	var all []*park.Parker
	if got != nil {
		all = append(all, got)
	}
	all = append(all, woken(&s.c.Core)...)
	for _, p := range want {
		if i := slices.Index(all, p); i >= 0 {
			all = slices.Delete(all, i, i+1)
		} else {
			s.fail("%p is not to be readied, of %v", p, want)
		}
	}
	if len(all) > 0 {
		s.fail("to ready, and should not be: %v", all)
	}
}

// putCase is like put, as a select does it, without knowing the type.
func (s *script) putCase() {
	s.last++
	v := s.last
	want, ended := s.ref.put(v)
	var lost []int
	switch {
	case want == park.Closed:
		s.ref.stats.Side[Sending].Closed++
	case want == park.None && s.ref.over != Wait:
		var l int
		if l, want = s.ref.displace(v); want == park.Data {
			lost = append(lost, l)
		}
	}
	got, ready, rest := s.c.Port().Send(v)
	s.lost = nil
	if rest != nil {
		rest()
	}
	if got != want || !slices.Equal(s.lost, lost) {
		s.fail("Send: %v, lost %d; want %v, %d", got, s.lost, want, lost)
	}
	s.ready(ready, ended)
}

// takeCase is like take, as a select does it.
func (s *script) takeCase() {
	wantV, want, ended := s.ref.take()
	if want == park.Closed {
		s.ref.stats.Side[Receiving].Closed++
	}
	v := 0
	got, ready := s.c.Port().Recv(unsafe.Pointer(&v))
	if got != want || v != wantV {
		s.fail("Recv: %d, %v; want %d, %v", v, got, wantV, want)
	}
	s.ready(ready, ended)
}

func (s *script) put() {
	s.last++
	v := s.last
	want, ended := s.ref.put(v)
	got, ready := s.c.Put(v)
	if got != want {
		s.fail("Put: %v, want %v", got, want)
	}
	s.ready(ready, ended)
	switch {
	case got != park.None:
	case s.c.Overflows():
		lost, r := s.c.Displace(v)
		if wantLost, wantR := s.ref.displace(v); lost != wantLost || r != wantR {
			s.fail("Displace: lost %d, %v; want %d, %v", lost, r, wantLost, wantR)
		}
	case s.rnd.IntN(4) > 0: // otherwise it gives up
		cell := wait.Get[int](&s.kit, s.c.Cells())
		w := newSleeper(Sending, v, cell)
		s.ref.tell(Receiving)
		s.c.PublishSend(cell, v, &w.Parker, w.ticket)
		s.published(w)
	}
}

func (s *script) take() {
	wantV, want, ended := s.ref.take()
	v, got, ready := s.c.Take()
	if got != want || v != wantV {
		s.fail("Take: %d, %v; want %d, %v", v, got, wantV, want)
	}
	s.ready(ready, ended)
	if got == park.None && s.rnd.IntN(4) > 0 {
		cell := wait.Get[int](&s.kit, s.c.Cells())
		w := newSleeper(Receiving, 0, cell)
		s.ref.tell(Sending)
		s.c.PublishRecv(cell, &w.Parker, w.ticket)
		s.published(w)
	}
}

func (s *script) published(w *sleeper) {
	s.ready(nil, nil)
	w.park(s.rnd.IntN(2) == 0)
	s.ref.waiting[w.side] = append(s.ref.waiting[w.side], w)
	s.all = append(s.all, w)
}

// cancel ends a wait from outside. The wait stays in its queue.
func (s *script) cancel(w *sleeper) {
	r := park.Cancelled
	if s.rnd.IntN(2) == 0 {
		r = park.TimedOut
	}
	if won := w.Claim(w.ticket, r) < park.Lost; won != (w.ended == park.None) {
		s.fail("a cancel of a wait that ended for %v has won: %v", w.ended, won)
	}
	if w.ended == park.None {
		w.ended = r
	}
}

// finish is what a waiter does once it is awake. The lock is free.
func (s *script) finish(i int) {
	w := s.all[i]
	s.all = slices.Delete(s.all, i, i+1)
	if r := w.Reason().Kind(); r != w.ended {
		s.fail("a wait ended for %v, want %v", r, w.ended)
	}
	if w.readied > 0 {
		s.fail("the channel has readied a parker")
	}
	want := 0
	f := &s.ref.stats.Side[w.side].Failures
	switch w.ended {
	case park.Data:
		if w.side == Receiving {
			want = w.value
		}
	case park.Cancelled:
		f.Cancelled++
	case park.TimedOut:
		f.TimedOut++
	case park.Closed:
		f.Closed++
	}
	if v := s.c.Finish(w.side, w.cell, w.ended); v != want {
		s.fail("a wait of side %d that ended for %v was given %d, want %d", w.side, w.ended, v, want)
	}
	for side, list := range s.ref.waiting {
		s.ref.waiting[side] = slices.DeleteFunc(list, func(o *sleeper) bool { return o == w })
	}
	if w.cell.Value != 0 || w.cell.Parker != nil {
		s.fail("the cell keeps %d and the parker %p", w.cell.Value, w.cell.Parker)
	}
	s.kit.Put(&w.cell.Node)
}

func (s *script) end(to State) {
	if s.ref.state < to {
		s.c.Close(to)
		s.ref.state = to
		s.ref.tell(Sending)
		s.ref.tell(Receiving)
		s.c.TellBoth()
		s.ready(nil, nil)
	}
	var want []*park.Parker
	for _, side := range []Side{Receiving, Sending} {
		if side == Sending && s.ref.state != Aborted {
			continue
		}
		for w := s.ref.next(side); w != nil; w = s.ref.next(side) {
			w.ended = park.Closed
			if p := w.parker(); p != nil {
				want = append(want, p)
			}
		}
	}
	var got []*park.Parker
	for {
		var batch Wakes
		s.c.EndWaits(&batch)
		got = append(got, batch.All()...)
		if !batch.Full() {
			break
		}
	}
	if !slices.Equal(got, want) {
		s.fail("Close(%d) ends the waits of %v, want %v", to, got, want)
	}
}

func (s *script) watch() {
	if len(s.rows) > 0 && s.rnd.IntN(2) == 0 {
		i := s.rnd.IntN(len(s.rows))
		o := s.rows[i]
		s.rows = slices.Delete(s.rows, i, i+1)
		if s.rnd.IntN(2) == 0 {
			o.gone = true // the channel notices
			return
		}
		s.c.WithdrawWatch(o.side, &o.Watch)
		if !o.Ended() {
			s.fail("a watch that was withdrawn has not ended")
		}
		list := &s.ref.watch[o.side]
		*list = slices.DeleteFunc(*list, func(other *onlooker) bool { return other == o })
		return
	}
	o := newOnlooker(Side(s.rnd.IntN(2)), s.rnd.IntN(2) == 0)
	s.c.Watch(o.side, &o.Watch)
	s.ref.watch[o.side] = append(s.ref.watch[o.side], o)
	s.rows = append(s.rows, o)
}

func (s *script) step() {
	s.c.Lock()
	switch n := s.rnd.IntN(100); {
	case n < 25:
		s.put()
	case n < 35:
		s.putCase()
	case n < 60:
		s.take()
	case n < 70:
		s.takeCase()
	case n < 80 && len(s.all) > 0:
		s.cancel(s.all[s.rnd.IntN(len(s.all))])
	case n < 82 && s.rnd.IntN(10) == 0:
		s.end([]State{Closed, Closed, Aborted}[s.rnd.IntN(3)])
	case n < 86 && s.ref.limit%2 == 1: // some channels are not watched
		s.watch()
	}
	if s.ref.state == Aborted && len(s.ref.values) > 0 {
		v, ok := s.c.Discard()
		if !ok || v != s.ref.values[0] {
			s.fail("Discard: %d, %v; want %d", v, ok, s.ref.values[0])
		}
		s.ref.values = s.ref.values[1:]
		s.ref.stats.Dropped++
	}
	for _, side := range []Side{Sending, Receiving} {
		if got, want := s.c.Ready(side), s.ref.ready(side); got != want {
			s.fail("Ready(%d): %v, want %v", side, got, want)
		}
	}
	s.c.Unlock()
	if i := slices.IndexFunc(s.all, func(w *sleeper) bool { return w.ended != park.None }); i >= 0 && s.rnd.IntN(3) > 0 {
		s.finish(i)
	}
	if got, want := s.c.Stats(), s.ref.now(); got != want {
		s.fail("Stats\n     %+v\nwant %+v", got, want)
	}
}

// Random operations, waits that were cancelled but not yet withdrawn, closes and watchers: the channel returns, counts
// and delivers the same as the reference, and names the same parkers to ready. It readies none itself.
//
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: CH-10 (room goes to the longest-waiting sender)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-33 (a receive on a drained closed channel fails at once)
// Spec: CH-35 (close is graceful)
// Spec: CH-39 (close claims waiters as any waker does)
// Spec: CH-56 (a cancelled wait takes no value and no place)
func TestAgainstASlice(t *testing.T) {
	scripts := 60
	if testing.Short() {
		scripts = 10
	}
	for _, limit := range []int{0, 1, 2, 3, NoLimit} {
		for over := Wait; over <= Fail; over++ {
			t.Run(fmt.Sprintf("limit=%d/over=%d", limit, over), func(t *testing.T) {
				for range scripts {
					play(t, rand.Uint64(), limit, over)
				}
			})
		}
	}
}

func play(t *testing.T, seed uint64, limit int, over Overflow) {
	t.Helper()
	s := &script{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0))}
	s.ref.limit, s.ref.over = limit, over
	s.c.Init(limit, storeFor(limit), over, nil)
	s.c.Undelivered = func(v int) { s.lost = append(s.lost, v) }
	for range 300 {
		s.step()
	}
}

// storeFor returns the store of a channel, or nil for a ring.
func storeFor(limit int) flavor.Store[int] {
	if limit == NoLimit {
		return new(flavor.List[int])
	}
	return nil
}

// newChan makes a channel.
func newChan(limit int) *Chan[int] {
	c := new(Chan[int])
	c.Init(limit, storeFor(limit), Wait, nil)
	return c
}

// waiting publishes a wait that sleeps. The caller holds the lock.
func waiting(c *Chan[int], side Side, v int) *sleeper {
	s := newSleeper(side, v, &wait.Cell[int]{})
	if side == Sending {
		c.PublishSend(s.cell, v, &s.Parker, s.ticket)
	} else {
		c.PublishRecv(s.cell, &s.Parker, s.ticket)
	}
	s.park(true)
	return s
}

// A send that meets a cancelled receiver clears the cell, and gives its value to the next receiver or to the store, or
// keeps it. The receiver then withdraws, and no value is lost.
//
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-56 (a cancelled wait takes no value and no place)
// Spec: PK-31 (a lost claim takes its value back)
func TestLostClaimTakesItsValueBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limit  int
		next   bool // another receiver waits
		reason park.Reason
	}{
		{"to the next receiver", 0, true, park.Data},
		{"to the store", 1, false, park.Data},
		{"to a store without a limit", NoLimit, false, park.Data},
		{"to the sender", 0, false, park.None},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newChan(tt.limit)
			c.Lock()
			first := waiting(c, Receiving, 0)
			var second *sleeper
			if tt.next {
				second = waiting(c, Receiving, 0)
			}
			first.Claim(first.ticket, park.Cancelled)
			r, ready := c.Put(7)
			if r != tt.reason || ready != second.parker() {
				t.Errorf("Put: %v, to ready %p; want %v, %p", r, ready, tt.reason, second.parker())
			}
			if first.cell.Value != 0 {
				t.Errorf("%d stays in the cell of the cancelled receiver", first.cell.Value)
			}
			if tt.next && second.cell.Value != 7 {
				t.Errorf("the next receiver has %d", second.cell.Value)
			}
			c.Unlock()
			if v := c.Finish(Receiving, first.cell, park.Cancelled); v != 0 {
				t.Errorf("the cancelled receiver was given %d", v)
			}
			if n := c.Stats().Side[Receiving].Cancelled; n != 1 {
				t.Errorf("%d receives were counted as cancelled", n)
			}
			if v, r, _ := c.Take(); tt.limit != 0 && (v != 7 || r != park.Data) {
				t.Errorf("the store has %d, %v", v, r)
			}
		})
	}
}

// A receiver that withdraws from the middle of the queue leaves the others in their order, and the values go to them.
//
// Spec: CH-19 (waiters are served in order)
func TestWithdrawnReceiverLosesNothing(t *testing.T) {
	for gone := range 3 {
		c := newChan(0)
		c.Lock()
		all := []*sleeper{waiting(c, Receiving, 0), waiting(c, Receiving, 0), waiting(c, Receiving, 0)}
		all[gone].Claim(all[gone].ticket, park.TimedOut)
		c.Unlock()
		c.Finish(Receiving, all[gone].cell, park.TimedOut)
		rest := slices.Delete(slices.Clone(all), gone, gone+1)
		c.Lock()
		for i, w := range rest {
			if r, ready := c.Put(i + 1); r != park.Data || ready != &w.Parker {
				t.Errorf("without %d: Put %d: %v, to ready %p, want %p", gone, i+1, r, ready, &w.Parker)
			}
		}
		if r, _ := c.Put(9); r != park.None {
			t.Errorf("without %d: a third value went to a receiver: %v", gone, r)
		}
		c.Unlock()
		for i, w := range rest {
			if v := c.Finish(Receiving, w.cell, park.Data); v != i+1 {
				t.Errorf("without %d: receiver %d was given %d", gone, i, v)
			}
		}
		if all[gone].cell.Value != 0 {
			t.Errorf("without %d: its cell has %d", gone, all[gone].cell.Value)
		}
	}
}

// A case whose index does not fit the word is marked if it won, and not if it was withdrawn.
func TestWithdrawCaseTellsWhetherItWon(t *testing.T) {
	for _, won := range []bool{false, true} {
		c := newChan(0)
		c.Lock()
		s := newSleeper(Receiving, 0, &wait.Cell[int]{})
		s.cell.Index = park.MaxIndex
		c.PublishRecv(s.cell, &s.Parker, s.ticket)
		if won {
			c.Put(1)
		}
		c.Unlock()
		if got := c.WithdrawCase(Receiving, &s.cell.Node); got != won {
			t.Errorf("WithdrawCase: %v, want %v", got, won)
		}
		if n := c.Stats().Side[Receiving].Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
	}
}

// woken returns the parkers of the watchers that operations have notified.
func woken(c *Core) (all []*park.Parker) {
	for w := c.TakeWoken(); w != nil; {
		p, next := w.Next()
		all = append(all, p)
		w = next
	}
	return all
}

// TakeWoken returns each sleeping watcher once. A watcher that is gone is not notified again.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestWatchersAreTold(t *testing.T) {
	c := newChan(2)
	c.Lock()
	defer c.Unlock()
	all := []*onlooker{newOnlooker(Receiving, true), newOnlooker(Receiving, true), newOnlooker(Receiving, true)}
	other := newOnlooker(Sending, true)
	c.Watch(Sending, &other.Watch)
	for _, o := range all {
		c.Watch(Receiving, &o.Watch)
	}
	all[1].gone = true
	for turn := range 2 {
		_, ready := c.Put(turn)
		told := woken(&c.Core)
		if ready != nil || !slices.Equal(told, []*park.Parker{&all[0].Parker, &all[2].Parker}) {
			t.Errorf("turn %d: to ready %p and %v", turn, ready, told)
		}
		if again := woken(&c.Core); again != nil {
			t.Errorf("turn %d: TakeWoken again: %v", turn, again)
		}
	}
	if all[1].told != 1 || !all[1].Ended() {
		t.Errorf("a watcher that is gone was told %d times; its watch has ended: %v", all[1].told, all[1].Ended())
	}
	if other.told != 0 {
		t.Error("the watcher of the other side was told")
	}
	c.Take()
	if told := woken(&c.Core); !slices.Equal(told, []*park.Parker{&other.Parker}) {
		t.Errorf("after a Take: to ready %p, want %p", told, &other.Parker)
	}
	c.TellBoth()
	first := c.TakeWoken()
	if (*Watch)(nil).Append(first) != first || first.Append(nil) != first {
		t.Error("Append of nothing changes the list")
	}
	told := 0
	for w := first; w != nil; told++ {
		_, w = w.Next()
	}
	if told != 3 {
		t.Errorf("TellBoth: %d told", told)
	}
}

// Watchers that are gone do not accumulate on an unused channel.
func TestGoneWatchersAreDropped(t *testing.T) {
	c := newChan(0)
	c.Lock()
	defer c.Unlock()
	here := newOnlooker(Receiving, true)
	c.Watch(Receiving, &here.Watch)
	var all []*onlooker
	for range 1000 {
		o := newOnlooker(Receiving, true)
		c.Watch(Receiving, &o.Watch)
		o.gone = true
		all = append(all, o)
	}
	kept := len(slices.DeleteFunc(all, func(o *onlooker) bool { return o.Ended() }))
	if kept > 16 {
		t.Errorf("%d watches are kept whose watchers are gone", kept)
	}
	if here.Ended() || here.told != 0 {
		t.Errorf("the watcher that is not gone: ended %v, told %d times", here.Ended(), here.told)
	}
}

// ticks is a clock that is set by hand.
type ticks struct {
	clock.Clock
	now int64
}

func (c *ticks) Now() int64 { return c.now }

// A channel with a clock records its first and last transfer, and when the first waiter of each side began to wait.
func TestTimedChannelNotesTimes(t *testing.T) {
	clk := new(ticks)
	c := new(Chan[int])
	c.Init(1, nil, Wait, clk)
	if s := c.Stats(); !s.Timed || s.Used {
		t.Errorf("before its use: %+v", s)
	}
	c.Lock()
	for now, do := range []func(){
		func() { c.Put(1) },
		func() { waiting(c, Sending, 2) },
		func() { waiting(c, Sending, 3) },
		func() { c.Take() },
	} {
		clk.now = int64(now + 1)
		do()
	}
	clk.now = 9
	c.Unlock()
	s := c.Stats()
	if !s.Used || s.First != 1 || s.Last != 4 || s.Now != 9 || s.Side[Sending].Since != 3 || s.Side[Sending].Waiting != 1 {
		t.Errorf("c.Stats() = %+v, want Used, First 1, Last 4, Now 9, Side[Sending].Since 3, Side[Sending].Waiting 1", s)
	}
}

// AdmitWaiting moves the values of waiting senders into the store in order, a batch at a time, and skips senders that
// were cancelled.
func TestAdmitWaiting(t *testing.T) {
	const senders = 80
	c := new(Chan[int])
	c.Init(1, new(flavor.List[int]), Wait, nil)
	c.Lock()
	defer c.Unlock()
	c.Put(0)
	var all []*sleeper
	for i := range senders {
		all = append(all, waiting(c, Sending, i+1))
	}
	all[5].Claim(all[5].ticket, park.Cancelled)
	batches, admitted := 0, 0
	for more := true; more; batches++ {
		var batch Wakes
		c.AdmitWaiting(&batch)
		admitted += len(batch.All())
		more = batch.Full()
	}
	if admitted != senders-1 || batches != 3 || c.Len() != senders {
		t.Errorf("%d admitted in %d batches; the store holds %d", admitted, batches, c.Len())
	}
	for i := range senders + 1 {
		if i == 6 {
			continue
		}
		if v, r, _ := c.Take(); v != i || r != park.Data {
			t.Fatalf("took %d, %v; want %d", v, r, i)
		}
	}
}
