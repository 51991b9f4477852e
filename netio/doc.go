// Package netio provides network connections for fibers. A fiber that waits for a connection parks, and its worker runs
// other fibers.
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
// [net.Listener] or a [net.PacketConn] that behaves like one of package net, including deadlines, errors, and closing
// one end or both while operations wait. Any fiber or goroutine may use it; a goroutine that has to wait blocks. So
// net/http and crypto/tls work with it, at either end:
//
//	client := &http.Client{Transport: &http.Transport{DialContext: new(netio.Dialer).DialContext}}
//	server.Serve(l)
//
// Package net resolves names and makes connections, in [coir.Blocking]. Then netio takes over the socket.
//
// There are two differences. io.Copy copies through a buffer, where package net lets the system copy between two
// sockets or from a file. On systems other than Linux, the times between keep-alive packets are those of the system.
//
// # Cancel
//
// The methods of a net.Conn take no context, so a cancellation does not end them; only Close or a deadline does.
// [Conn.ReadContext], [Conn.WriteContext] and [Listener.AcceptContext], which returns a *Conn, take a context. The
// interface values that Listen, Accept and Dial return hold a *Listener or a *Conn. In a fiber's own context these
// methods are also a little faster. Code that takes a [net.Conn] ends if the connection is closed when the context
// ends: the example above has a fiber for that. [context.AfterFunc] could do it too, but not in a simulation, because
// it starts a goroutine.
//
// An error says which time limit has passed. [os.ErrDeadlineExceeded] means a deadline of the connection or the
// listener. A dial that exceeds its time limit returns [context.DeadlineExceeded], as in package net, even if the limit
// was set by [coir.WithTimeout]; that error is not [coir.ErrTimeout]. The other operations that take a context return
// an error that is both. For all of these errors the method Timeout of [net.Error] returns true.
//
// # Without a fiber
//
// A connection that may be idle for a long time needs no fiber and no buffer: [Conn.OnReadable] calls a function when
// there is something to read, and that function starts a fiber.
//
// # How it works
//
// An operation tries its system call first. If that would block, the caller waits until a fiber of the default runtime,
// which is blocked in the kernel (epoll, kqueue), wakes it. That fiber exists, and holds a thread, while a connection
// that has waited is open. In return it sees events even when all processors are busy; Go checks its own poller only
// every ten milliseconds then. A wait does not allocate.
//
// On systems with neither epoll nor kqueue, an operation calls package net, in [coir.Blocking].
//
// In a bubble of testing/synctest an operation that has to wait returns an error, because the fiber that is blocked in
// the kernel would stop the bubble's clock. Setting a deadline in the future returns the same error, and leaves the
// deadline unchanged. Test with package sim, or use [net.Pipe] there. A connection that has waited outside must not be
// used in a bubble; this is not checked.
//
// # In a simulation
//
// In a fiber that package sim runs, [Listen], [Dial], [Dialer] and [ListenConfig] use a simulated network, for TCP and
// for stream sockets of Unix. A client and its server can be tested in one process without changes:
//
//	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
//		... // netio.Listen in one fiber, netio.Dial in another
//	}, sim.WithFaults("netio delay", "netio partial read", "netio reset"))
//
// There are no sockets: each schedule starts with an empty network, which only the fibers of the simulation can reach.
// So create listeners and connections in the function that sim runs. An operation on a connection or listener of an
// earlier schedule panics; called by a goroutine, or after the simulation, it returns an error, and sim reports the
// goroutine. On a connection or listener that was created outside the simulation, an operation that has to wait returns
// an error.
//
// Every host name exists and has its own address: a dial to one name does not reach a listener of another. The end that
// dials has the address that it dials. Each address has 16,384 ports for callers that do not ask for a particular port.
// Results and errors are those of Linux on the loopback device. Each direction of a connection holds up to 64 KiB of
// unread data, and a writer that needs more room waits. So if two ends write and neither reads, sim finds the deadlock
// and reports each end as "write chat:1234".
//
// Time is virtual. Data arrives immediately, and a deadline passes when no fiber can run. A deadline computed with
// [time.Now] is converted to the time left, rounded up to two digits, so that the short real time between the two calls
// does not matter. On a busy machine that time may be longer than a hundredth of the time left; then the schedule
// differs, and its token does not replay. A time limit of coir is exact:
//
//	ctx, cancel := coir.WithTimeout(ctx, 100*time.Millisecond)
//	defer cancel()
//	n, err := c.ReadContext(ctx, b) // not c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
//
// The function of [Conn.OnReadable] runs in the fiber that writes, closes or sets a deadline. If it panics or calls
// [runtime.Goexit], so does that fiber's operation. A Close or a setting of a deadline has then completed its work, and
// a Write has written a part. If there is already something to read, or a deadline passes, the function runs when no
// fiber can run; there a panic ends the program.
//
// An operation finds the simulated network through the calling fiber or, if there is none, through the context. So in a
// function that the clock calls, pass the context of a fiber to [Dialer.DialContext] or [ListenConfig.Listen]. Without
// such a context, the function of OnReadable gets an error, but a function of another package, such as desk's OnDone,
// uses the real network. A goroutine that the program starts also uses the real network, with any context, and sim
// fails a schedule in which a fiber starts one. Dial and listen in fibers.
//
// These faults happen if sim.WithFaults names them:
//
//	netio delay         a write, an end or a dial arrives after 1 ms to 1 s. Data on one connection stays in order, but
//	                    connections overtake each other
//	netio partial read  a read returns less data than has arrived
//	netio reset         the connection is reset after some operations, and unread data is lost. At each end the first
//	                    read or write fails with ECONNRESET. As on Linux, this error is returned once: later reads
//	                    return io.EOF, and later writes fail with EPIPE
//	netio refuse        a dial fails with ECONNREFUSED
//	netio small buffer  a direction of the connection holds 16 bytes. 64 KiB take some 30,000 operations, so a program
//	                    that sends as much needs sim.WithSteps(50_000)
//
// Some things are not simulated: packets, whose functions return an error that matches [errors.ErrUnsupported]; [FD];
// options of sockets; and the channel Cancel of a Dialer, if it is closed during the dial. Package net/http cannot be
// used in a simulation, because it starts goroutines and waits for them, and a schedule that does so fails, however
// fast the answer is. Package crypto/tls cannot be used either: it draws random numbers, and holds mutexes while it
// waits.
package netio
