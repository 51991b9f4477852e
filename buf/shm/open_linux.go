package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// offer makes s a sender, with shared memory if both sides support it.
func offer(ctx context.Context, s *Sender, conn net.Conn, o settings) error {
	sock, err := socketFor(conn, o)
	if err != nil {
		return err
	}
	if sock == nil {
		return offerStream(ctx, s, conn)
	}
	at := pages(areaLen(s.count))
	file, own, err := newMemory(at + s.count*stride(s.size))
	if err != nil { // the system does not have or does not allow such memory
		sock.close()
		if o.onlyShared {
			return errors.Join(err, errors.ErrUnsupported)
		}
		return offerStream(ctx, s, conn)
	}
	err = sock.offer(ctx, hello{shared, s.size, s.count}, file)
	_ = syscall.Close(file)
	var peer []byte
	var h hello
	if err == nil {
		h, peer, err = answerOf(ctx, sock, func(hello) int { return pages(areaLen(s.count)) })
	}
	if err == nil && peer != nil {
		err = newSharedSender(s, o, sock, newMapping(own, peer))
		_ = conn.Close()
		return err
	}
	sock.close()
	_ = syscall.Munmap(own)
	switch {
	case err != nil:
		return err
	case o.onlyShared:
		return errNotShared
	case h.size != s.size || h.count != s.count:
		return fmt.Errorf("%w: its answer describes other buffers", ErrProtocol)
	}
	return newStreamSender(s, conn)
}

// accept makes r a receiver.
func accept(ctx context.Context, r *Receiver, conn net.Conn, o settings) error {
	sock, err := socketFor(conn, o)
	if err != nil {
		return err
	}
	if sock == nil {
		return acceptStream(ctx, r, conn)
	}
	h, peer, err := answerOf(ctx, sock, func(h hello) int { return pages(areaLen(h.count)) + h.count*stride(h.size) })
	if err != nil {
		sock.close()
		return err
	}
	r.size, r.count = h.size, h.count
	if peer != nil {
		file, own, err := newMemory(pages(areaLen(h.count)))
		if err == nil {
			err = sock.offer(ctx, h, file)
			_ = syscall.Close(file)
			m := newMapping(own, peer)
			if err != nil {
				sock.close()
				return errors.Join(err, m.release())
			}
			err = newSharedReceiver(r, o, sock, m)
			_ = conn.Close()
			return err
		}
		_ = syscall.Munmap(peer)
	}
	err = errNotShared
	if !o.onlyShared {
		err = sock.offer(ctx, hello{streamed, h.size, h.count}, -1)
	}
	sock.close()
	if err != nil {
		return err
	}
	return newStreamReceiver(r, conn)
}

// socketFor returns the socket of conn, or nil if the bytes must go through conn.
func socketFor(conn net.Conn, o settings) (*socket, error) {
	if o.onlyStreamed {
		return nil, nil
	}
	sock, err := socketOf(conn, o.name)
	if sock == nil && err == nil && o.onlyShared {
		err = errNotShared
	}
	return sock, err
}

var errNotShared = fmt.Errorf("the connection is not of a Unix socket, or the other side cannot share memory: %w",
	errors.ErrUnsupported)

// answerOf receives the hello of the other side, and maps its memory, whose length the function length computes. The
// memory is nil if the other side has none.
func answerOf(ctx context.Context, sock *socket, length func(hello) int) (hello, []byte, error) {
	h, file, err := sock.answer(ctx)
	if err != nil || file < 0 {
		return h, nil, err
	}
	peer, err := openMemory(file, length(h))
	_ = syscall.Close(file)
	return h, peer, err
}
