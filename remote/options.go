package remote

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"

	"github.com/coir-go/coir"
)

// Option is an option of [Durable] and [Volatile].
type Option func(*settings)

type settings struct {
	over     coir.OverflowPolicy
	codec    Codec
	prefetch int
	tries    int
	meaning  Meaning
	logger   *slog.Logger // nil for the default one
}

func settle[T any](opts []Option) settings {
	set := settings{codec: JSON, prefetch: 32, tries: 20, meaning: MeaningDurable}
	switch any(new(T)).(type) {
	case *[]byte:
		set.codec = Bytes
	case *DeadLetter:
		set.tries = math.MaxInt / crashes
	}
	for _, o := range opts {
		o(&set)
	}
	return set
}

// WithOverflow sets what Send does when the channel is full. With [coir.OverflowWait], the default, it waits. With
// [coir.OverflowFail], it returns [ErrFull]. With [coir.OverflowDropNewest], it drops its value, and [Stats] counts
// that. No policy drops the oldest value, because a receiver may hold it.
func WithOverflow(p coir.OverflowPolicy) Option {
	if p != coir.OverflowWait && p != coir.OverflowFail && p != coir.OverflowDropNewest {
		panic(fmt.Sprintf("remote: WithOverflow(%v): a remote channel waits, fails, or drops the newest", p))
	}
	return func(s *settings) { s.over = p }
}

// WithCodec sets how values become bytes. The default is [Bytes] for values of type []byte, and [JSON] for all others.
// All ends of a channel must use the same codec.
func WithCodec(c Codec) Option { return func(s *settings) { s.codec = c } }

// WithPrefetch sets the largest number of values that an end requests at a time. The values wait at the end until they
// are received, and other ends do not get them. But if no fiber of this end holds a value or receives one for the time
// of [Info.Lease], the end gives them back. An end first requests one value, and then twice as many each time; after a
// value that was delivered before, it starts with one again. The default is 32. n must be positive.
func WithPrefetch(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("remote: WithPrefetch(%d): a receiver asks for at least one value", n))
	}
	return func(s *settings) { s.prefetch = n }
}

// WithTries sets how often a value may fail. A value that has been delivered n times or more becomes a [DeadLetter]
// when [Item.Fail] is called for it, or the effect of [Chan.RecvTx] fails for it. The default is 20: with the delays
// between the tries, that takes a quarter of an hour, so a database may be down for some minutes. n must be positive.
//
// A value may also crash the processes that receive it. So a value becomes a dead letter when it has been delivered 5n
// times without being removed or failing. Values that were received together with it each of these times become dead
// letters too.
//
// The channel of dead letters has no such limit by default, because looking at a dead letter is a delivery too.
func WithTries(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("remote: WithTries(%d): a value is delivered at least once", n))
	}
	return func(s *settings) { s.tries = n }
}

// WithMeaning accepts a transport whose stored messages have at least this meaning. Without it, [Durable] fails if the
// transport promises less than [MeaningDurable].
func WithMeaning(m Meaning) Option { return func(s *settings) { s.meaning = m } }

// WithLogger sets the logger of dead letters, in place of [slog.Default]: see [DeadLetter]. In a simulation, which runs
// many schedules, only a logger that this option sets is used.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// Codec turns values into bytes and back. A codec for protobuf, for example, calls proto.Marshal and proto.Unmarshal.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, to any) error
}

// The codecs of this package.
var (
	Bytes Codec = bytesCodec{} // values of type []byte, unchanged
	JSON  Codec = jsonCodec{}  // package encoding/json
	Gob   Codec = gobCodec{}   // package encoding/gob; each value includes the description of its type
)

// bytesCodec copies the bytes: a caller may change its slice after Send has returned, while an abandoned attempt may
// still use it.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) ([]byte, error) {
	if b, ok := v.([]byte); ok {
		return bytes.Clone(b), nil
	}
	return nil, fmt.Errorf("remote: the codec Bytes is for values of type []byte, and this is a %T", v)
}

func (bytesCodec) Unmarshal(data []byte, to any) error {
	b, ok := to.(*[]byte)
	if !ok {
		return fmt.Errorf("remote: the codec Bytes is for values of type []byte, and this is a %T", to)
	}
	*b = bytes.Clone(data)
	return nil
}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec) Unmarshal(data []byte, to any) error { return json.Unmarshal(data, to) }

type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, to any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(to)
}
