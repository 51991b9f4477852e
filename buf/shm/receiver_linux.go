package shm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// sharedReceiver is the receiving end with shared memory.
//
// Its pool has the sender's buffers, as read-only memory. At first it takes all of them out of the pool and keeps them
// in idle. A received buffer moves from idle to its owner, and returns through OnRelease. If the receiver copies,
// because of WithCopy or because its region is checked, the pool has its own memory.
type sharedReceiver struct {
	name   string
	size   int
	sock   *socket
	maps   *mapping
	blocks []byte // the memory of the buffers
	region *buf.Region
	pool   *buf.Pool
	copies bool
	patience

	cond  coir.Cond // guards the fields below
	ring  ring
	has   []bool    // by number of a buffer: it was received and not returned
	idle  []buf.Buf // the other buffers, if the receiver does not copy
	lent  int       // how many of has are true
	total uint64    // how many buffers were received
	gone  bool      // the sender has ended and will add no more entries
	over  bool      // the link has ended
	cause error     // why the link or the sender ended
}

var recvVerb = &coir.Verb{Name: "receive", Waits: "to receive from", Of: "link"}

// newSharedReceiver makes r a receiver. It takes over the socket and the mapping, even if it fails.
func newSharedReceiver(r *Receiver, o settings, sock *socket, m *mapping) error {
	at := pages(areaLen(r.count))
	l := &sharedReceiver{name: r.name, size: r.size, sock: sock, maps: m, blocks: m.peer[at:], has: make([]bool, r.count)}
	l.cond.Init(coir.WithName(r.name))
	l.cond.Describe(recvVerb)
	l.ring = ring{own: areaIn(m.own, r.count), peer: areaIn(m.peer, r.count), count: r.count}
	var err error
	if l.region, l.pool, err = l.open(r.count, o.copies); err != nil {
		sock.close()
		return errors.Join(err, m.release())
	}
	r.link = l
	if err := sock.watch(l.readable); err != nil {
		l.finish(err)
		return err
	}
	return nil
}

// open creates the pool, and takes all of the sender's buffers out of it. If it creates a pool of copies, it sets
// copies.
func (l *sharedReceiver) open(count int, copies bool) (*buf.Region, *buf.Pool, error) {
	if !copies {
		l.maps.use() // for the region
		region, pool, err := newPool(l.name, l.size, count, buf.WithMemory(l.blocks, l.maps.release),
			buf.WithReadOnly(), buf.OnRelease(l.keep))
		if err != nil {
			return nil, nil, err
		}
		if region.OffHeap() {
			l.idle = make([]buf.Buf, count)
			for range l.idle {
				b, err := pool.TryGet()
				if err != nil {
					return nil, nil, errors.Join(err, region.Close())
				}
				l.idle[l.slot(b)] = b
			}
			return region, pool, nil
		}
		_ = region.Close() // the region is checked: its buffers are not in the given memory
	}
	l.copies = true
	return newPool(l.name, l.size, count)
}

// slot returns the number of an empty buffer.
func (l *sharedReceiver) slot(b buf.Buf) uint32 {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes()))) - uintptr(unsafe.Pointer(unsafe.SliceData(l.blocks)))
	return uint32(at / uintptr(stride(l.size)))
}

// readable is called when there are wake-ups, or when the sender has ended.
func (l *sharedReceiver) readable() {
	if l.sock.drain() || l.sock.watch(l.readable) != nil {
		l.ended(ErrGone)
		return
	}
	l.cond.Lock()
	l.cond.Broadcast()
	l.cond.Unlock()
}

// ended records that the sender has ended. It ignores ErrGone if the sender closed the link.
func (l *sharedReceiver) ended(cause error) {
	l.cond.Lock()
	if !l.gone && !l.over {
		l.gone = true
		if cause != ErrGone || l.ring.peer.closed.Load() != 1 {
			l.cause = cause
		}
	}
	l.cond.Broadcast()
	l.cond.Unlock()
	l.sock.close()
}

func (l *sharedReceiver) recv(ctx context.Context, try bool) (buf.Buf, error) {
	if l.copies {
		return l.recvCopy(ctx, try)
	}
	p, err := l.next(ctx, try)
	if err != nil {
		return buf.Buf{}, err
	}
	return p.b.Slice(int(p.off), int(p.off+p.len)), nil
}

// received is a part of a buffer. It has the buffer unless the receiver copies.
type received struct {
	part
	b buf.Buf
}

// next takes the next entry of the ring. It waits for an entry unless try is true.
func (l *sharedReceiver) next(ctx context.Context, try bool) (received, error) {
	var begin time.Time // when the wait began
	l.cond.Lock()
	for {
		if l.over {
			err := &ended{"receive from", l.name, l.cause}
			l.cond.Unlock()
			return received{}, err
		}
		p, ok, err := l.ring.pop()
		if ok {
			err = l.check(p)
		}
		switch {
		case err != nil || !ok && l.gone:
			if err == nil {
				err = l.cause
			}
			l.cond.Unlock()
			l.finish(err)
			l.cond.Lock()
		case ok:
			got := received{part: p}
			if !l.copies {
				got.b, l.idle[p.slot] = l.idle[p.slot], buf.Buf{}
			}
			l.has[p.slot] = true
			l.lent++
			l.total++
			l.cond.Unlock()
			if begin != (time.Time{}) {
				l.slept(begin)
			}
			return got, nil
		case try:
			l.cond.Unlock()
			return received{}, fmt.Errorf("shm: receive from %s: there is nothing yet: %w",
				cmp.Or(l.name, "a link"), coir.ErrWouldBlock)
		case begin == (time.Time{}):
			begin = time.Now()
			wake := l.ring.sleeper(true) // this side has nothing to do
			l.cond.Unlock()
			if wake {
				l.sock.wake()
			}
			l.look(ctx, l.changed)
			l.cond.Lock()
		case l.ring.announce(1):
			if err := l.cond.Wait(ctx); err != nil {
				l.cond.Unlock()
				return received{}, err
			}
		}
	}
}

// changed reports whether a receive need not wait.
func (l *sharedReceiver) changed() bool {
	l.cond.Lock()
	defer l.cond.Unlock()
	return l.over || l.gone || !l.ring.empty()
}

// check returns an error if the sender cannot have sent p.
func (l *sharedReceiver) check(p part) error {
	if int64(p.slot) >= int64(len(l.has)) || uint64(p.off)+uint64(p.len) > uint64(l.size) {
		return fmt.Errorf("%w: it sends bytes %d to %d of buffer %d; there are %d of %d bytes", ErrProtocol,
			p.off, uint64(p.off)+uint64(p.len), p.slot, len(l.has), l.size)
	}
	if l.has[p.slot] {
		return fmt.Errorf("%w: it sends buffer %d, which was not returned", ErrProtocol, p.slot)
	}
	return nil
}

// recvCopy copies a received buffer to a buffer of the receiver's own.
func (l *sharedReceiver) recvCopy(ctx context.Context, try bool) (b buf.Buf, err error) {
	if try {
		b, err = l.pool.TryGet()
	} else {
		b, err = l.pool.Get(ctx)
	}
	if err != nil {
		if errors.Is(err, coir.ErrClosed) {
			_, err = l.next(ctx, true)
		}
		return buf.Buf{}, err
	}
	p, err := l.next(ctx, try)
	if err == nil && !l.use() {
		_, err = l.next(ctx, true)
	}
	if err != nil {
		b.Release()
		return buf.Buf{}, err
	}
	b = b.Slice(0, int(p.len))
	at := int(p.slot)*stride(l.size) + int(p.off)
	copy(b.Bytes(), l.blocks[at:])
	_ = l.maps.release()
	l.giveBack(p.slot, buf.Buf{})
	return b, nil
}

// use adds a user of the memory. It returns false if the link has ended.
func (l *sharedReceiver) use() bool {
	l.cond.Lock()
	defer l.cond.Unlock()
	if !l.over {
		l.maps.use()
	}
	return !l.over
}

// keep is called with a buffer that was released.
func (l *sharedReceiver) keep(b buf.Buf) bool { return l.giveBack(l.slot(b), b) }

// giveBack returns a buffer to the sender. It returns false if the link has ended.
func (l *sharedReceiver) giveBack(slot uint32, b buf.Buf) bool {
	l.cond.Lock()
	if l.over {
		l.cond.Unlock()
		return false
	}
	if !l.copies {
		l.idle[slot] = b
	}
	l.has[slot] = false
	l.lent--
	wake := l.ring.push(part{slot: slot}, l.ring.empty()) // from here on the sender has it
	l.cond.Unlock()
	if wake {
		l.sock.wake()
	}
	return true
}

// finish ends the link. It reports whether this call ended it.
func (l *sharedReceiver) finish(cause error) bool {
	l.cond.Lock()
	if l.over {
		l.cond.Unlock()
		return false
	}
	l.over, l.cause = true, cause
	if cause == nil {
		l.ring.own.closed.Store(1)
	}
	idle := l.idle
	l.idle = nil
	l.cond.Broadcast()
	l.cond.Unlock()
	l.sock.close()
	l.pool.Close()
	for _, b := range idle {
		if b != (buf.Buf{}) {
			b.Release() // keep refuses it
		}
	}
	_ = l.region.Close() // the program releases its buffers later
	_ = l.maps.release()
	return true
}

func (l *sharedReceiver) close() bool { return l.finish(nil) }

func (l *sharedReceiver) stats(s *Stats) {
	l.cond.Lock()
	defer l.cond.Unlock()
	s.Shared, s.Lent, s.Passed, s.Wakes = true, l.lent, l.total, l.sock.wakes.Load()
	if l.copies {
		s.Lent, s.Passed, s.Copied = l.pool.Stats().Lent, 0, l.total
	}
}
