package coir_test

// The large soaks of channels. Numbered elements go from many producers to many consumers, fibers and goroutines, by
// every operation, while scopes are cancelled, time limits pass, and channels are closed and aborted. Each element must
// end in exactly one of three ways: received, handed to OnUndelivered, or reported to its sender as not sent. The other
// two soaks are about memory: waits that were given up, and a burst in an unbounded channel, leave nothing behind.
//
// make soak passes a hundred million elements through each kind; an ordinary run passes a small part of that.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
)

// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-40 (no value is lost silently)
// Spec: CH-55 (a value that was claimed is reported)
// Spec: CH-56 (a cancelled wait takes no value and no place)
//
// Spec: SC-50 (one set of queues serves all patterns)
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-19 (a late completion stays with its sender)
// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: BU-01 (a buffer has one owner)
func TestNothingIsLostAndNothingComesTwice(t *testing.T) {
	for _, kind := range []struct {
		name     string
		capacity int
		over     coir.OverflowPolicy
	}{
		{"rendezvous", 0, coir.OverflowWait},
		{"bounded", 64, coir.OverflowWait},
		{"unbounded", coir.Unbounded, coir.OverflowWait},
		{"conflated", coir.Conflated, coir.OverflowWait},
		{"drop oldest", 64, coir.OverflowDropOldest},
		{"drop newest", 64, coir.OverflowDropNewest},
		{"fail", 64, coir.OverflowFail},
	} {
		t.Run(kind.name, func(t *testing.T) {
			passElements(t, kind.name, kind.capacity, kind.over, sized(waveSize, 10*waveSize, 100_000_000))
		})
	}
}

// waveSize is how many elements pass through one pair of channels.
const waveSize = 20_000

// passElements sends the elements in waves, and checks that every kind of disturbance has happened.
func passElements(t *testing.T, kind string, capacity int, over coir.OverflowPolicy, total int) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	rt := newRuntime(t)
	var sum tally
	start := time.Now()
	told := start
	total = max(total, waveSize)
	for at := 0; at < total; at += waveSize {
		w := newWave(rt, rnd, capacity, over)
		done := goes(func() { w.run(t.Context()) })
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("seed %d: a wave hangs\n%+v\n%+v\n%s", seed, w.ch[0].Stats(), w.ch[1].Stats(), stacks())
		}
		if err := w.account(&sum); err != nil {
			t.Fatalf("seed %d, wave %d: %v\n%+v\n%+v", seed, at/waveSize, err, w.ch[0].Stats(), w.ch[1].Stats())
		}
		if soak.On() && time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%s: %d of %d elements in %v\n", kind, at+waveSize, total, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d elements in %v: %+v", total, time.Since(start), sum)
	if total >= 10*waveSize && (sum.Received == 0 || sum.Cancelled == 0 || sum.TimedOut == 0 || sum.Closed == 0) {
		t.Errorf("seed %d: something never happened: %+v", seed, sum)
	}
}

// tally counts the fates of elements and the disturbances of operations.
type tally struct {
	Received, Undelivered, Failed           int
	WouldBlock, TimedOut, Cancelled, Closed uint64
}

// element is a number and its inverse: an element mixed from two would show.
type element struct{ id, twin uint64 }

// The fates of an element.
const (
	received uint32 = 1 + iota
	undelivered
	failed
)

// wave is one pair of channels and their users.
type wave struct {
	rt     *coir.Runtime
	ch     [2]*coir.Chan[element]
	fates  [waveSize]atomic.Uint32
	next   atomic.Int64 // the next element for a producer to take
	cut    int64        // the producer that takes this element ends the channels first
	ending int
	ended  [2]atomic.Int32 // how many calls reported that they closed the channel
	scopes [producers + consumers]atomic.Pointer[context.CancelFunc]
	seeds  [producers + consumers]uint64
	fault  atomic.Pointer[string]
}

const (
	producers = 8
	consumers = 8
	batch     = 32 // elements that a producer takes at a time
)

// How a wave ends.
const (
	byClose = iota
	byAbort
	byBoth
	endings
)

var errCut = errors.New("cut")

func newWave(rt *coir.Runtime, rnd *rand.Rand, capacity int, over coir.OverflowPolicy) *wave {
	w := &wave{rt: rt, ending: rnd.IntN(endings), cut: waveSize}
	if rnd.IntN(4) > 0 {
		w.cut -= rnd.Int64N(waveSize / 16)
	}
	lost := coir.OnUndelivered(func(e element) { w.settle(e, undelivered) })
	for i := range w.ch {
		w.ch[i] = coir.NewChan[element](capacity, coir.WithOverflow(over), lost)
	}
	for i := range w.seeds {
		w.seeds[i] = rnd.Uint64()
	}
	return w
}

// settle records the fate of an element, which must not have had one.
func (w *wave) settle(e element, fate uint32) {
	switch {
	case e.twin != ^e.id || e.id >= waveSize:
		w.blame("an element that nobody sent: %+v, fate %d", e, fate)
	default:
		if was := w.fates[e.id].Swap(fate); was != 0 {
			w.blame("element %d has fate %d, and then fate %d", e.id, was, fate)
		}
	}
}

func (w *wave) blame(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.fault.CompareAndSwap(nil, &text)
}

// run starts all actors, half of them as fibers, and returns when all have ended.
func (w *wave) run(ctx context.Context) {
	var sent, got sync.WaitGroup
	for i := producers / 2; i < producers; i++ {
		sent.Go(func() { w.actor(ctx, i).produce() })
	}
	for i := producers + consumers/2; i < producers+consumers; i++ {
		got.Go(func() { w.actor(ctx, i).consume(i%2 == 0) })
	}
	err := w.rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		all := make([]*coir.Fiber, producers/2)
		for i := range all {
			all[i] = n.Go("producer", func(ctx context.Context) error { w.actor(ctx, i).produce(); return nil })
		}
		for i := producers; i < producers+consumers/2; i++ {
			n.Go("consumer", func(ctx context.Context) error {
				if a := w.actor(ctx, i); i == producers {
					a.watch()
				} else {
					a.consume(false)
				}
				return nil
			})
		}
		for _, f := range all {
			if err := f.Wait(ctx); err != nil {
				return err
			}
		}
		blocking(ctx, sent.Wait)
		w.end()
		return nil
	})
	got.Wait()
	if err != nil {
		w.blame("Run: %v", err)
	}
}

// end ends the channels.
func (w *wave) end() {
	for i, c := range w.ch {
		if w.ending != byAbort && c.Close() {
			w.ended[i].Add(1)
		}
		if w.ending != byClose && c.Abort(errCut) {
			w.ended[i].Add(1)
		}
	}
}

// account checks that every element has a fate and that the counters of the channels agree.
func (w *wave) account(sum *tally) error {
	if fault := w.fault.Load(); fault != nil {
		return errors.New(*fault)
	}
	var fates [failed + 1]int
	for i := range w.fates {
		fates[w.fates[i].Load()]++
	}
	if fates[0] != 0 {
		return fmt.Errorf("%d elements are lost; %d received, %d undelivered, %d failed",
			fates[0], fates[received], fates[undelivered], fates[failed])
	}
	sum.Received += fates[received]
	sum.Undelivered += fates[undelivered]
	sum.Failed += fates[failed]
	var in, out, dropped int
	for i, c := range w.ch {
		s := c.Stats()
		if s.Len != 0 || s.Send.Waiting != 0 || s.Recv.Waiting != 0 || !s.Closed || w.ended[i].Load() != 1 {
			return fmt.Errorf("channel %d is not as an ended one should be; %d calls closed it", i, w.ended[i].Load())
		}
		in, out, dropped = in+int(s.Sent), out+int(s.Received), dropped+int(s.Dropped)
		for _, side := range []coir.SideStats{s.Send, s.Recv} {
			sum.WouldBlock += side.WouldBlock
			sum.TimedOut += side.TimedOut
			sum.Cancelled += side.Cancelled
			sum.Closed += side.Closed
		}
	}
	if in != fates[received]+fates[undelivered] || out != fates[received] || dropped != fates[undelivered] {
		return fmt.Errorf("counted %d sent, %d received, %d dropped; it was %d received, %d undelivered, %d failed",
			in, out, dropped, fates[received], fates[undelivered], fates[failed])
	}
	return nil
}

// actor is a producer or a consumer. It works in a scope that any actor may cancel; then it makes a new one.
type actor struct {
	w    *wave
	i    int
	rnd  *rand.Rand
	base context.Context
	ctx  context.Context
	over [2]bool // the channel has ended and holds nothing
}

func (w *wave) actor(ctx context.Context, i int) *actor {
	a := &actor{w: w, i: i, rnd: rand.New(rand.NewPCG(w.seeds[i], 0)), base: ctx}
	a.renew()
	return a
}

// renew makes a new scope, by coir or by the standard library.
func (a *actor) renew() {
	var cancel context.CancelFunc
	if a.rnd.IntN(4) == 0 {
		a.ctx, cancel = context.WithCancel(a.base)
	} else {
		ctx, end := coir.WithCancelCause(a.base)
		a.ctx, cancel = ctx, func() { end(nil) }
	}
	a.w.scopes[a.i].Store(&cancel)
}

// leave ends the actor's scope.
func (a *actor) leave() {
	if cancel := a.w.scopes[a.i].Swap(nil); cancel != nil {
		(*cancel)()
	}
}

// chance returns true once in n times.
func (a *actor) chance(n int) bool { return a.rnd.IntN(n) == 0 }

// strike sometimes cancels an actor.
func (a *actor) strike() {
	if a.chance(64) {
		if cancel := a.w.scopes[a.rnd.IntN(len(a.w.scopes))].Swap(nil); cancel != nil {
			(*cancel)()
		}
	}
}

// moment returns a time limit that passes soon, or has passed.
func (a *actor) moment() time.Duration {
	if a.chance(2) {
		return time.Duration(a.rnd.IntN(2)) * time.Nanosecond
	}
	return time.Duration(a.rnd.IntN(20)) * time.Microsecond
}

// one returns mostly the first channel.
func (a *actor) one() int {
	if a.chance(4) {
		return 1
	}
	return 0
}

// produce sends elements, each once, until there are none left.
func (a *actor) produce() {
	defer a.leave()
	var store [batch]element
	for {
		first := a.w.next.Add(batch) - batch
		if first >= waveSize {
			return
		}
		if first <= a.w.cut && a.w.cut < first+batch {
			a.w.end()
		}
		block := store[:0]
		for id := uint64(first); id < min(uint64(first+batch), waveSize); id++ {
			block = append(block, element{id, ^id})
		}
		for len(block) > 0 {
			n, err := a.send(block)
			if err != nil {
				a.w.settle(block[n], failed)
				n++
				a.failed(err)
			}
			block = block[n:]
			a.strike()
		}
		if a.chance(2) {
			_ = coir.Yield(a.ctx)
		}
	}
}

// failed handles an operation that failed.
func (a *actor) failed(err error) {
	if errors.Is(err, context.Canceled) {
		a.renew()
	} else if !errors.Is(err, coir.ErrClosed) && !errors.Is(err, coir.ErrTimeout) && !errors.Is(err, coir.ErrWouldBlock) {
		a.w.blame("an operation returned %v", err)
	}
}

// send sends some elements, at least one, unless it returns an error: then it has tried the next one, which is still
// ours.
func (a *actor) send(block []element) (n int, err error) {
	k := a.one()
	c, d, e := a.w.ch[k], a.w.ch[1-k], block[0]
	i := 0
	switch a.rnd.IntN(16) {
	default:
		err = c.Send(a.ctx, e)
	case 0:
		err = c.SendTimeout(a.ctx, e, a.moment())
	case 1:
		err = c.TrySend(e)
	case 2, 3:
		return c.SendMany(a.ctx, block[:min(len(block), 8)])
	case 4:
		_, err = coir.Select(a.ctx, c.SendCase(e), d.SendCase(e))
	case 5:
		if i, err = coir.Select(a.ctx, c.SendCase(e), d.SendCase(e), coir.After(a.moment())); i == 2 {
			err = coir.ErrTimeout
		}
	case 6:
		_, err = coir.TrySelect(c.SendCase(e), d.SendCase(e))
	case 7:
		_, err = coir.SelectPriority(a.ctx, c.SendCase(e), coir.Case{}, d.SendCase(e))
	case 8:
		err = a.exchange(e, c, d)
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// exchange sends e on c, and receives from d for as long as it cannot.
func (a *actor) exchange(e element, c, d *coir.Chan[element]) error {
	for {
		var in element
		i, err := coir.Select(a.ctx, c.SendCase(e), d.RecvCase(&in))
		if i != 1 || err != nil {
			return err // d has ended: so has c, or it will
		}
		a.w.settle(in, received)
	}
}

// consume receives until both channels have ended and hold nothing. Some consumers always look at both, so that no
// sender waits for consumers that wait at the other channel.
func (a *actor) consume(both bool) {
	defer a.leave()
	for !a.over[0] || !a.over[1] {
		a.receive(both)
		a.strike()
	}
}

func (a *actor) receive(both bool) {
	k := a.one()
	if a.over[k] {
		k = 1 - k
	}
	c := a.w.ch[k]
	way := a.rnd.IntN(16)
	if both {
		way = way%5 + 5
	}
	var e element
	var err error
	switch way {
	default:
		e, err = c.Recv(a.ctx)
	case 0:
		e, err = c.RecvTimeout(a.ctx, a.moment())
	case 1:
		e, err = c.TryRecv()
	case 2, 3:
		var into [8]element
		var n int
		n, err = c.RecvMany(a.ctx, into[:])
		for _, e := range into[:n] {
			a.w.settle(e, received)
		}
		a.refused(k, err)
		return
	case 4:
		n := 0
		for e, err := range c.All(a.ctx) {
			if err != nil {
				return
			}
			a.w.settle(e, received)
			if n++; n == 8 {
				return
			}
		}
		if a.ctx.Err() != nil {
			a.renew()
			return
		}
		if e, err = c.TryRecv(); !errors.Is(err, coir.ErrClosed) {
			a.w.blame("All has ended, and then there was %+v, %v", e, err)
		}
	case 5, 6, 7, 8, 9:
		k, e, err = a.receiveEither(way)
	}
	if err == nil {
		a.w.settle(e, received)
	} else {
		a.refused(k, err)
	}
}

// receiveEither receives by a select over the channels that have not ended.
func (a *actor) receiveEither(way int) (k int, e element, err error) {
	var in [2]element
	cases := [3]coir.Case{2: coir.After(a.moment())}
	for i, c := range a.w.ch {
		if !a.over[i] {
			cases[i] = c.RecvCase(&in[i])
		}
	}
	switch way {
	case 5, 6:
		k, err = coir.Select(a.ctx, cases[:2]...)
	case 7:
		k, err = coir.Select(a.ctx, cases[:]...)
	case 8:
		k, err = coir.SelectPriority(a.ctx, cases[:2]...)
	case 9:
		k, err = coir.TrySelect(cases[:2]...)
	}
	switch {
	case k == 2:
		return 0, e, coir.ErrTimeout
	case k < 0:
		return 0, e, err
	}
	return k, in[k], err
}

// refused handles a receive that returned no value.
func (a *actor) refused(k int, err error) {
	switch {
	case err == nil:
	case errors.Is(err, coir.ErrClosed):
		a.over[k] = true
	default:
		a.failed(err)
		if errors.Is(err, coir.ErrWouldBlock) {
			_ = coir.Yield(a.ctx)
		}
	}
}

// watch receives by a selector until both channels have ended and hold nothing.
func (a *actor) watch() {
	defer a.leave()
	s := coir.NewSelector()
	defer s.Clear()
	var in [2]element
	var ids [2]int
	for i, c := range a.w.ch {
		ids[i] = s.Add(c.RecvCase(&in[i]))
	}
	for s.Len() > 0 {
		id, err := s.Wait(a.ctx)
		k := 0
		if id == ids[1] {
			k = 1
		}
		switch {
		case err == nil:
			a.w.settle(in[k], received)
		case id < 0:
			a.failed(err)
		}
		if a.chance(16) && s.Remove(ids[k]) {
			ids[k] = s.Add(a.w.ch[k].RecvCase(&in[k]))
		}
		a.strike()
	}
}

// Waits on channels where nothing ever happens are given up by a time limit and by a cancellation: no waiter is left in
// a queue, and nothing in memory.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-10 (the earliest deadline ends a select)
// Spec: SE-11 (a cancel ends a select)
func TestWaitsThatWereGivenUpLeaveNothing(t *testing.T) {
	const fibers, goroutines = 1_000, 100
	const perRound = 2 * (fibers + goroutines)
	rounds := 1 + sized(60_000, 200_000, 10_000_000)/perRound
	rt := newRuntime(t, coir.WithMaxWorkers(runtime.GOMAXPROCS(0))) // no worker stands in: each keeps frames
	defer keepInUse(rt)()
	in, out := coir.NewChan[int](0), coir.NewChan[*int](0)
	round := func() {
		giveUp(t, rt, in, out, fibers, goroutines)
		if n := in.Stats().Recv.Waiting + out.Stats().Send.Waiting; n != 0 {
			t.Fatalf("%d waiters are left", n)
		}
	}
	for range 3 {
		round() // warm-up: what is kept for reuse is there now
	}
	before, start, told := heapInUse(), time.Now(), time.Now()
	for i := range rounds {
		round()
		if soak.On() && time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d waits given up\n", i*perRound, rounds*perRound)
		}
	}
	after := heapInUse()
	t.Logf("%d waits given up in %v; heap %d KiB before, %d KiB after",
		rounds*perRound, time.Since(start), before>>10, after>>10)
	if after > before+2<<20 { // a leaked waiter takes 100 bytes; idle frames vary by half a MiB in all
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
}

// keepInUse keeps a runtime from releasing its resources while it is idle: memory before and after could not be
// compared. The function that it returns ends that.
func keepInUse(rt *coir.Runtime) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	done := goes(func() {
		_ = rt.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
			close(begun)
			return coir.Sleep(ctx, 24*time.Hour)
		})
	})
	<-begun
	return func() {
		cancel()
		<-done
	}
}

// giveUp makes each of many wait until a time limit, and then until a cancellation.
func giveUp(t *testing.T, rt *coir.Runtime, in *coir.Chan[int], out *coir.Chan[*int], fibers, goroutines int) {
	t.Helper()
	var late, twice atomic.Int64 // waits whose time limit has passed, and those of them at both channels
	body := func(ctx context.Context, i int) error {
		const soon = time.Microsecond
		var first error
		if i%2 == 0 {
			first = waitInVain(ctx, in, out, i%3, soon)
		} else {
			short, cancel := coir.WithTimeout(ctx, soon)
			first = waitInVain(short, in, out, i%3, 0)
			cancel()
		}
		if i%3 == 2 {
			twice.Add(1)
		}
		late.Add(1)
		second := waitInVain(ctx, in, out, i%3, 0)
		if !errors.Is(first, coir.ErrTimeout) || !isCancelIn(ctx, second, errStop) {
			return fmt.Errorf("waiter %d got %v, and then %v", i, first, second)
		}
		return nil
	}
	var all sync.WaitGroup
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range fibers {
			n.Go("waiter", func(ctx context.Context) error { return body(ctx, i) })
		}
		for i := range goroutines {
			all.Go(func() {
				if err := body(ctx, i); err != nil {
					t.Error(err)
				}
			})
		}
		want := fibers + goroutines
		yieldUntil(ctx, t, "everybody waits for good", func() bool {
			return late.Load() == int64(want) && in.Stats().Recv.Waiting+out.Stats().Send.Waiting == want+int(twice.Load())
		})
		n.Cancel(errStop)
		return nil
	})
	all.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

// waitInVain receives, sends, or does either in a select, for at most that long unless it is 0.
func waitInVain(ctx context.Context, in *coir.Chan[int], out *coir.Chan[*int], way int, limit time.Duration) (err error) {
	switch {
	case way == 0 && limit > 0:
		_, err = in.RecvTimeout(ctx, limit)
	case way == 0:
		_, err = in.Recv(ctx)
	case way == 1 && limit > 0:
		err = out.SendTimeout(ctx, new(int), limit)
	case way == 1:
		err = out.Send(ctx, new(int))
	default:
		var after coir.Case
		if limit > 0 {
			after = coir.After(limit)
		}
		var i int
		if i, err = coir.Select(ctx, in.RecvCase(nil), out.SendCase(new(int)), after); i == 2 {
			err = coir.ErrTimeout
		}
	}
	return err
}

// The value that a case of a select sends may point to a variable of its sender, which must then outlive the call.
func TestWhatASelectSendsStays(t *testing.T) {
	const n = 100
	c := coir.NewChan[*int](n)
	for i := range n {
		if err := selectSend(t.Context(), c, i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if p, err := c.TryRecv(); err != nil || *p != i {
			t.Fatalf("received a pointer to %d, %v; should be %d", *p, err, i)
		}
	}
}

// selectSend sends a pointer to one of its variables.
func selectSend(ctx context.Context, c *coir.Chan[*int], v int) error {
	_, err := coir.Select(ctx, c.SendCase(&v), coir.After(time.Hour))
	return err
}

// Spec: CH-15 (an unbounded send never waits)
// Spec: CH-16 (an unbounded channel gives memory back)
func TestUnboundedGivesABurstBack(t *testing.T) {
	n := sized(1_000_000, 10_000_000, 10_000_000)
	c := coir.NewChan[int](coir.Unbounded)
	before := heapInUse()
	for i := range n {
		if err := c.TrySend(i); err != nil {
			t.Fatal(err)
		}
	}
	most := heapInUse()
	for i := range n {
		if v, err := c.TryRecv(); v != i || err != nil {
			t.Fatalf("received %d, %v; should be %d", v, err, i)
		}
	}
	after := heapInUse()
	t.Logf("%d ints: heap %d KiB before, %d KiB with them, %d KiB after", n, before>>10, most>>10, after>>10)
	if most < before+uint64(n)*8/2 { // half, because memory of earlier tests may be freed meanwhile
		t.Errorf("with %d ints the heap was at %d bytes, %d before: what is measured is not the channel", n, most, before)
	}
	if after > before+2<<20 {
		t.Errorf("the heap was at %d bytes before the burst and is at %d", before, after)
	}
	runtime.KeepAlive(c)
}

// heapInUse returns the size of the heap after garbage collection. A pool takes two collections.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
