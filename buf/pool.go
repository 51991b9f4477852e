package buf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// Pool lends buffers of one size, up to a fixed number at a time. Get takes a buffer, and [Buf.Release] returns it.
// When all buffers are lent, Get waits like a receive from a channel: callers are served in the order of arrival, and a
// wait ends when its context ends.
//
// A buffer that Get returns has length 0. Its memory still has the bytes of its last use, which [Buf.Slice] can reach:
// clear secrets before Release.
type Pool struct {
	// Spec: BU-09 (a pool makes, resets and lends buffers)

	region *Region
	name   string
	size   int // of each buffer
	stride int
	base   []byte // the pool's part of the region; nil if the region is checked
	slots  []slot
	plain  owner // of all buffers that do not need their own owner
	book   *book // set in a checked region
	keep   func(Buf) bool

	// Free buffers are in the stack, or in the channel while callers wait. The channel has room for all, so that a
	// release never waits. A select always needs them in the channel. So do the race detector and package sim, which do
	// not see operations on the stack.
	//
	// Invariant: while a caller waits, or may start to wait, the stack is shut. So released buffers go to the channel.
	fast   coir.Queue // used only for FastIn
	free   *coir.Chan[Buf]
	mu     sync.Mutex // guards the fields below, and moves to the channel; no fiber yields while it holds mu
	slow   int        // callers that wait, or may start to wait
	always bool       // the stack stays shut
	ended  bool

	// The fields below change all the time, and have their own cache lines: every use of a buffer reads the fields
	// above.
	_                                          [align]byte
	stack                                      stack
	_                                          [align]byte
	moved, copied, cancelled, aborted, misused atomic.Uint64
	retired                                    atomic.Int64
}

// slot is the bookkeeping of one buffer of a pool. It is not part of the region's memory, so that no write to a buffer
// can change it, and it has no pointers, so that the garbage collector does not scan it.
type slot struct {
	state
	link  link
	extra atomic.Int32 // owners other than the first: see Share
}

const align = 64 // a cache line

// NewPool creates a pool of count buffers of size bytes each, and reserves their memory in the region. count is at most
// 16,777,215, and size at most 1 GiB. NewPool fails if the region does not have enough memory left, or is closed.
// [coir.WithName] gives the pool a name, which errors and reports show.
func NewPool(r *Region, size, count int, opts ...coir.NameOption) (*Pool, error) {
	if size < 1 || size > 1<<30 {
		panic(fmt.Sprintf("buf: NewPool with buffers of %d bytes: the size is from 1 to 1 GiB", size))
	}
	if count < 1 || count > maxSlots {
		panic(fmt.Sprintf("buf: NewPool with %d buffers: it has from 1 to %d", count, maxSlots))
	}
	p := &Pool{region: r, size: size, stride: (size + align - 1) &^ (align - 1), always: r.checked, keep: r.keep}
	p.plain.pool = p
	for _, o := range opts {
		p.name = o.Name()
	}
	p.free = coir.NewChan[Buf](count, coir.WithName(p.name), coir.OnUndelivered(func(b Buf) { p.retire(b.slot) }))
	p.slots = make([]slot, count)
	if r.checked {
		p.book = newBook(p, count)
	}
	part, err := r.reserve(p, count, p.stride)
	if err != nil {
		return nil, err
	}
	p.base = part
	for i := range p.slots {
		p.slots[i].init(firstGen)
	}
	if p.always {
		return p, p.fill()
	}
	for i := count - 1; i >= 0; i-- { // the first slot is on top of the stack
		p.put(uint32(i))
	}
	return p, nil
}

// fill puts all buffers into the channel, in one operation, because in a simulation each operation is a step.
func (p *Pool) fill() error {
	p.stack.close(p.slots)
	all := make([]Buf, len(p.slots))
	for i := range all {
		all[i] = p.buffer(uint32(i))
	}
	_, err := p.free.SendMany(context.Background(), all) // there is room
	return err
}

// Get returns an empty buffer, which the caller owns. It waits while all buffers are lent; waiting callers are served
// in the order of arrival. It returns an error that matches [coir.ErrClosed] if the pool is closed, and the error of
// ctx if ctx is done.
func (p *Pool) Get(ctx context.Context) (Buf, error) {
	if _, ok := p.fast.FastIn(ctx); ok {
		if i, ok := p.stack.pop(p.slots); ok {
			return p.popped(i), nil
		}
	}
	return p.getSlow(ctx, -1)
}

// GetTimeout is like Get, but waits for at most d and then returns [coir.ErrTimeout].
func (p *Pool) GetTimeout(ctx context.Context, d time.Duration) (Buf, error) {
	if _, ok := p.fast.FastIn(ctx); ok {
		if i, ok := p.stack.pop(p.slots); ok {
			return p.popped(i), nil
		}
	}
	return p.getSlow(ctx, max(d, 0))
}

// getSlow is Get for a caller that may have to wait, for at most d, or for any time if d is negative.
func (p *Pool) getSlow(ctx context.Context, d time.Duration) (b Buf, err error) {
	// Spec: BU-09 (a pool makes, resets and lends buffers)
	if coir.Ended(ctx) == nil {
		if i, ok := p.stack.pop(p.slots); ok {
			return p.popped(i), nil
		}
		p.enter()
		defer p.leave()
	}
	if d < 0 {
		b, err = p.free.Recv(ctx)
	} else {
		b, err = p.free.RecvTimeout(ctx, d)
	}
	if err != nil {
		return Buf{}, err
	}
	return b.made(), nil
}

// TryGet is like Get, but never waits: if all buffers are lent it returns [coir.ErrWouldBlock].
func (p *Pool) TryGet() (Buf, error) { return p.tryGet() }

func (p *Pool) tryGet() (Buf, error) {
	if i, ok := p.stack.pop(p.slots); ok {
		return p.popped(i), nil
	}
	p.settle()
	b, err := p.free.TryRecv()
	if err != nil {
		return Buf{}, err
	}
	return b.made(), nil
}

// GetCase returns a case that gets a buffer into *b. After the first call of GetCase the pool is as slow as a channel.
func (p *Pool) GetCase(b *Buf) coir.Case {
	if b == nil {
		panic("buf: GetCase(nil): the buffer that it gets would be lost")
	}
	p.shutAlways()
	return p.free.RecvCase(b)
}

// enter starts a call that may wait: from now on free buffers go to the channel.
func (p *Pool) enter() {
	p.mu.Lock()
	if p.slow++; p.slow == 1 && !p.always {
		p.shut()
	}
	p.mu.Unlock()
}

// leave ends the call that enter started. The last caller opens the stack. Buffers that are left in the channel then,
// or arrive there from a release that found the stack shut, stay there for a call that finds the stack empty.
func (p *Pool) leave() {
	p.mu.Lock()
	if p.slow--; p.slow == 0 && !p.always {
		p.stack.open()
	}
	p.mu.Unlock()
}

// shutAlways shuts the stack permanently.
func (p *Pool) shutAlways() {
	p.mu.Lock()
	if !p.always {
		p.always = true
		if p.slow == 0 {
			p.shut()
		}
	}
	p.mu.Unlock()
}

// shut shuts the stack, and moves its slots to the channel. The caller holds p.mu. A TrySend that succeeds, or finds
// the channel closed, does not yield.
func (p *Pool) shut() {
	for _, i := range p.stack.close(p.slots) {
		p.put(i)
	}
}

// settle waits for a call that moves buffers from the stack to the channel, so that TryGet finds all free buffers.
func (p *Pool) settle() {
	p.mu.Lock()
	p.mu.Unlock() //nolint:staticcheck // only to wait
}

// back ends the last ownership of a slot, unless OnRelease keeps the buffer.
func (p *Pool) back(i uint32) {
	if p.keep == nil || !p.keep(p.buffer(i)) {
		p.put(i)
	}
}

// put frees a slot that no handle owns. From here on the next Get owns it.
func (p *Pool) put(i uint32) {
	if p.stack.push(p.slots, i) {
		return
	}
	if p.free.TrySend(p.buffer(i)) != nil { // there is room, so the pool is closed
		p.retire(i)
	}
}

// retire ends a slot of a closed pool.
func (p *Pool) retire(i uint32) {
	if p.book != nil {
		p.book.retire(i)
	}
	p.retired.Add(1)
	// An error here would mean that the memory cannot be unmapped, which would be a bug of this package. There is no
	// caller to return it to.
	_ = p.region.retire(1)
}

// popped returns the handle of a slot that was in the stack.
func (p *Pool) popped(i uint32) Buf { return Buf{in: &p.plain, gen: p.slots[i].generation(), slot: i} }

// buffer returns the handle of a free slot, which is the only one of its generation.
func (p *Pool) buffer(i uint32) Buf {
	b := p.popped(i)
	if p.book != nil {
		b.in = p.book.fresh(i)
	}
	return b
}

// Close closes the pool. Waiting and later calls of Get return an error that matches [coir.ErrClosed]. Lent buffers
// stay valid until they are released. Close reports whether this call closed the pool.
func (p *Pool) Close() bool {
	p.mu.Lock()
	first := !p.ended
	p.ended = true
	p.mu.Unlock()
	p.shutAlways()
	p.free.Abort(nil)
	return first
}

// leaks returns an error if buffers of a closed pool have not been released.
func (p *Pool) leaks() []error {
	var found []error
	if p.book != nil {
		found = p.book.scan()
	}
	if n := p.lent(); n > 0 {
		text := fmt.Sprintf("buf: %s: %d of %d buffers not released", p.title(), n, len(p.slots))
		if p.book != nil {
			text += ": " + strings.Join(p.book.lives(), "; ")
		}
		found = append(found, errors.New(text))
	}
	return found
}

// PoolStats holds the counters of a pool.
type PoolStats struct {
	Name    string
	Size    int // bytes in each buffer
	Cap     int // number of buffers
	Lent    int // buffers that have an owner, or are being passed to one
	Waiting int // calls that wait for a buffer

	Moved     uint64 // hand-overs that succeeded
	Copied    uint64 // copies made by Clone, or by Append to a larger or shared buffer
	Cancelled uint64 // hand-overs that failed: the sender still has the buffer
	Aborted   uint64 // buffers that returned because a Chan did not deliver them
	Misused   uint64 // uses of a Buf that panicked
}

// Stats returns the pool's counters. They are read one after another.
func (p *Pool) Stats() PoolStats {
	// Spec: BU-08 (hand-overs are counted)
	return PoolStats{
		Name: p.name, Size: p.size, Cap: len(p.slots), Lent: p.lent(), Waiting: p.free.Stats().Recv.Waiting,
		Moved: p.moved.Load(), Copied: p.copied.Load(), Cancelled: p.cancelled.Load(), Aborted: p.aborted.Load(),
		Misused: p.misused.Load(),
	}
}

// lent returns the number of buffers that are not free.
func (p *Pool) lent() int {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if !ended {
		return max(len(p.slots)-p.stack.len(p.slots)-p.free.Len(), 0)
	}
	return len(p.slots) - int(p.retired.Load())
}

// Len returns the number of free buffers.
func (p *Pool) Len() int { return p.stack.len(p.slots) + p.free.Len() }

// Cap returns the number of buffers, lent or not.
func (p *Pool) Cap() int { return len(p.slots) }

// Size returns the number of bytes of a buffer.
func (p *Pool) Size() int { return p.size }

// title returns the pool's name, or a description if it has no name.
func (p *Pool) title() string { return cmp.Or(p.name, fmt.Sprintf("a pool of %d bytes", p.size)) }

// String returns a short description of the pool.
func (p *Pool) String() string {
	return fmt.Sprintf("buf.Pool(%s, %d of %d lent, %d bytes each)",
		cmp.Or(p.name, "no name"), p.lent(), len(p.slots), p.size)
}
