//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coir-go/coir"
)

// A descriptor is a non-blocking file descriptor that fibers and goroutines wait for. It has two sides, for reading and
// for writing, which share only the file number and its closing.
//
// An operation takes the turn of its side, attempts its system call, waits for an event while the call returns EAGAIN,
// and passes the turn on. The poller reports edges: an event says that the side may have become ready since the last
// event. So if an event comes while no operation waits, side.ready records it.
//
// Invariants, under the lock of the side:
//
//	D1 turn:  a waiter on cond waits for the turn, with two exceptions: the holder of the turn, while busy is set,
//	          waits for an event; and on the reading side, after closed is set, free waits until freed is set.
//	D2 event: if drained is set and ready is not, the last operation took all data that had arrived, and later data
//	          causes an event, which sets ready. So a read that finds this waits without an attempt.
//	D3 close: the number is closed when closed is set and holds becomes 0. Operations in progress when closed was set
//	          are counted in holds. So no system call uses a number that now belongs to another file.
//
// Rejected: leaving the number to package net, and using its RawConn. That costs 200 ns and a lock for each attempt,
// and each event would wake Go's own poller as well.
type descriptor struct {
	fd    int
	holds atomic.Int32 // users of the number, plus 1 while it is open; see D3
	r, w  side

	mu    sync.Mutex    // guards the fields below, which the poller uses
	armed atomic.Uint32 // the sides whose events are reported; written under mu
	poll  *poller
	slot  uint32
	gen   uint32

	callback func() // called at the next event of the reading side; guarded by that side's lock
}

// A side is one direction of a descriptor.
type side struct {
	cond     coir.Cond // guards all but watch
	watch    uint32    // the bit of the side in descriptor.armed
	busy     bool      // an operation has the turn
	closed   bool
	freed    bool // of the reading side: the number has been closed
	expired  bool // the deadline has passed
	ready    bool // an event has come since the start of the last attempt
	drained  bool // the last operation took all available data
	ended    bool // the peer has closed, or there was an error: no more events may come
	inARow   uint8
	deadline *deadline // nil until the first is set
}

// A deadline is the deadline of a side. The side's lock guards it.
type deadline struct {
	due   time.Duration // as a time since start; 0 if there is none
	timer *time.Timer
}

// passed reports whether the deadline has passed. It does not rely on the timer: the timer may be late, and the timers
// of the two sides may fire in any order, but an operation that starts after the deadline must fail.
func (l *deadline) passed() bool { return l.due != 0 && time.Since(start) >= l.due }

const (
	watchRead uint32 = 1 << iota
	watchWrite
)

// start is the time from which deadlines are measured: a deadline is a duration since start.
var start = time.Now()

const maxTransfer = 1 << 30 // bytes in one system call: some systems refuse more

// newDescriptor returns a descriptor that owns fd. name is the name of its peer, for reports; read describes a wait on
// the reading side.
func newDescriptor(fd int, name string, read *coir.Verb) *descriptor {
	d := &descriptor{fd: fd}
	d.holds.Store(1)
	d.r.watch, d.w.watch = watchRead, watchWrite
	d.r.cond.Init(coir.WithName(name))
	d.w.cond.Init(coir.WithName(name))
	d.r.cond.Describe(read)
	d.w.cond.Describe(writeVerb)
	return d
}

// nameOf returns the name of a socket for reports: the address of its peer, or its own if the peer has none.
func nameOf(local, remote net.Addr) string {
	for _, a := range [...]net.Addr{remote, local} {
		if a == nil {
			continue
		}
		if name := a.String(); name != "" && name != "@" { // a Unix socket may have no name
			return name
		}
	}
	return ""
}

// begin waits for the turn of the side, and takes it. If eager is false and the last operation took all available data,
// begin also waits for an event. An eager operation makes its first attempt without an event, so that its caller can
// find out that there is no data.
func (d *descriptor) begin(ctx context.Context, s *side, eager bool) error {
	s.cond.Lock()
	for s.busy && !s.closed {
		if err := s.cond.Wait(ctx); err != nil {
			s.cond.Unlock()
			return err
		}
	}
	if err := s.stopped(); err != nil {
		s.pass()
		return err
	}
	s.busy = true
	if s.drained && !eager {
		s.inARow = 0
		if err := s.event(ctx); err != nil {
			d.giveUp(s)
			return err
		}
	}
	s.ready = false
	s.cond.Unlock()
	return nil
}

// stopped returns the error that ends all operations of the side, or nil. The caller holds the lock.
func (s *side) stopped() error {
	switch {
	case s.closed:
		return net.ErrClosed
	case s.expired || s.deadline != nil && s.deadline.passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// event waits for an event. The caller has the turn and holds the lock.
func (s *side) event(ctx context.Context) error {
	for {
		if err := s.stopped(); err != nil {
			return err
		}
		if s.ready {
			s.ready = false
			return nil
		}
		if coir.Simulated(ctx) != nil {
			return errReal
		}
		if err := s.cond.Wait(ctx); err != nil {
			return err
		}
	}
}

// await waits for an event after a failed attempt. The caller has the turn.
func (d *descriptor) await(ctx context.Context, s *side) error {
	if d.armed.Load()&s.watch == 0 {
		if err := d.arm(s.watch); err != nil {
			return err
		}
	}
	s.cond.Lock()
	s.inARow = 0
	err := s.event(ctx)
	s.cond.Unlock()
	return err
}

// giveUp gives up the turn, and unlocks the side. If close has come meanwhile, it has counted this operation in holds.
func (d *descriptor) giveUp(s *side) {
	s.busy = false
	closed := s.closed
	s.pass()
	if closed {
		d.release()
	}
}

// pass unlocks the side after the caller has given up the turn, or has not taken it. The next operation in the queue
// continues.
func (s *side) pass() {
	if !s.busy {
		s.cond.Signal()
	}
	s.cond.Unlock()
}

// end passes the turn on. drained says that the operation took all available data.
func (d *descriptor) end(ctx context.Context, s *side, drained bool) {
	s.cond.Lock()
	s.drained = drained && !s.ended && d.armed.Load()&s.watch != 0
	s.inARow++
	long := s.inARow == fair
	if long {
		s.inARow = 0
	}
	d.giveUp(s)
	if long {
		_ = coir.Yield(ctx) // the operation has succeeded, even if ctx has ended
	}
}

// fair is how many operations of a side may succeed in a row without waiting before the fiber yields.
const fair = 32

// wake records an event, and ends the wait for it. ended says that no further event may come.
func (d *descriptor) wake(s *side, ended bool) {
	s.cond.Lock()
	s.ready = true
	s.ended = s.ended || ended
	d.unlockAndCall(s)
}

// unlockAndCall ends the waits on the side, unlocks it, and calls the callback, which may panic or call runtime.Goexit.
func (d *descriptor) unlockAndCall(s *side) {
	if f := d.unlock(s); f != nil {
		f()
	}
}

// unlock ends the waits on the side, and unlocks it. It returns the callback, which the caller must call, or nil.
func (d *descriptor) unlock(s *side) (f func()) {
	if s == &d.r {
		f, d.callback = d.callback, nil
	}
	s.cond.Broadcast()
	s.cond.Unlock()
	return f
}

// hold keeps the number open until release, for a system call that needs no turn.
func (d *descriptor) hold() error {
	d.r.cond.Lock()
	defer d.r.cond.Unlock()
	if d.r.closed {
		return net.ErrClosed
	}
	d.holds.Add(1)
	return nil
}

// release undoes hold. The last release closes the number.
func (d *descriptor) release() {
	if d.holds.Add(-1) > 0 {
		return
	}
	d.disarm()
	_ = syscall.Close(d.fd)
	d.r.cond.Lock()
	d.r.freed = true
	d.r.cond.Broadcast()
	d.r.cond.Unlock()
}

// close ends all operations, and closes the number when the last operation has ended. It waits until the number is
// closed, so that afterwards a program can, for example, listen on the address again.
func (d *descriptor) close() error {
	var callback func()
	for _, s := range []*side{&d.r, &d.w} {
		s.cond.Lock()
		if s.closed {
			s.cond.Unlock()
			return net.ErrClosed
		}
		s.closed = true
		if s.busy {
			d.holds.Add(1)
		}
		if s.deadline != nil {
			s.deadline.timer.Stop()
		}
		if f := d.unlock(s); f != nil {
			callback = f
		}
	}
	defer d.free() // even if the callback does not return
	if callback != nil {
		callback()
	}
	return nil
}

// free gives up the hold of an open descriptor, and waits until the number has been closed.
func (d *descriptor) free() {
	d.release()
	d.r.cond.Lock()
	for !d.r.freed {
		if err := d.r.cond.Wait(context.Background()); err != nil { // package sim has ended the simulation
			break
		}
	}
	d.r.cond.Unlock()
}

// A dueTime is a new value of a deadline.
type dueTime struct {
	at   time.Duration // as a time since start; 0 if there is none
	left time.Duration
}

// dueAt returns t as a dueTime. In a bubble of testing/synctest it returns an error if t is in the future. Otherwise
// the timer would belong to the bubble, and a Close outside of the bubble would stop it, which is a fatal error of the
// Go runtime.
func dueAt(t time.Time) (dueTime, error) {
	if t.IsZero() {
		return dueTime{}, nil
	}
	now := time.Since(start) // read before left, so that the timer cannot fire before the deadline
	left := time.Until(t)
	switch {
	case left > 0 && inBubble():
		return dueTime{}, errBubble
	case left > math.MaxInt64-now: // it would overflow
		return dueTime{math.MaxInt64, left}, nil
	}
	return dueTime{now + left, left}, nil
}

// setDeadline sets the time at which the operations of the side fail. The zero time means no deadline.
func (d *descriptor) setDeadline(s *side, t time.Time) error {
	due, err := dueAt(t)
	if err != nil {
		return err
	}
	return d.setDue(s, due)
}

func (d *descriptor) setDue(s *side, due dueTime) error {
	s.cond.Lock()
	if s.closed {
		s.cond.Unlock()
		return net.ErrClosed
	}
	l := s.deadline
	s.expired = due.left <= 0 && due != dueTime{}
	switch {
	case due.left <= 0:
		if l != nil {
			l.due = 0
			l.timer.Stop()
		}
	case l == nil:
		timer := time.AfterFunc(due.left, func() { d.expire(s) })
		s.deadline = &deadline{due.at, timer}
	default:
		l.due = due.at
		l.timer.Reset(due.left)
	}
	if s.expired {
		d.unlockAndCall(s)
	} else {
		s.cond.Unlock()
	}
	return nil
}

// expire is called by the timer. If the deadline has been moved since then, it does nothing, because setDue has set the
// timer again.
func (d *descriptor) expire(s *side) {
	s.cond.Lock()
	if s.closed || !s.deadline.passed() {
		s.cond.Unlock()
		return
	}
	s.expired = true
	d.unlockAndCall(s)
}

// setDeadlines sets both deadlines to the same time. It sets the reading side's last, because that may call the
// callback, which may panic.
func (d *descriptor) setDeadlines(t time.Time) error {
	due, err := dueAt(t)
	if err != nil {
		return err
	}
	if err := d.setDue(&d.w, due); err != nil {
		return err
	}
	return d.setDue(&d.r, due)
}

// read reads into p. For a descriptor of packets it reads one packet, which may be empty.
func (d *descriptor) read(ctx context.Context, p []byte, kind kind) (n int, err error) {
	s := &d.r
	if err := coir.Ended(ctx); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, d.checkOpen()
	}
	if err := d.begin(ctx, s, false); err != nil {
		return 0, err
	}
	if kind != packets && len(p) > maxTransfer {
		p = p[:maxTransfer]
	}
	for {
		n, err = syscall.Read(d.fd, p)
		if err == nil {
			break
		}
		n = 0
		if err == syscall.EINTR {
			continue
		}
		if err != syscall.EAGAIN {
			err = os.NewSyscallError("read", err)
			break
		}
		if err = d.await(ctx, s); err != nil {
			break
		}
	}
	d.end(ctx, s, kind == tcp && shortIsAll && 0 < n && n < len(p))
	if n == 0 && err == nil && kind != packets {
		err = io.EOF
	}
	return n, err
}

// kind says what a descriptor transfers.
type kind uint8

const (
	stream  kind = iota
	tcp          // a stream on which a short read has taken all available data
	packets      // packets, one of which may be empty
)

// write writes all of p.
func (d *descriptor) write(ctx context.Context, p []byte, kind kind) (n int, err error) {
	s := &d.w
	if err := coir.Ended(ctx); err != nil {
		return 0, err
	}
	if err := d.begin(ctx, s, false); err != nil {
		return 0, err
	}
	for {
		part := p[n:]
		if kind != packets && len(part) > maxTransfer {
			part = part[:maxTransfer]
		}
		var m int
		m, err = syscall.Write(d.fd, part)
		n += max(m, 0)
		if err == nil {
			if n == len(p) {
				break
			}
			if m == 0 {
				err = io.ErrUnexpectedEOF
				break
			}
			continue
		}
		if err == syscall.EINTR {
			continue
		}
		if err != syscall.EAGAIN {
			err = os.NewSyscallError("write", err)
			break
		}
		if err = d.await(ctx, s); err != nil {
			break
		}
	}
	d.end(ctx, s, false)
	return n, err
}

// try calls f until it returns something other than EAGAIN: first at once, and then each time that the side may have
// become ready.
func (d *descriptor) try(ctx context.Context, s *side, f func(fd int) error) error {
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	if err := d.begin(ctx, s, true); err != nil {
		return err
	}
	defer d.end(ctx, s, false) // even if f, which may be user code, panics or calls runtime.Goexit
	for {
		err := f(d.fd)
		if err == syscall.EINTR {
			continue
		}
		if err != syscall.EAGAIN {
			return err
		}
		if err := d.await(ctx, s); err != nil {
			return err
		}
	}
}

// control calls f with the number, which stays open during the call.
func (d *descriptor) control(f func(fd int) error) error {
	if err := d.hold(); err != nil {
		return err
	}
	defer d.release()
	return f(d.fd)
}

// checkOpen returns net.ErrClosed if the descriptor has been closed.
func (d *descriptor) checkOpen() error {
	d.r.cond.Lock()
	defer d.r.cond.Unlock()
	if d.r.closed {
		return net.ErrClosed
	}
	return nil
}

// waitReady waits until an operation of the side would not have to wait. It does not attempt a system call: the poller
// reports the state.
func (d *descriptor) waitReady(ctx context.Context, s *side) error {
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	if err := d.begin(ctx, s, false); err != nil {
		return err
	}
	err := d.arm(s.watch)
	if err == nil {
		s.cond.Lock()
		err = s.event(ctx)
		s.cond.Unlock()
	}
	d.end(ctx, s, false)
	return err
}

// onReadable arranges for f to be called once, when a read would not have to wait. It takes no turn, so it does not
// wait for a running operation, and that operation may read the data for which f is called.
func (d *descriptor) onReadable(f func()) error {
	if err := d.hold(); err != nil {
		return err
	}
	defer d.release()
	s := &d.r
	s.cond.Lock()
	err := s.stopped()
	if err == nil && d.callback != nil {
		err = errCallback
	}
	if err != nil {
		s.cond.Unlock()
		return err
	}
	d.callback = f
	look := !s.drained || s.ready
	s.cond.Unlock()
	if !look {
		return nil
	}
	if err = d.arm(s.watch); err != nil {
		s.cond.Lock()
		d.callback = nil
		s.cond.Unlock()
	}
	return err
}

// arm makes the poller report the events of a side. If the side is ready now, the poller reports that as an event.
func (d *descriptor) arm(watch uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.armLocked(d.armed.Load() | watch)
}

func (d *descriptor) armLocked(watches uint32) error {
	if d.poll == nil {
		p, err := join(d)
		if err != nil {
			return err
		}
		if err := p.kernel.add(d.fd, d.slot, d.gen, watches); err != nil {
			leave(p, d.slot)
			return err
		}
		d.poll = p
	} else if err := d.poll.kernel.change(d.fd, d.slot, d.gen, watches); err != nil {
		return err
	}
	d.armed.Store(watches)
	return nil
}

// disarm ends the reports of the poller. It is called when no operation is left.
func (d *descriptor) disarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.poll != nil {
		d.poll.kernel.remove(d.fd)
		leave(d.poll, d.slot)
		d.poll = nil
	}
}
