package remote

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// Transport stores messages in named queues, passes messages that are not stored to named subjects, and stores one
// value per key: the first. Channels, tickets and promises need no more of a broker or a database than this. Package
// memory has a transport for tests; package transporttest has the tests that every transport passes.
//
// All methods may be called by several fibers and goroutines at the same time. A method that takes a context returns
// when the context ends, and then returns [ErrUnknown] if it cannot say what became of the request. A transport does
// not repeat a request: the caller does, and it can, because each request may be made twice with the effect of one.
type Transport interface {
	// Info returns what the transport promises. It does not change.
	Info() Info

	// Open makes a queue that holds up to capacity messages, unless there is one. It fails if there is one with another
	// capacity.
	Open(ctx context.Context, queue string, capacity int) error

	// Publish adds m to the end of the queue. It returns nil if m is stored, in the sense of [Info.Meaning], and also if
	// a message with the ID of m was stored in the same queue within the time [Info.Window]: then m is not stored again.
	// It returns [ErrFull] if the queue has no room, [coir.ErrClosed] if it was ended, and [ErrUnavailable] if the
	// transport cannot be reached: then this call has not stored m, and will not. An earlier call may have. Publish
	// returns [ErrUnknown] if m may have been stored, or may still be stored when Publish has returned. Other errors
	// mean that m can never be stored.
	Publish(ctx context.Context, queue string, m Msg) error

	// Pull leases up to credit messages of the queue to the caller, the oldest first, and waits until there is at least
	// one. A leased message is given to no other caller until it is settled or the time [Info.Lease] has passed since
	// the last Progress. It still takes its place in the queue. Pull returns [coir.ErrClosed] if the queue was ended,
	// and all its messages have been removed.
	Pull(ctx context.Context, queue string, credit int) ([]Delivery, error)

	// Leave says that this process no longer pulls from the queue. Messages that the transport has fetched ahead are
	// given back. It does not wait.
	Leave(queue string)

	// End ends the queue: it accepts no more messages, and those in it are still delivered. It returns nil if the end is
	// stored. Then Publish of this transport returns [coir.ErrClosed]; those of other processes do so when they have
	// heard of the end. A message that is stored in between is delivered like the others, but a receiver that has found
	// the queue empty before may be gone.
	End(ctx context.Context, queue string) error

	// Tell passes data to all that serve the subject. It does not wait, and data may be lost, come twice, or come in
	// another order than it was sent.
	Tell(subject string, data []byte)

	// Request passes data to one of those that serve the subject, and returns its answer. It returns [ErrUnavailable] if
	// none serves it, or none can be reached: then data has not been passed on. It returns [ErrUnknown] if it may have
	// been, or may still be. It passes data on at most once.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)

	// Serve calls f for each message that Tell and Request pass to the subject, until it is closed. Request returns the
	// result of f. f must not wait: it may run in no fiber. ctx bounds the call of Serve only, and what Serve returns
	// without an error outlives it. After an error nothing is served. Serve returns [ErrUnavailable] if it may be tried
	// again, and never [ErrUnknown].
	Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error)

	// Put stores data under the key, unless something is stored under it, and returns what is stored then: data, or what
	// an earlier Put has stored. So all calls with a key return the same. data must not be empty. Stored has the sense of
	// [Info.Meaning]. Put returns [ErrUnavailable] and [ErrUnknown] like Publish.
	Put(ctx context.Context, key string, data []byte) (stored []byte, err error)

	// Get returns what is stored under the key, or nil if it finds nothing. It may miss a Put that has returned a moment
	// ago.
	Get(ctx context.Context, key string) ([]byte, error)
}

// Delivery is a message that is leased to a receiver.
type Delivery interface {
	// Msg returns the message.
	Msg() Msg
	// Tries returns how often the message has been delivered, with this delivery.
	Tries() int
	// Ack removes the message. It returns nil if the removal is stored, also if the message had been removed before,
	// by this delivery or another. There is room for another message then, or soon after. It returns [ErrUnknown] or
	// [ErrUnavailable] like Publish.
	Ack(ctx context.Context) error
	// Nak ends the lease: the message is delivered again when the delay has passed. The request may be lost; then the
	// lease ends by time.
	Nak(delay time.Duration)
	// Progress begins the time of the lease again. The request may be lost.
	Progress()
}

// Msg is a message of a queue.
type Msg struct {
	ID   ID
	Data []byte // belongs to the transport once it is published, and to the receiver once it is delivered
}

// ID identifies a value that was sent: the sender, and the number of the value among those of the sender. All attempts
// to send a value have the same ID.
type ID struct {
	Sender uint64 // random, for each channel that is opened
	Seq    uint64
}

// String returns the ID as 32 digits.
func (id ID) String() string {
	b, _ := id.MarshalText() // never fails
	return string(b)
}

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%016x%016x", id.Sender, id.Seq), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *ID) UnmarshalText(text []byte) error {
	var b [16]byte
	if len(text) != hex.EncodedLen(len(b)) {
		return fmt.Errorf("remote: %.40q is not an ID: it has 32 hexadecimal digits", text)
	}
	if _, err := hex.Decode(b[:], text); err != nil {
		return fmt.Errorf("remote: %.40q is not an ID: it has 32 hexadecimal digits", text)
	}
	id.Sender, id.Seq = number(b[:8]), number(b[8:])
	return nil
}

func number(b []byte) (n uint64) {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

// Info is what a [Transport] promises.
type Info struct {
	Meaning Meaning       // what a Publish that returned nil means
	Lease   time.Duration // how long a message is leased without Progress
	Window  time.Duration // how long the ID of a message is remembered, from when it was stored
}

// Meaning is what a transport has done with a message when Publish returns nil.
type Meaning uint8

// The meanings, from the weakest on.
const (
	MeaningStored       Meaning = iota // it survives the end of any one process; a power failure may lose it
	MeaningStoredSynced                // it is on the disk of one machine
	MeaningDurable                     // it is on the disks of a majority of three machines or more
)

// String returns the meaning as text.
func (m Meaning) String() string {
	switch m {
	case MeaningStored:
		return "stored"
	case MeaningStoredSynced:
		return "stored and synced"
	case MeaningDurable:
		return "durable"
	}
	return fmt.Sprintf("Meaning(%d)", uint8(m))
}

// The errors of operations. Compare with errors.Is: the returned errors say more.
var (
	// ErrUnknown means that it is not known whether the operation has had its effect, or will still have it. It is
	// neither a success nor a failure.
	ErrUnknown = attempt.ErrUnknown
	// ErrUnavailable means that the transport, or the peer, cannot be reached now, or that the transport promises less
	// now than [Info] says, and that the operation has had no effect.
	ErrUnavailable = attempt.ErrUnavailable
	// ErrFull means that there is no room for a value, which has not been stored. It is a [coir.ErrWouldBlock].
	ErrFull = fmt.Errorf("remote: no room for another value: %w", coir.ErrWouldBlock)
)
