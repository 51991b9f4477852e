// Package netio has network connections for fibers. A fiber that has to wait for one parks, and its worker runs others.
//
//	l, err := netio.Listen("tcp", "localhost:7")
//	...
//	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		for {
//			c, err := l.Accept()
//			if err != nil {
//				return err
//			}
//			n.Go("echo", func(ctx context.Context) error {
//				defer c.Close()
//				_, err := io.Copy(c, c)
//				return err
//			})
//		}
//	})
//
// # Like package net
//
// [Listen], [Dial], [Dialer] and [ListenConfig] stand in for those of package net. What they return is a [net.Conn], a
// [net.Listener] or a [net.PacketConn], and behaves like one of package net: deadlines, closing one end or both while
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
// The methods of a net.Conn take no context, so no cancel ends them: Close does, or a deadline. [Conn.ReadContext],
// [Conn.WriteContext] and [Listener.AcceptContext] take one. In a fiber's own context they are also a little faster.
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
// open, and holds a thread. In return it sees events when all processors are busy, where Go's own poller is looked at once in ten
// milliseconds. A wait allocates nothing.
//
// On systems with neither epoll nor kqueue, an operation is that of package net, in [coir.Blocking].
//
// Package sim does not control what happens outside of the process: a simulated program must not use a connection. In a
// bubble of testing/synctest a connection does not work, because it is woken from outside.
package netio
