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

// Transport stores messages in named queues, passes messages that are not stored to named subjects, and stores the
// first value that is put under each key. Channels, tickets and promises need nothing else from a broker or a database.
// Package memory has a transport for tests; package transporttest has the tests that every transport passes.
//
// Several fibers and goroutines may call all methods at the same time. A method that takes a context returns when the
// context ends. It then returns [ErrUnknown] if it does not know the outcome of the request. A transport does not
// repeat a request: the caller does, and that is safe, because a request that is made twice has its effect once.
type Transport interface {
	// Info returns what the transport guarantees. It does not change.
	Info() Info

	// Open makes a queue that holds up to capacity messages, unless the queue exists. It fails if the queue exists with
	// another capacity.
	Open(ctx context.Context, queue string, capacity int) error

	// Publish adds m to the end of the queue. It returns nil if m is stored, in the sense of [Info.Meaning]. If a message
	// with the ID of m was stored in the same queue within the time [Info.Window], Publish also returns nil, and does not
	// store m again. It returns [ErrFull] if the queue has no room, [coir.ErrClosed] if the queue was ended, and
	// [ErrUnavailable] if the transport cannot be reached: then this call has not stored m, and will not, but an earlier
	// call may have. Publish returns [ErrUnknown] if m may have been stored, or may be stored after Publish has returned.
	// Other errors mean that m can never be stored.
	Publish(ctx context.Context, queue string, m Msg) error

	// Pull leases up to credit messages of the queue to the caller, the oldest first, and waits until there is at least
	// one. No other caller gets a leased message until it is settled, or the time [Info.Lease] has passed since the last
	// Progress. A leased message still takes its place in the queue. Pull returns [coir.ErrClosed] if the queue was ended
	// and all its messages have been removed.
	Pull(ctx context.Context, queue string, credit int) ([]Delivery, error)

	// Leave says that this process no longer pulls from the queue. The transport gives back the messages that it has
	// fetched ahead. Leave does not wait.
	Leave(queue string)

	// Len returns the number of messages that the queue holds, including leased ones. It changes nothing. It returns
	// ErrUnavailable and ErrUnknown like Publish.
	Len(ctx context.Context, queue string) (int, error)

	// End ends the queue: the queue accepts no more messages, and still delivers those that it has. End returns nil if the
	// end is stored. From then on, Publish of this transport returns [coir.ErrClosed]; Publish of another process does so
	// when that process learns of the end. A message that is stored in between is delivered like the others, but a
	// receiver that found the queue empty may have left by then.
	End(ctx context.Context, queue string) error

	// Tell passes data to all that serve the subject. It does not wait. Data may be lost, duplicated or reordered.
	Tell(subject string, data []byte)

	// Request passes data to one of those that serve the subject, and returns the answer. It passes data on at most once.
	// It returns [ErrUnavailable] if data was not passed on, because no process serves the subject or none of them can be
	// reached. It returns [ErrUnknown] if data may have been passed on, or may still be.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)

	// Serve calls f for each message that Tell and Request pass to the subject, until the returned Closer is closed.
	// Request returns the result of f. f must not wait: it may run outside of any fiber. ctx bounds only the call of
	// Serve; a Closer that Serve has returned outlives it. After an error, nothing is served. Serve returns
	// [ErrUnavailable] if the caller may try again, and never [ErrUnknown].
	Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error)

	// Put stores data under the key, unless something is stored there already. It returns the bytes that are then stored:
	// data, or those of an earlier Put. So all calls with a key return the same. data must not be empty. Stored has the
	// sense of [Info.Meaning]. Put returns [ErrUnavailable] and [ErrUnknown] like Publish.
	Put(ctx context.Context, key string, data []byte) (stored []byte, err error)

	// Get returns the bytes that are stored under the key, or nil if it finds none. It may miss a Put that returned a
	// moment ago.
	Get(ctx context.Context, key string) ([]byte, error)

	// Ready returns nil if all that this process uses of the transport can be used now: the connection, and the streams
	// or tables. Otherwise the error names what cannot be used, and says why. It changes nothing.
	Ready(ctx context.Context) error

	// Lost returns nil while the transport is connected, as far as this process knows. Otherwise the error says why the
	// connection is lost, and since is when it was lost. Lost does not wait: snapshots call it.
	Lost() (since time.Time, err error)
}

// Delivery is a message that is leased to a receiver.
type Delivery interface {
	// Msg returns the message.
	Msg() Msg
	// Tries returns the number of deliveries of the message, including this one.
	Tries() int
	// Ack removes the message. It returns nil if the removal is stored, even if this delivery or another removed the
	// message earlier. Then, or soon after, the queue has room for another message. Ack returns [ErrUnknown] or
	// [ErrUnavailable] like Publish.
	Ack(ctx context.Context) error
	// Nak ends the lease: the message is delivered again after the delay. The request may be lost; then the lease ends
	// when it expires.
	Nak(delay time.Duration)
	// Progress restarts the time of the lease. The request may be lost.
	Progress()
}

// Msg is a message of a queue.
type Msg struct {
	ID   ID
	Data []byte // belongs to the transport once it is published, and to the receiver once it is delivered
}

// ID identifies a value that was sent, by its sender and its number among the values of that sender. All attempts to
// send a value have the same ID.
type ID struct {
	Sender uint64 // a random number for each channel that is opened
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

// Info describes the guarantees of a [Transport].
type Info struct {
	Meaning Meaning       // of a Publish that returned nil
	Lease   time.Duration // how long a lease lasts without Progress
	Window  time.Duration // how long the ID of a stored message is remembered
}

// Meaning says what a transport has done with a message when Publish returns nil.
type Meaning uint8

// The meanings, the weakest first.
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
	// ErrUnavailable means that the operation had no effect, because the transport or the peer cannot be reached now, or
	// because the transport now promises less than [Info] says.
	ErrUnavailable = attempt.ErrUnavailable
	// ErrFull means that a value was not stored, because there is no room for it. It is a [coir.ErrWouldBlock].
	ErrFull = fmt.Errorf("remote: no room for another value: %w", coir.ErrWouldBlock)
)
