//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"
)

// FD is a file descriptor that fibers can wait for: for example a pipe, a terminal, an eventfd, or a descriptor of a C
// library.
type FD struct {
	d    *descriptor
	name string
}

// NewFD takes over the descriptor fd, and makes it non-blocking. Close closes it. Errors show the name. The kernel must
// be able to report events for the descriptor: a regular file is always ready, and a wait for one fails.
func NewFD(fd int, name string) (*FD, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, &fs.PathError{Op: "fcntl", Path: name, Err: err}
	}
	f := &FD{newDescriptor(fd, name, readVerb), name}
	closeWith(f, f.d)
	return f, nil
}

// Read reads into p. A fiber that has to wait parks. Read returns ctx's error when ctx ends.
func (f *FD) Read(ctx context.Context, p []byte) (int, error) {
	n, err := f.d.read(ctx, p, stream)
	runtime.KeepAlive(f)
	return n, f.failed("read", err)
}

// Write writes p, and all of it if the error is nil.
func (f *FD) Write(ctx context.Context, p []byte) (int, error) {
	n, err := f.d.write(ctx, p, stream)
	runtime.KeepAlive(f)
	return n, f.failed("write", err)
}

// WaitRead waits until the descriptor can be read. It does not read; the caller does.
func (f *FD) WaitRead(ctx context.Context) error {
	err := f.d.waitReady(ctx, &f.d.r)
	runtime.KeepAlive(f)
	return f.failed("wait", err)
}

// WaitWrite waits until the descriptor can be written.
func (f *FD) WaitWrite(ctx context.Context) error {
	err := f.d.waitReady(ctx, &f.d.w)
	runtime.KeepAlive(f)
	return f.failed("wait", err)
}

// OnReadable arranges for fn to be called once, when the descriptor can be read: see [Conn.OnReadable].
func (f *FD) OnReadable(fn func()) error {
	if fn == nil {
		panic("netio: FD.OnReadable with a nil function: there is nothing to call")
	}
	return f.failed("wait", f.d.onReadable(func() {
		fn()
		runtime.KeepAlive(f)
	}))
}

// Control calls fn with the descriptor, which stays open during the call.
func (f *FD) Control(fn func(fd int)) error {
	err := f.d.control(func(fd int) error { fn(fd); return nil })
	runtime.KeepAlive(f)
	return f.failed("control", err)
}

// SetReadDeadline sets the deadline of reads, including reads that are waiting. After the deadline they return an error
// that matches [os.ErrDeadlineExceeded]. The zero time means no deadline.
func (f *FD) SetReadDeadline(t time.Time) error { return f.failed("set", f.d.setDeadline(&f.d.r, t)) }

// SetWriteDeadline sets the deadline of writes: see [FD.SetReadDeadline].
func (f *FD) SetWriteDeadline(t time.Time) error { return f.failed("set", f.d.setDeadline(&f.d.w, t)) }

// Close closes the descriptor. Waiting operations return an error that matches [os.ErrClosed].
func (f *FD) Close() error { return f.failed("close", f.d.close()) }

func (f *FD) failed(op string, err error) error {
	switch err {
	case nil, io.EOF:
		return err
	}
	if e, ok := err.(*os.SyscallError); ok {
		err = e.Err
	}
	return &fs.PathError{Op: op, Path: f.name, Err: closedFile(err)}
}
