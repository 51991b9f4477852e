package netio

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"github.com/coir-go/coir"
)

// maxPieces is the largest number of pieces in one system call.
const maxPieces = 1024

// writev writes all of v with as few system calls as possible, and removes from v what it has written.
func (d *descriptor) writev(ctx context.Context, v *net.Buffers) (n int64, err error) {
	s := &d.w
	if err := coir.Ended(ctx); err != nil {
		return 0, err
	}
	if err := d.begin(ctx, s, false); err != nil {
		return 0, err
	}
	var few [8]syscall.Iovec
	pieces := few[:0]
	for {
		if pieces = piecesOf(*v, pieces[:0]); len(pieces) == 0 {
			*v = nil
			break
		}
		m, _, errno := syscall.Syscall(syscall.SYS_WRITEV, uintptr(d.fd),
			uintptr(unsafe.Pointer(&pieces[0])), uintptr(len(pieces)))
		switch errno {
		case 0:
			n += int64(m)
			consume(v, int(m))
			if m == 0 {
				err = io.ErrUnexpectedEOF
			}
		case syscall.EINTR:
		case syscall.EAGAIN:
			err = d.await(ctx, s)
		default:
			err = os.NewSyscallError("writev", errno)
		}
		if err != nil {
			break
		}
	}
	d.end(ctx, s, false)
	return n, err
}

// piecesOf appends the pieces of v that are not empty, up to the number that one system call takes.
func piecesOf(v net.Buffers, pieces []syscall.Iovec) []syscall.Iovec {
	room := maxTransfer
	for _, p := range v {
		if len(p) == 0 {
			continue
		}
		if len(pieces) == maxPieces || room == 0 {
			break
		}
		part := min(len(p), room)
		room -= part
		piece := syscall.Iovec{Base: unsafe.SliceData(p)}
		piece.SetLen(part)
		pieces = append(pieces, piece)
	}
	return pieces
}

// consume removes the first n bytes of v.
func consume(v *net.Buffers, n int) {
	for len(*v) > 0 {
		first := (*v)[0]
		if n < len(first) {
			(*v)[0] = first[n:]
			return
		}
		n -= len(first)
		(*v)[0] = nil
		*v = (*v)[1:]
	}
}
