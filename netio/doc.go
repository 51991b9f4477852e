// Package netio has network connections for fibers. A fiber that has to wait for one parks, and its worker runs others.
//
//	l, err := netio.Listen("tcp", "localhost:7")
//	...
//	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		for {
//			c, err := l.(*netio.Listener).AcceptContext(ctx) // Accept would not end with ctx
//			if err != nil {
//				return err
//			}
//			n.Go("echo", func(ctx context.Context) error {
//				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
//					n.Go("close", func(ctx context.Context) error {
//						_ = coir.WaitCancel(ctx) // io.Copy would not end with it either
//						return c.Close()
//					})
//					defer n.Cancel(nil)
//					_, err := io.Copy(c, c)
//					return err
//				})
//			})
//		}
//	})
//
// # Like package net
//
// [Listen], [Dial], [Dialer] and [ListenConfig] replace those of package net. They return a [net.Conn], a
// [net.Listener] or a [net.PacketConn] that behaves like one of package net: deadlines, closing one end or both while
// others wait, and errors. Any fiber or goroutine may use it; a goroutine that has to wait blocks. So net/http and
// crypto/tls work with it, at either end:
//
//	client := &http.Client{Transport: &http.Transport{DialContext: new(netio.Dialer).DialContext}}
//	server.Serve(l)
//
// Names are resolved and connections are made by package net, in [coir.Blocking]. The result is taken over.
//
// The differences: io.Copy copies by a buffer, where package net lets the system copy between two sockets or from a
// file. On other systems than Linux, the times between keep-alive packets are those of the system.
//
// # Cancel
//
// The methods of a net.Conn take no context, so only Close or a deadline ends them, not a cancel. [Conn.ReadContext],
// [Conn.WriteContext] and [Listener.AcceptContext], which returns a *Conn, take one. What Listen, Accept and Dial
// return as interfaces is a *Listener and a *Conn. In a fiber's own context these methods are also a little faster.
// Code that takes a [net.Conn] ends if the connection is closed when the context ends: the example above has a fiber
// for that. [context.AfterFunc] would do it too, but not in a simulation, because it starts a goroutine.
//
// An error says which time limit has passed. If it is [os.ErrDeadlineExceeded], that was a deadline of the connection
// or the listener. A dial that is too late returns what package net returns, which is [context.DeadlineExceeded], also
// if the limit is one of [coir.WithTimeout]: it is not [coir.ErrTimeout]. The other operations that take a context
// return an error that is both. For all of them the method Timeout of [net.Error] returns true.
//
// # Without a fiber
//
// A connection that may be idle for long needs no fiber and no buffer: [Conn.OnReadable] calls a function when there is
// something to read, which starts one.
//
// # How it works
//
// An operation tries its system call first. If that would block, the caller waits, and one fiber of the default
// runtime, blocked in the kernel (epoll, kqueue), wakes it. That fiber exists while a connection that has waited is
// open, and holds a thread. In return it sees events even when all processors are busy; Go checks its own poller only
// every ten milliseconds then. A wait allocates nothing.
//
// On systems with neither epoll nor kqueue, an operation is that of package net, in [coir.Blocking].
//
// In a bubble of testing/synctest an operation that has to wait returns an error: the fiber that is blocked in the
// kernel would keep the bubble's time from going on. Setting a deadline that is to come returns the same error, and
// leaves the deadline as it was. Test with package sim, or use [net.Pipe] there. A connection that has waited outside
// must not be used in a bubble; this is not checked.
//
// # In a simulation
//
// In a fiber that package sim runs, [Listen], [Dial], [Dialer] and [ListenConfig] use a network that is simulated, for
// TCP and the streams of Unix sockets. A client and its server are tested in one process, without a change of either:
//
//	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
//		... // netio.Listen in one fiber, netio.Dial in another
//	}, sim.WithFaults("netio delay", "netio partial read", "netio reset"))
//
// There is no socket: the network begins empty with each schedule, ends with it, and knows only the fibers of the
// simulation. So make listeners and connections in the function that sim runs. An operation on one of an earlier
// schedule panics; for a goroutine, and after the simulation, it returns an error, and sim reports the goroutine. On
// one that was made outside, an operation of the simulation that has to wait returns an error. Every name of a host is
// good, and has an address of its own: a listener of one name is not found by another. An end that dials has the
// address that it dials. Each address has 16,384 ports for callers that ask for none. Results and errors are those of
// Linux on the loopback device. A direction of a connection holds up to 64 KiB that have not been read, and a writer
// that needs more waits. So a deadlock of two that write and do not read is found, and reported as "write chat:1234".
//
// Time is virtual. Data arrives immediately, and a deadline passes when no fiber can run. A deadline that is made of
// [time.Now] is taken as the time left, rounded up to two digits, so that a moment of real time between the two does
// not matter. On a busy machine the moment may be longer than a hundredth of the time left; then the schedule is
// another one, and its token does not replay. A time limit of coir is exact:
//
//	ctx, cancel := coir.WithTimeout(ctx, 100*time.Millisecond)
//	defer cancel()
//	n, err := c.ReadContext(ctx, b) // not c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
//
// The function of [Conn.OnReadable] runs in the fiber that writes, closes or sets a deadline. If it panics or calls
// [runtime.Goexit], so does that fiber's operation. A Close or a setting of a deadline has done its work then, and a
// Write has written a part. If there is something to read already, or a deadline passes, the function runs when no
// fiber can run. There a panic ends the program.
//
// The network is found by the calling fiber or, if there is none, by the context: in a function that the clock calls,
// give [Dialer.DialContext] or [ListenConfig.Listen] the context of a fiber. Without one, the function of OnReadable
// gets an error there, and a function of another package, as that of desk's OnDone, uses the real network. So does a
// goroutine that the program has started, with any context. Sim fails a schedule in which a fiber starts one. Dial and
// listen in fibers.
//
// These faults happen if sim.WithFaults names them:
//
//	netio delay         a write, an end or a dial arrives after 1 ms to 1 s. What is sent on one connection stays in
//	                    order; connections overtake each other
//	netio partial read  a read returns less than there is
//	netio reset         the connection is reset after some operations, and what has not been read is lost. At each end
//	                    the first read or write fails with ECONNRESET. As on Linux, the error is told once: later
//	                    reads return io.EOF, and later writes fail with EPIPE
//	netio refuse        a dial fails with ECONNREFUSED
//	netio small buffer  a direction of the connection holds 16 bytes. 64 KiB take some 30,000 operations, so a program
//	                    that sends as much needs sim.WithSteps(50_000)
//
// Not simulated: packets, whose functions return an error that matches [errors.ErrUnsupported], [FD], options of
// sockets, and the channel Cancel of a Dialer if it is closed during the dial. Package net/http is not for a
// simulation: it starts goroutines, and waits for them. A schedule that does so fails, however fast the answer is. Nor
// is crypto/tls for one, which draws random numbers, and holds mutexes while it waits.
package netio
