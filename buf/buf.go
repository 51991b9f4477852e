package buf

import (
	"fmt"
	"io"
	"net"
)

// Buf is a descriptor of a buffer of bytes, which has one owner at a time. The descriptor is 32 bytes long and names
// the buffer, a part of it, and the generation of its ownership. Pass it by value. Copies of a Buf name the same
// buffer: when the buffer is released or handed over, all of them become stale. Each method panics if the Buf is stale
// or zero. The zero Buf names no buffer.
//
// Only one fiber or goroutine may use a buffer at a time, as with any value that is not safe for concurrent use.
type Buf struct {
	// Spec: BU-01 (a buffer has one owner)
	// Spec: BU-03 (passing a buffer copies a descriptor)

	in       *owner
	gen      uint64
	slot     uint32
	off, len uint32 // within the buffer in the pool
}

// owner identifies the pool of a buffer and, for a share, its state. In a region without checks, the first owners of
// all of a pool's buffers have the same owner. A share has an owner of its own, with its own state.
type owner struct {
	pool *Pool
	own  *state // set for a share
	life *life  // set if the region is checked
}

// state returns the state that decides whether b is valid.
func (b Buf) state() *state {
	if b.in.own != nil {
		return b.in.own
	}
	return &b.in.pool.slots[b.slot].state
}

// block returns all memory of the buffer.
func (b Buf) block() []byte {
	if b.in.life != nil {
		return b.in.life.mem.bytes
	}
	p := b.in.pool
	at := int(b.slot) * p.stride
	return p.base[at : at+p.size : at+p.size]
}

// valid reports whether b owns its buffer.
func (b Buf) valid() bool { return b.in != nil && b.state().valid(b.gen) }

// use starts an operation on the bytes: until unpin is called, b cannot be released or handed over.
func (b Buf) use(what string) *state {
	if b.in == nil {
		b.misused(what, stale)
	}
	s := b.state()
	if o := s.pin(b.gen); o != done {
		b.misused(what, o)
	}
	return s
}

// Bytes returns the bytes of b. Do not use the slice after b was released or handed over. Do not write to it if the
// buffer is shared.
func (b Buf) Bytes() []byte {
	// Spec: BU-04 (a descriptor stays within its region)
	// Spec: BU-05 (use after release is found)
	if !b.valid() {
		b.misused("Bytes", stale)
	}
	return b.bytes()
}

func (b Buf) bytes() []byte { return b.block()[b.off : b.off+b.len : b.off+b.len] }

// Len returns the number of bytes of b.
func (b Buf) Len() int { return int(b.len) }

// Cap returns the number of bytes from the start of b to the end of its buffer, which is the limit for Slice.
func (b Buf) Cap() int {
	if b.in == nil {
		return 0
	}
	return b.in.pool.size - int(b.off)
}

// Slice returns the part of b from i to j. As with a slice of a slice, j may be up to the capacity, and Slice panics if
// i and j are out of range. The result names the same buffer: releasing either releases both.
func (b Buf) Slice(i, j int) Buf {
	// Spec: BU-04 (a descriptor stays within its region)
	if !b.valid() {
		b.misused("Slice", stale)
	}
	if i < 0 || j < i || j > b.Cap() {
		panic(fmt.Sprintf("buf: Slice(%d, %d) of a buffer of %s with capacity %d: out of range", i, j,
			b.in.pool.title(), b.Cap()))
	}
	b.off += uint32(i)
	b.len = uint32(j - i)
	return b
}

// Append returns b with the bytes of p appended. If they do not fit, or the buffer is shared, it copies the contents to
// the smallest free buffer of the region that is large enough, and releases b. It never waits, because callers that
// hold a buffer while they wait for another can wait forever. If there is no such buffer, it returns an error and
// leaves b unchanged; the error is [coir.ErrWouldBlock] if all are lent.
func (b Buf) Append(p []byte) (Buf, error) {
	s := b.use("Append")
	if len(p) <= b.Cap()-b.Len() && b.writable() {
		copy(b.block()[b.off+b.len:], p)
		s.unpin()
		b.len += uint32(len(p))
		return b, nil
	}
	to, err := b.copyTo("Append", b.Len()+len(p))
	s.unpin()
	if err != nil {
		return b, err
	}
	copy(to.block()[to.len:], p)
	to.len += uint32(len(p))
	b.end("Append")
	return to, nil
}

// Write appends p to the buffer, like [Buf.Append], so a *Buf is an [io.Writer].
func (b *Buf) Write(p []byte) (int, error) {
	to, err := b.Append(p)
	if err != nil {
		return 0, err
	}
	*b = to
	return len(p), nil
}

// Fill calls read with the free space after the bytes of b, and returns b extended by the bytes that were read. So a
// socket reads into the buffer without a copy:
//
//	b, err = b.Fill(conn.Read)
//
// While read runs, the buffer cannot be released or handed over. If there is no free space, Fill returns
// [io.ErrShortBuffer]. It panics if the buffer is shared.
func (b Buf) Fill(read func(p []byte) (int, error)) (Buf, error) {
	s := b.use("Fill")
	defer s.unpin()
	if !b.writable() {
		b.misusedShared("Fill")
	}
	room := b.block()[b.off+b.len:]
	if len(room) == 0 {
		return b, io.ErrShortBuffer
	}
	n, err := read(room)
	if n < 0 || n > len(room) {
		panic(fmt.Sprintf("buf: Fill: the function has read %d bytes into %d", n, len(room)))
	}
	b.len += uint32(n)
	return b, err
}

// WriteTo writes the bytes of b to w. It implements [io.WriterTo]. While w writes, the buffer cannot be released or
// handed over.
func (b Buf) WriteTo(w io.Writer) (int64, error) {
	s := b.use("WriteTo")
	defer s.unpin()
	n, err := w.Write(b.bytes())
	return int64(n), err
}

// Buffers returns the bytes of bs as a [net.Buffers], which can be written with one system call if the system supports
// it: to a connection of package net with its method WriteTo, and to a connection of netio with WriteBuffers. The
// caller keeps the buffers, and must not release them or hand them over before they have been written.
func Buffers(bs ...Buf) net.Buffers {
	v := make(net.Buffers, len(bs))
	for i, b := range bs {
		v[i] = b.Bytes()
	}
	return v
}

// Clone copies b to the smallest free buffer of the region that is large enough. The copy has its own owner. Like
// Append, Clone never waits.
func (b Buf) Clone() (Buf, error) {
	s := b.use("Clone")
	defer s.unpin()
	return b.copyTo("Clone", b.Len())
}

// copyTo returns a buffer with room for n bytes that has the contents of b.
func (b Buf) copyTo(what string, n int) (Buf, error) {
	// Spec: BU-08 (hand-overs are counted)
	to, err := b.in.pool.region.tryGet(what, n)
	if err != nil {
		return Buf{}, err
	}
	to.len = uint32(copy(to.block(), b.bytes()))
	b.in.pool.copied.Add(1)
	return to, nil
}

// Share returns another owner of the buffer, and makes the buffer read-only until only one owner is left. Each owner
// must release its own Buf; the last release returns the buffer to its pool. Share allocates.
func (b Buf) Share() Buf {
	// Spec: BU-06 (a region is released once)
	s := b.use("Share")
	p := b.in.pool
	p.slots[b.slot].extra.Add(1)
	in := &owner{pool: p, own: new(state)}
	in.own.init(firstGen)
	if p.book != nil {
		in.life = p.book.share(b)
	}
	s.unpin()
	b.in, b.gen = in, firstGen
	return b
}

// alone reports whether b has no other owner. Only owners can add owners, so the result does not change while b is in
// use.
func (b Buf) alone() bool { return b.in.pool.slots[b.slot].extra.Load() == 0 }

// writable reports whether the owner of b may write to it.
func (b Buf) writable() bool { return b.alone() && !b.in.pool.region.fixed }

// Release ends the ownership. The buffer returns to its pool, or stays with its other owners if it is shared.
func (b Buf) Release() {
	if b.in == nil || b.in.own != nil || b.in.life != nil {
		b.end("Release")
		return
	}
	// This is end for a first owner in a region that is not checked.
	p := b.in.pool
	s := &p.slots[b.slot]
	if _, o := s.end(b.gen); o != done {
		b.misused("Release", o)
	}
	if s.extra.Load() != 0 && !b.lastOwner() || p.keep == nil && p.stack.push(p.slots, b.slot) {
		return
	}
	p.back(b.slot)
}

// end ends the ownership of b, for the method named by what.
func (b Buf) end(what string) {
	// Spec: BU-05 (use after release is found)
	// Spec: BU-06 (a region is released once)
	if b.in == nil {
		b.misused(what, stale)
	}
	p := b.in.pool
	if p.book != nil {
		p.book.beforeEnd(b)
	}
	if _, o := b.state().end(b.gen); o != done {
		b.misused(what, o)
	}
	// From here on b is stale, and this call owns its part of the buffer.
	last := b.lastOwner()
	if p.book != nil {
		p.book.ended(b, last)
	}
	if last {
		p.back(b.slot)
	}
}

// lastOwner removes an owner, and reports whether it was the last.
func (b Buf) lastOwner() bool {
	extra := &b.in.pool.slots[b.slot].extra
	if extra.Load() == 0 {
		return true
	}
	if extra.Add(-1) >= 0 {
		return false
	}
	extra.Store(0) // no owner is left that could share it
	return true
}

// String returns a short description of b. It does not use the buffer.
func (b Buf) String() string {
	if b.in == nil {
		return "buf.Buf(none)"
	}
	p := b.in.pool
	how := ""
	switch {
	case !b.valid():
		how = ", stale"
	case !b.alone():
		how = ", shared"
	}
	return fmt.Sprintf("buf.Buf(%s, number %d, bytes %d to %d of %d%s)",
		p.title(), b.slot, b.off, b.off+b.len, p.size, how)
}
