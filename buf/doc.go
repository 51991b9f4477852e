// Package buf has buffers of bytes that have one owner at a time. A [Region] is a bounded piece of memory, off the Go
// heap where the system allows it. A [Pool] lends buffers of one size from it, and lets its callers wait when all are
// lent. A [Buf] is a small descriptor of one buffer: passing it on copies 32 bytes, never the contents.
//
//	region, err := buf.NewRegion(16 << 20)
//	...
//	frames, err := buf.NewPool(region, 64<<10, 200, coir.WithName("frames"))
//	...
//	b, err := frames.Get(ctx) // waits while 200 are lent
//	...
//	b, err = b.Fill(conn.Read)
//	...
//	if err := out.Send(ctx, b); err != nil { // out is a *buf.Chan
//		b.Release() // it was not sent, and is still ours
//		return err
//	}
//	// here it is the receiver's
//
// Most programs need none of this: a []byte through a channel is not copied either, and the garbage collector frees it
// when the last user is done. This package is for programs with a bound on the memory of their buffers, with so many
// buffers that the collector shows in profiles, or with buffers that are used after they were given away.
//
// # Ownership
//
// A buffer is made by Get, and has one owner until it is released. Copies of a Buf, and what [Buf.Slice] returns, are
// the same buffer, like slices of an array. Ownership passes to another fiber or goroutine by [Chan.Send], or by
// [HandOver] in any other way. If that succeeds, all copies of the sender are stale; if it fails, the sender has the
// buffer as before. [Buf.Release] ends the ownership, and the buffer goes back to its pool. [Buf.Share] makes a further
// owner, and all owners may then only read.
//
// A stale Buf is recognised by its generation, in every build. Each method panics if its Buf was released or handed
// over, so such a mistake never reaches the bytes of another owner. What no generation can see is a slice, returned by
// [Buf.Bytes], that is used after its Buf has become stale, or bytes of a shared buffer that are written. A checked
// region finds these, too.
//
// # Checked regions
//
// In a checked region each mistake is a panic that names the places: where the buffer was made, where it was released
// or handed over, and where it was used after that. A region is checked if it has the option [WithChecks], if it is
// made in a simulation of package sim, and in builds with -race or with the tag coirinvariants.
//
// Buffers of a checked region are on the heap, and a block of memory is not used twice: with each hand-over the bytes
// move to new memory. So a slice that a former owner has kept does not reach the bytes of the next one. The old memory
// is filled with 0xDB, and if that changes, the next use of the buffer, or Close of the region, says that it was
// written after its end. [Region.Close] also lists the buffers that were not released.
package buf
