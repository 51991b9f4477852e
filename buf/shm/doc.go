// Package shm sends buffers of package buf to another process, without copying them. A [Sender] lends buffers from
// memory that it shares with the process of the [Receiver]. A send passes the number of a buffer; when the receiver
// releases the buffer, the number is returned.
//
//	// one process
//	out, err := shm.NewSender(ctx, conn, 64<<10, 32) // 32 buffers of 64 KiB
//	...
//	b, err := out.Get(ctx) // waits while the receiver has all of them
//	...
//	b, err = b.Fill(camera.Read)
//	...
//	if err := out.Send(ctx, b); err != nil {
//		b.Release() // it was not sent, so the caller still owns it
//	}
//
//	// the other
//	in, err := shm.NewReceiver(ctx, conn)
//	...
//	for b, err := range in.All(ctx) {
//		... // b.Bytes() is what the sender wrote
//		b.Release()
//	}
//
// conn is a connection of a Unix socket between the two processes, of package net or netio. The link uses it to pass
// the memory, to wake a side that sleeps, and to notice the end of the other process. Any number of fibers and
// goroutines may use an end of the link.
//
// # What is promised
//
// Sends, receives, time limits, cancellation and Close work as for a [buf.Chan] whose capacity is the number of
// buffers. A send that fails leaves the buffer with its sender. Between two processes the package also promises:
//
//   - When the other process ends without Close, for example because it is killed, what it had sent is still received.
//     Then operations return an error that matches [coir.ErrClosed] and [ErrGone]. The sender does not know whether the
//     last buffers that it sent have been received.
//   - The other process is not trusted with memory or time. Whatever it writes to the memory or the socket, this side
//     does not panic, reads nothing outside of the buffers, and ends every wait with its context. A side that finds the
//     protocol broken ends the link: operations return [ErrProtocol].
//   - The other process cannot shrink the memory, so that a read here would fault, and the receiver cannot write to
//     the memory of the sender: it is sealed, and a link without the seals is refused.
//
// The package does not promise that buffers are private: the sender can change a buffer after it has sent it, and the
// receiver can read all buffers, even those that were not sent. If that matters, use [WithCopy]. If the other process
// is stopped but does not end, this side waits for it. Received buffers are read-only; a write to their bytes is a
// fault, which ends the program.
//
// # Without shared memory
//
// Memory is shared on Linux. On other systems, and if the connection is not a Unix socket, the same functions copy the
// bytes through the connection: see [Stats.Shared]. With [WithShared] the constructor fails instead. In a checked
// region (see package buf), and so with -race, buffers are on the heap, and their bytes are copied to and from the
// shared memory.
//
// A link cannot be simulated: in a simulation of package sim the constructors return an error.
package shm
