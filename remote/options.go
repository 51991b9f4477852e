package remote

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"

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
}

func settle[T any](opts []Option) settings {
	set := settings{codec: JSON, prefetch: 32, tries: 20, meaning: MeaningDurable}
	if _, ok := any(new(T)).(*[]byte); ok {
		set.codec = Bytes
	}
	for _, o := range opts {
		o(&set)
	}
	return set
}

// WithOverflow sets what Send does when the channel is full. With [coir.OverflowWait], the default, it waits. With
// [coir.OverflowFail] it returns [ErrFull]. With [coir.OverflowDropNewest] it drops its value, which [Stats] counts.
// There is no policy that drops the oldest: a receiver may hold it.
func WithOverflow(p coir.OverflowPolicy) Option {
	if p != coir.OverflowWait && p != coir.OverflowFail && p != coir.OverflowDropNewest {
		panic(fmt.Sprintf("remote: WithOverflow(%v): a remote channel waits, fails, or drops the newest", p))
	}
	return func(s *settings) { s.over = p }
}

// WithCodec sets how values become bytes. The default is [Bytes] for values of type []byte, and [JSON] for all others.
// All ends of a channel have the same.
func WithCodec(c Codec) Option { return func(s *settings) { s.codec = c } }

// WithPrefetch sets how many values an end asks for at a time, at most. They wait there until they are received, and
// other ends do not get them, unless for the time of [Info.Lease] no fiber of this end has a value or receives one. An
// end begins with one value, and asks for twice as many each time; after a value that was delivered before, it begins
// with one again. The default is 32. n must be positive.
func WithPrefetch(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("remote: WithPrefetch(%d): a receiver asks for at least one value", n))
	}
	return func(s *settings) { s.prefetch = n }
}

// WithTries sets how often a value may fail. If [Item.Fail] is called for a value that has been delivered n times or
// more, or the effect of [Chan.RecvTx] fails for it, it becomes a [DeadLetter]. The default is 20: with the delays
// between them that is after a quarter of an hour, so that a database may be away for some minutes. n must be positive.
//
// A value may also end the processes that receive it. So it becomes a dead letter when it has been delivered 5n times
// and was neither removed nor failed; and with it others that were received at the same time, each of these times.
func WithTries(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("remote: WithTries(%d): a value is delivered at least once", n))
	}
	return func(s *settings) { s.tries = n }
}

// WithMeaning accepts a transport whose stored messages have at least this meaning. Without it [Durable] fails if the
// transport has a weaker one than [MeaningDurable].
func WithMeaning(m Meaning) Option { return func(s *settings) { s.meaning = m } }

// Codec turns values into bytes and back. A codec for protobuf, for example, calls proto.Marshal and proto.Unmarshal.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, to any) error
}

// The codecs of this package.
var (
	Bytes Codec = bytesCodec{} // values of type []byte, as they are
	JSON  Codec = jsonCodec{}  // package encoding/json
	Gob   Codec = gobCodec{}   // package encoding/gob; each value has the description of its type
)

// bytesCodec copies: a caller may change its slice when Send has returned, and an attempt that was given up may still
// use it then.
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
