package shm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"

	"github.com/coir-go/coir"
)

// ErrGone means that the other process has ended without Close. Errors of operations that match it also match
// [coir.ErrClosed].
var ErrGone = errors.New("shm: the other side has ended without Close")

// ErrProtocol means that the other process broke the protocol, and that the link was ended for that reason. Errors of
// operations that match it also match [coir.ErrClosed].
var ErrProtocol = errors.New("shm: the other side broke the protocol")

// Option is an option of [NewSender] and [NewReceiver].
type Option func(*settings)

type settings struct {
	name         string
	copies       bool
	onlyShared   bool
	onlyStreamed bool // set by tests
}

func settingsOf(opts []Option) (o settings) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithName gives the end a name, which errors and reports show.
func WithName(name string) Option { return func(o *settings) { o.name = name } }

// WithCopy keeps the buffers of this end in its own memory, and copies the data that is sent or received. So the other
// process can read only the data that was sent to it, and cannot change data after it was received.
func WithCopy() Option { return func(o *settings) { o.copies = true } }

// WithShared makes the constructor return an error that matches [errors.ErrUnsupported] if memory cannot be shared.
// Without this option, the bytes are then copied through the connection.
func WithShared() Option {
	// Spec: BU-07 (missing descriptor support is ErrUnsupported)
	return func(o *settings) { o.onlyShared = true }
}

// Stats holds the counters of an end. They are read one after another.
type Stats struct {
	Name   string
	Shared bool // false if the bytes go through the connection
	Size   int  // bytes in each buffer
	Cap    int  // number of buffers
	Lent   int  // of a sender: buffers that are not free; of a receiver: buffers received and not released

	Passed uint64 // buffers sent or received without a copy
	Copied uint64 // buffers whose bytes were copied
	Wakes  uint64 // wake-ups sent to the other side
}

const (
	maxSize  = 1 << 30
	maxCount = 1 << 20
)

// ended is the error of an operation on a link that has ended.
type ended struct {
	op, name string
	cause    error // ErrGone, ErrProtocol, the argument of Abort, or nil after Close
}

func (e *ended) Error() string {
	text := "shm: " + e.op + " " + cmp.Or(e.name, "a link") + ": "
	if e.cause == nil {
		return text + "it is closed"
	}
	return text + bare(e.cause)
}

func (e *ended) Is(target error) bool { return target == coir.ErrClosed }

func (e *ended) Unwrap() error { return e.cause }

// unopened is the error of a constructor.
type unopened struct {
	op  string
	err error
}

func (e *unopened) Error() string { return "shm: " + e.op + ": " + bare(e.err) }

func (e *unopened) Unwrap() error { return e.err }

// bare returns the text of a cause without the prefix "shm: ", so that an error has that prefix only once.
func bare(cause error) string { return strings.TrimPrefix(cause.Error(), "shm: ") }

// hello is the first message of the sender, and the answer of the receiver. A message that offers shared memory has the
// descriptor attached.
type hello struct {
	way         way
	size, count int
}

// way says how bytes reach the other side.
type way uint32

const (
	shared way = 1 + iota
	streamed
)

const helloLen = 24

var magic = [8]byte{'c', 'o', 'i', 'r', 's', 'h', 'm', '1'}

func (h hello) encode() []byte {
	b := append(make([]byte, 0, helloLen), magic[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.way))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.count))
	return binary.LittleEndian.AppendUint32(b, 0)
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) != helloLen || [8]byte(b) != magic {
		return h, fmt.Errorf("%w: it is not a link, or has an incompatible version", ErrProtocol)
	}
	h.way = way(binary.LittleEndian.Uint32(b[8:]))
	size, count := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:])
	if h.way != shared && h.way != streamed || size > maxSize || count > maxCount || !fits(int(size), int(count)) {
		return h, fmt.Errorf("%w: it offers %d buffers of %d bytes, in way %d", ErrProtocol, count, size, h.way)
	}
	h.size, h.count = int(size), int(count)
	return h, nil
}

// fits reports whether a link can have count buffers of size bytes: the length of all memory must fit in an int.
func fits(size, count int) bool {
	return 1 <= size && size <= maxSize && 1 <= count && count <= maxCount && count < math.MaxInt/2/stride(size)
}

// stride returns the distance between buffers of a size in memory. It is the same as in package buf.
func stride(size int) int { return (size + line - 1) &^ (line - 1) }

// opening checks whether the caller can create an end of a link.
func opening(ctx context.Context, what string, conn net.Conn) error {
	if conn == nil {
		panic("shm: " + what + " without a connection: the other side would not be found")
	}
	err := coir.Ended(ctx)
	if err == nil && coir.Simulated(ctx) != nil {
		err = errors.New("links are not simulated; use a buf.Chan in a simulation")
	}
	if err != nil {
		_ = conn.Close()
		return &unopened{what, err}
	}
	return nil
}
