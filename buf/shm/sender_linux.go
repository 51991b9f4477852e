package shm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// sharedSender is the sending end with shared memory.
//
// The buffers of the pool are in the shared memory, and a sent buffer stays in out until the receiver returns it. If
// the sender copies, because of WithCopy or because its region is checked, the pool has its own memory, and spare has
// the numbers of the free shared buffers.
type sharedSender struct {
	name   string
	size   int
	sock   *socket
	maps   *mapping
	blocks []byte // the memory of the buffers
	region *buf.Region
	pool   *buf.Pool
	spare  *coir.Chan[uint32] // nil unless the sender copies

	patience

	mu      sync.Mutex // guards the fields below; no fiber yields while it holds mu
	ring    ring
	out     []sent      // by the number of the buffer
	waiters int         // calls that wait for the receiver to return buffers
	late    *time.Timer // runs while they wait for more than one buffer; when it fires they wait for one
	over    bool        // the link has ended
	cause   error       // why it ended

	pushed, copied uint64 // buffers that were sent, and how many of them were copied
}

// sent is a buffer that the receiver has.
type sent struct {
	is bool
	b  buf.Buf // if the sender does not copy
}

// newSharedSender makes s a sender. It takes over the socket and the mapping, even if it fails.
func newSharedSender(s *Sender, o settings, sock *socket, m *mapping) error {
	at := pages(areaLen(s.count))
	l := &sharedSender{name: s.name, size: s.size, sock: sock, maps: m, blocks: m.own[at:], out: make([]sent, s.count)}
	l.ring = ring{own: areaIn(m.own, s.count), peer: areaIn(m.peer, s.count), count: s.count}
	var opts []buf.Option
	if !o.copies {
		m.use() // for the region
		opts = append(opts, buf.WithMemory(l.blocks, m.release))
	}
	var err error
	if l.region, l.pool, err = newPool(s.name, s.size, s.count, opts...); err != nil {
		sock.close()
		return errors.Join(err, m.release())
	}
	if o.copies || !l.region.OffHeap() {
		l.spare = coir.NewChan[uint32](s.count, coir.WithName(s.name))
		for i := range s.count {
			_ = l.spare.TrySend(uint32(i)) // there is room
		}
	}
	l.late = time.AfterFunc(lateTime, l.isLate)
	l.late.Stop()
	s.link, s.pool = l, l.pool
	if err := sock.watch(l.readable); err != nil {
		l.end(err)
		return err
	}
	return nil
}

// readable is called when there are wake-ups, or when the receiver has ended.
func (l *sharedSender) readable() {
	end := l.sock.drain()
	l.returned(false)
	if end || l.sock.watch(l.readable) != nil {
		l.end(ErrGone)
	}
}

// lateTime is how long calls wait for half of the buffers before they wait for one.
const lateTime = time.Millisecond

// returned reclaims buffers, and announces the sleep of the calls that still wait.
func (l *sharedSender) returned(one bool) {
	l.reclaim()
	l.sleep(one)
}

// sleep announces a wait for half of the buffers, or for one, after reclaiming those already returned. It does nothing
// if no call waits. A wait for more than one buffer lasts at most lateTime after its announcement.
func (l *sharedSender) sleep(one bool) {
	for {
		l.mu.Lock()
		if l.over || l.waiters == 0 {
			l.mu.Unlock()
			return
		}
		n := uint64(1)
		if !one {
			n = max((l.ring.pushed-l.ring.popped)/2, 1)
		}
		asleep := l.ring.announce(n)
		if asleep && n > 1 {
			l.late.Reset(lateTime)
		}
		l.mu.Unlock()
		if asleep {
			return
		}
		l.reclaim()
	}
}

func (l *sharedSender) lookAgain(ctx context.Context, found func() bool) bool {
	return l.look(ctx, func() bool {
		l.mu.Lock()
		empty := !l.over && l.ring.empty()
		l.mu.Unlock()
		return !empty && found()
	})
}

func (l *sharedSender) await() func() {
	begin := time.Now()
	l.mu.Lock()
	l.waiters++
	l.mu.Unlock()
	l.sleep(false)
	return func() {
		l.mu.Lock()
		l.waiters--
		if l.waiters == 0 {
			l.late.Stop()
		}
		l.mu.Unlock()
		l.slept(begin)
	}
}

// isLate is called when calls have waited for half of the buffers for lateTime.
func (l *sharedSender) isLate() { l.returned(true) }

// reclaim takes back returned buffers. It terminates because each buffer is returned once.
func (l *sharedSender) reclaim() {
	var back [32]part
	var bufs [len(back)]buf.Buf
	for n := len(back); n == len(back); {
		var err error
		l.mu.Lock()
		for n = 0; n < len(back) && !l.over && err == nil; {
			p, ok, failed := l.ring.pop()
			if err = failed; !ok {
				break
			}
			if int64(p.slot) >= int64(len(l.out)) || !l.out[p.slot].is {
				err = fmt.Errorf("%w: it returns buffer %d of %d, which it does not have", ErrProtocol, p.slot, len(l.out))
				break
			}
			back[n], bufs[n] = p, l.out[p.slot].b
			l.out[p.slot] = sent{}
			n++
		}
		l.mu.Unlock()
		for i := range n {
			if l.spare != nil {
				_ = l.spare.TrySend(back[i].slot) // there is room until the link ends
			} else {
				bufs[i].Release()
			}
		}
		if err != nil {
			l.end(err)
			return
		}
	}
}

// place returns the position of b in the shared memory, or false if b is elsewhere.
func (l *sharedSender) place(b buf.Buf) (part, bool) {
	bytes := b.Bytes()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(bytes))) - uintptr(unsafe.Pointer(unsafe.SliceData(l.blocks)))
	slot := at / uintptr(stride(l.size))
	off := at % uintptr(stride(l.size))
	if slot >= uintptr(len(l.out)) || off+uintptr(len(bytes)) > uintptr(l.size) {
		return part{}, false
	}
	return part{uint32(slot), uint32(off), uint32(len(bytes))}, true
}

func (l *sharedSender) send(ctx context.Context, b buf.Buf, try bool) error {
	if l.spare == nil {
		if p, ok := l.place(b); ok {
			if ok, err := l.push(p, b, false); ok || err != nil {
				return err
			} // otherwise another owner has sent it
		}
	}
	return l.sendCopy(ctx, b, try)
}

// push passes a buffer to the receiver. It returns false if the receiver already has it, or the link has ended.
func (l *sharedSender) push(p part, b buf.Buf, copied bool) (bool, error) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false, l.ended("send on")
	}
	if l.out[p.slot].is {
		l.mu.Unlock()
		return false, nil
	}
	l.out[p.slot] = sent{true, b}
	l.pushed++
	if copied {
		l.copied++
	}
	wake := l.ring.push(p, false) // from here on the receiver has it
	l.mu.Unlock()
	if wake {
		l.sock.wake()
	}
	return true, nil
}

// sendCopy copies b to a buffer of the shared memory, and sends that.
func (l *sharedSender) sendCopy(ctx context.Context, b buf.Buf, try bool) error {
	var own buf.Buf
	var p part
	if l.spare == nil {
		var err error
		own, err = obtain(ctx, l, try, "send on", l.pool.TryGet, l.pool.Get)
		if err != nil {
			return err
		}
		own = own.Slice(0, b.Len())
		copy(own.Bytes(), b.Bytes())
		p, _ = l.place(own)
	} else {
		slot, err := obtain(ctx, l, try, "send on", l.spare.TryRecv, l.spare.Recv)
		if err != nil {
			return err
		}
		p = part{slot, 0, uint32(b.Len())}
		if !l.use() {
			return l.ended("send on")
		}
		copy(l.blocks[int(slot)*stride(l.size):], b.Bytes())
		_ = l.maps.release()
	}
	if _, err := l.push(p, own, true); err != nil {
		if l.spare == nil {
			own.Release()
		}
		return err
	}
	b.Release()
	return nil
}

// use adds a user of the memory. It returns false if the link has ended.
func (l *sharedSender) use() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.maps.use()
	}
	return !l.over
}

// end ends the link. It ignores ErrGone if the receiver closed the link.
func (l *sharedSender) end(cause error) bool {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return false
	}
	l.over = true
	if cause != ErrGone || l.ring.peer.closed.Load() != 1 {
		l.cause = cause
	}
	if cause == nil {
		l.ring.own.closed.Store(1)
	}
	out := l.out
	l.out = make([]sent, len(out))
	l.mu.Unlock()
	l.late.Stop()
	l.pool.Close()
	if l.spare != nil {
		l.spare.Abort(nil)
	} else {
		for _, s := range out {
			if s.is {
				s.b.Release() // the pool does not lend it again
			}
		}
	}
	l.sock.close()
	_ = l.region.Close() // the program releases its buffers later
	_ = l.maps.release()
	return true
}

func (l *sharedSender) ended(op string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return nil
	}
	return &ended{op, l.name, l.cause}
}

func (l *sharedSender) close() bool { return l.end(nil) }

func (l *sharedSender) stats(s *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Shared, s.Passed, s.Copied, s.Wakes = true, l.pushed-l.copied, l.copied, l.sock.wakes.Load()
}
