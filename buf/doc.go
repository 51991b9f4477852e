// Package buf provides buffers of bytes that have one owner at a time. A [Region] is a bounded piece of memory, off the
// Go heap if the system allows it. A [Pool] lends buffers of one size from a region, and makes its callers wait while
// all are lent. A [Buf] is a small descriptor of one buffer: passing it on copies 32 bytes, never the contents.
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
//		b.Release() // it was not sent, so the caller still owns it
//		return err
//	}
//	// here the receiver owns it
//
// Most programs do not need this package: a channel does not copy the contents of a []byte either, and the garbage
// collector frees it after its last use. Use this package if the memory of your buffers must be bounded, if there are
// so many buffers that the collector shows up in profiles, or to find buffers that are used after they were given away.
//
// # Ownership
//
// Get returns a buffer, which has one owner until it is released. Copies of a Buf, and the results of [Buf.Slice], name
// the same buffer, like slices of an array. [Chan.Send] passes ownership to another fiber or goroutine, and [HandOver]
// does the same for any other way of passing a Buf. If that succeeds, all copies of the sender are stale; if it fails,
// the sender still has the buffer. [Buf.Release] ends the ownership, and the buffer returns to its pool. [Buf.Share]
// adds another owner, and then all owners may only read.
//
// In every build a stale Buf is recognised by its generation. Each method panics if its Buf was released or handed
// over, so such a mistake never reaches the bytes of another owner. Two mistakes cannot be recognised in this way:
// using a slice returned by [Buf.Bytes] after its Buf has become stale, and writing to the bytes of a shared buffer. A
// checked region finds these, too.
//
// # Checked regions
//
// In a checked region each mistake is a panic that names the places: where the buffer was made, where it was released
// or handed over, and where it was used after that. A region is checked if it has the option [WithChecks], if it is
// created in a simulation of package sim, and in builds with -race or with the tag coirinvariants.
//
// Buffers of a checked region are on the heap, and a block of memory is not used twice: each hand-over moves the bytes
// to new memory. So a slice that a former owner has kept does not reach the bytes of the next owner. The old memory is
// filled with 0xDB. If that changes, the next use of the buffer, or Close of the region, reports that it was written
// after its end. [Region.Close] also lists the buffers that were not released.
package buf
