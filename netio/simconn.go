package netio

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// simLink is a connection of a simulation: two ends, under one lock.
//
// It behaves like Linux on the loopback device. Written data is in the buffer of the other end, and can be read there
// when its time has come. Each end has an error that is returned once. The tests compare it with real sockets.
type simLink struct {
	net  *simNet
	cond *coir.Cond
	unix bool
	size int // capacity of each buffer
	life int // operations until the connection is reset; negative for never
	ends [2]simConn
}

// simConn is one end of a link, guarded by the link's lock.
type simConn struct {
	link          *simLink
	peer          *simConn
	local, remote simAddr

	in     []simChunk // data that the peer has written, in order
	size   int        // bytes in it
	ends   bool       // the peer will write no more
	endDue time.Duration

	err                 error // an error of the system, which is returned once
	dead                bool  // the connection has been reset
	closed              bool
	shutRead, shutWrite bool

	reads, writes     simWaiters
	writing           bool // an operation has the turn to write
	readDue, writeDue time.Duration
	alarm, writeAlarm simAlarm
	callback          func()
}

// simChunk is a part of a stream, with its time of arrival.
type simChunk struct {
	data []byte
	due  time.Duration
}

// newLink returns the two ends of a new connection: first the end that dialled, then the end for the listener. The
// caller holds the lock of the network.
func (n *simNet) newLink(from, to, listener simAddr) (client, server *simConn) {
	l := &simLink{net: n, size: simBuffer, life: -1}
	l.cond = coir.NewCond(coir.WithName(from.title + " to " + to.title))
	_, l.unix = to.Addr.(*net.UnixAddr)
	if n.sim.Fault(faultSmall) {
		l.size = smallSize
	}
	if n.sim.Fault(faultReset) {
		l.life = n.sim.Intn(8) * [...]int{1, 4, 16}[n.sim.Intn(3)] // usually soon, sometimes late
	}
	local := to
	if l.unix {
		local = listener
	}
	l.ends[0].init(l, &l.ends[1], from, to)
	l.ends[1].init(l, &l.ends[0], local, from)
	return &l.ends[0], &l.ends[1]
}

func (c *simConn) init(l *simLink, peer *simConn, local, remote simAddr) {
	c.link, c.peer, c.local, c.remote = l, peer, local, remote
	c.reads, c.writes = newWaiters(readVerb, remote.title), newWaiters(writeVerb, remote.title)
	c.readDue, c.writeDue = never, never
}

// simEffects are the effects of a change that follow after unlocking: waits to end, and callbacks to call.
type simEffects struct {
	woken []*simWaiters
	calls []func()
}

// readable ends the waits for something to read.
func (e *simEffects) readable(c *simConn) {
	e.woken = append(e.woken, c.reads.take()...)
	if f := c.callback; f != nil {
		c.callback = nil
		e.calls = append(e.calls, f)
	}
}

// writable ends the waits for a turn to write, or for room.
func (e *simEffects) writable(c *simConn) { e.woken = append(e.woken, c.writes.take()...) }

// unlock unlocks the link, and performs the effects. It does not return if a callback panics or calls runtime.Goexit.
func (l *simLink) unlock(e *simEffects) {
	now := *e
	*e = simEffects{}
	l.cond.Unlock()
	wakeAll(now.woken)
	callAll(now.calls)
}

// callAll calls all functions, even if one of them does not return.
func callAll(calls []func()) {
	if len(calls) > 0 {
		defer callAll(calls[1:])
		calls[0]()
	}
}

// grow counts an operation, and resets the connection when its count has run out.
func (l *simLink) grow(e *simEffects) {
	if l.life == 0 && !l.ends[0].closed && !l.ends[1].closed {
		l.ends[0].reset(e, true)
		l.ends[1].reset(e, true)
	}
	l.life--
}

// reset handles an RST packet at an end. If all is true, unread data is lost.
func (c *simConn) reset(e *simEffects, all bool) {
	if c.dead {
		return
	}
	c.dead = true
	if c.err = errReset; c.ends && !all {
		c.err = errPipe
	}
	if all {
		c.in, c.size, c.ends = nil, 0, false
	}
	e.readable(c)
	e.writable(c)
}

// arm sets the alarms to the next times at which a waiting read and a waiting write may continue.
func (c *simConn) arm(now time.Duration) {
	at := never
	if c.reads.count > 0 || c.callback != nil {
		at = c.readDue
		switch {
		case len(c.in) > 0:
			at = min(at, c.in[0].due)
		case c.ends:
			at = min(at, c.endDue)
		case c.dead || c.shutRead || c.err != nil:
			at = now
		}
	}
	c.alarm.set(c.link.net.ctx, c, now, max(at, now))
	at = never
	if c.writes.count > 0 {
		at = c.writeDue
	}
	c.writeAlarm.set(c.link.net.ctx, (*simWriter)(c), now, max(at, now))
}

// Ended implements coir.Watcher: data has arrived, or the deadline of reads has passed.
func (c *simConn) Ended(error) {
	var e simEffects
	c.link.cond.Lock()
	c.alarm.armed = false
	e.readable(c)
	for i, f := range e.calls {
		e.calls[i] = func() { apart(f) }
	}
	c.link.unlock(&e)
}

// apart calls f for the clock, in a goroutine. It returns when f has returned or called runtime.Goexit, which must not
// stop the clock. A panic in f ends the program.
func apart(f func()) {
	apartNow.Add(1)
	defer apartNow.Add(-1)
	done := make(chan struct{})
	go calledByClock(f, done)
	<-done
}

// apartNow counts the current calls of apart.
var apartNow atomic.Int32

func calledByClock(f func(), done chan struct{}) {
	defer close(done)
	f()
}

// isCalledByClock reports whether the caller is in a function that apart calls.
func isCalledByClock() bool {
	if apartNow.Load() == 0 {
		return false
	}
	pcs := make([]uintptr, 64)
	n := runtime.Callers(1, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*n)
		n = runtime.Callers(1, pcs)
	}
	frames := runtime.CallersFrames(pcs[:n])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/netio.calledByClock") {
			return true
		}
		if !more {
			return false
		}
	}
}

// simWriter is a simConn as the owner of the alarm for the deadline of writes.
type simWriter simConn

// Ended implements coir.Watcher.
func (w *simWriter) Ended(error) {
	c := (*simConn)(w)
	var e simEffects
	c.link.cond.Lock()
	c.writeAlarm.armed = false
	e.writable(c)
	c.link.unlock(&e)
}

// arrives is called when the peer has sent something that arrives at the time due.
func (c *simConn) arrives(e *simEffects, now, due time.Duration) {
	if due <= now {
		e.readable(c)
	} else {
		c.arm(now)
	}
}

// send returns the time at which data that is sent to c now arrives. It does not overtake earlier data.
func (c *simConn) send(now time.Duration) time.Duration {
	due := now + c.link.net.latency()
	if n := len(c.in); n > 0 {
		due = max(due, c.in[n-1].due)
	}
	return due
}

// wait waits for a change, with the lock released meanwhile.
func (c *simConn) wait(ctx context.Context, w *simWaiters, e *simEffects, now time.Duration) error {
	w.count++ // for arm
	c.arm(now)
	w.count--
	return w.wait(ctx, c.link.cond, func() { c.link.unlock(e) })
}

// enter locks the link for an operation.
func (c *simConn) enter() error { return c.link.net.enter(c.link.cond, "the connection to", c.remote) }

func (c *simConn) read(ctx context.Context, p []byte) (n int, err error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	if err := endedIn(ctx, c.link.cond); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		if c.closed {
			err = net.ErrClosed
		}
		c.link.cond.Unlock()
		return 0, err
	}
	var e simEffects
	defer func() { // even if a callback does not return
		if n > 0 {
			e.writable(c.peer)
		}
		c.link.unlock(&e)
	}()
	if !c.closed {
		c.link.grow(&e)
	}
	for {
		now := c.link.net.now()
		if n, err = c.tryRead(p, now); n > 0 || err != nil {
			return n, err
		}
		if err = c.wait(ctx, &c.reads, &e, now); err != nil {
			return 0, err
		}
	}
}

// tryRead reads the available data. If the caller has to wait, it returns neither bytes nor an error.
func (c *simConn) tryRead(p []byte, now time.Duration) (int, error) {
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case now >= c.readDue:
		return 0, os.ErrDeadlineExceeded
	}
	if n := c.arrived(now); n > 0 {
		n = min(n, len(p))
		if n > 1 && c.link.net.sim.Fault(faultPartial) {
			n = [...]int{1, n - 1, (n + 1) / 2}[c.link.net.sim.Intn(3)]
		}
		c.take(p[:n])
		return n, nil
	}
	switch {
	case len(c.in) > 0: // data has not arrived yet
		return 0, nil
	case c.ends && (now >= c.endDue || c.dead):
		return 0, io.EOF
	case c.err != nil:
		return 0, c.fail("read")
	case c.dead || c.shutRead:
		return 0, io.EOF
	}
	return 0, nil
}

// arrived returns how many bytes can be read.
func (c *simConn) arrived(now time.Duration) (n int) {
	for i := range c.in {
		if c.in[i].due > now {
			break
		}
		n += len(c.in[i].data)
	}
	return n
}

// take fills p with bytes that have arrived.
func (c *simConn) take(p []byte) {
	c.size -= len(p)
	for len(p) > 0 {
		first := &c.in[0]
		n := copy(p, first.data)
		p, first.data = p[n:], first.data[n:]
		if len(first.data) == 0 {
			c.in = slices.Delete(c.in, 0, 1)
		}
	}
}

// fail returns the error of the system, and clears it.
func (c *simConn) fail(call string) error {
	err := c.err
	c.err = nil
	return os.NewSyscallError(call, err)
}

func (c *simConn) write(ctx context.Context, p []byte) (n int, err error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	if err := endedIn(ctx, c.link.cond); err != nil {
		return 0, err
	}
	var e simEffects
	turn := false
	defer func() { // even if a callback does not return
		if turn {
			c.writing = false
			e.writable(c)
		}
		c.link.unlock(&e)
	}()
	if !c.closed {
		c.link.grow(&e)
	}
	for {
		now := c.link.net.now()
		if err = c.cannotWrite(now); err != nil {
			return n, err
		}
		if turn = turn || !c.writing; turn {
			c.writing = true
			n += c.put(&e, p[n:], now)
			if n == len(p) {
				return n, nil
			}
		}
		if err = c.wait(ctx, &c.writes, &e, now); err != nil {
			return n, err
		}
	}
}

// cannotWrite returns the reason why nothing can be written, or nil.
func (c *simConn) cannotWrite(now time.Duration) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case now >= c.writeDue:
		return os.ErrDeadlineExceeded
	case c.link.unix && (c.peer.closed || c.peer.shutRead):
		return os.NewSyscallError("write", errPipe)
	case c.err != nil:
		return c.fail("write")
	case c.dead || c.shutWrite:
		return os.NewSyscallError("write", errPipe)
	}
	return nil
}

// put sends as much of p as there is room for. A closed peer accepts everything, and answers with a reset.
func (c *simConn) put(e *simEffects, p []byte, now time.Duration) int {
	if c.peer.closed {
		if len(p) > 0 {
			c.reset(e, false)
		}
		return len(p)
	}
	n := min(len(p), c.link.size-c.peer.size)
	if n > 0 {
		due := c.peer.send(now)
		c.peer.in = append(c.peer.in, simChunk{slices.Clone(p[:n]), due})
		c.peer.size += n
		c.peer.arrives(e, now, due)
	}
	return n
}

// finish tells the peer that no more data follows.
func (c *simConn) finish(e *simEffects, now time.Duration) {
	if p := c.peer; !p.ends {
		p.ends, p.endDue = true, p.send(now)
		p.arrives(e, now, p.endDue)
	}
}

func (c *simConn) close() error {
	if err := c.enter(); err != nil {
		return err
	}
	var e simEffects
	if c.closed {
		c.link.cond.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	defer c.link.net.forget(c) // even if a callback does not return
	c.alarm.stop()
	c.writeAlarm.stop()
	e.readable(c)
	e.writable(c)
	switch {
	case c.peer.closed:
	case len(c.in) > 0: // unread data is left
		c.peer.reset(&e, false)
	case !c.dead:
		c.finish(&e, c.link.net.now())
		e.writable(c.peer)
	}
	c.in, c.size = nil, 0
	c.link.unlock(&e)
	return nil
}

// abandon closes an end that was not accepted.
func (c *simConn) abandon() {
	var e simEffects
	c.link.cond.Lock()
	c.closed = true
	if !c.peer.closed {
		c.peer.reset(&e, false)
	}
	c.link.unlock(&e)
}

// shutdown closes one side.
func (c *simConn) shutdown(write bool) error {
	if err := c.enter(); err != nil {
		return err
	}
	var e simEffects
	var err error
	switch now := c.link.net.now(); {
	case c.closed:
		err = net.ErrClosed
	case !c.link.unix && (c.dead || c.shutWrite && c.ends && now >= c.endDue):
		err = os.NewSyscallError("shutdown", errNotConnected)
	case write:
		c.shutWrite = true
		e.writable(c)
		if !c.dead && !c.peer.closed {
			c.finish(&e, now)
		}
	default:
		c.shutRead = true
		e.readable(c)
		e.writable(c.peer)
	}
	c.link.unlock(&e)
	return err
}

// raw returns the reason why there is no syscall.RawConn.
func (c *simConn) raw() error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.link.cond.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return errSimulated
}

// setDeadlines sets the deadlines of one side or of both.
func (c *simConn) setDeadlines(t time.Time, read, write bool) error {
	left := untilVirtually(t) // before the lock: other fibers may run first, which takes real time
	if err := c.enter(); err != nil {
		return err
	}
	var e simEffects
	if c.closed {
		c.link.cond.Unlock()
		return net.ErrClosed
	}
	now := c.link.net.now()
	due := virtualTime(now, left)
	if read {
		c.readDue = due
		if now >= due {
			e.readable(c)
		}
	}
	if write {
		c.writeDue = due
		if now >= due {
			e.writable(c)
		}
	}
	c.arm(now)
	c.link.unlock(&e)
	return nil
}

// onReadable arranges for f to be called when there is something to read. If there already is, f is called when no
// fiber can run, like a timer that is due, because onReadable must not call it.
func (c *simConn) onReadable(f func()) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.link.cond.Unlock()
	now := c.link.net.now()
	switch {
	case c.closed:
		return net.ErrClosed
	case now >= c.readDue:
		return os.ErrDeadlineExceeded
	case c.callback != nil:
		return errCallback
	}
	c.callback = f
	c.arm(now)
	return nil
}

var (
	errCallback  = errors.New("netio: OnReadable is pending: its function has not been called yet")
	errSimulated = errors.New("netio: a simulated connection has no descriptor")
)
