package stream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
)

// source returns a stream that is made by run.
func source[T any](name string, run runner[T]) Stream[T] {
	return Stream[T]{run: run, plan: &plan{stage: name}}
}

// FromSlice returns a stream of the elements of a slice, which must not change while the stream runs.
//
//	FromSlice([]int{1, 2, 3})   1-2-3-|
func FromSlice[T any](values []T) Stream[T] {
	return source("FromSlice", func(ctx context.Context, d *demand, push func([]T) bool) error {
		var (
			p    pulse
			c    = chunker{size: 1}
			rest = values
		)
		for len(rest) > 0 {
			n := min(c.next(ctx, d), len(rest))
			if !push(rest[:n:n]) {
				return nil
			}
			rest = rest[n:]
			if err := p.beat(ctx, n); err != nil {
				return err
			}
		}
		return coir.Ended(ctx)
	})
}

// chunker chooses the size of chunks for a source whose elements are available. It begins with 1, doubles the size
// while a chunk takes less than shortChunk, and halves it when a chunk takes more than longChunk. So slow functions get
// one element at a time, and a chunk delays neither the next stage nor a cancel for long.
//
// It reads the clock once a chunk, and not at all if the consumer wants one element at a time.
type chunker struct {
	size int
	last time.Duration // when the last chunk began; 0 before the first
}

const (
	shortChunk = 10 * time.Microsecond
	longChunk  = 40 * time.Microsecond
)

func (c *chunker) next(ctx context.Context, d *demand) int {
	if d.want == 1 {
		return 1
	}
	now := coir.Now(ctx)
	if c.last != 0 {
		switch took := now - c.last; {
		case took < shortChunk:
			c.size = min(2*c.size, maxChunk)
		case took > longChunk:
			c.size = max(c.size/2, 1)
		}
	}
	c.last = now
	return min(c.size, d.want)
}

// FromSeq returns a stream of the elements of an iterator. The iterator runs in the fiber that runs the stream, and
// only as far as the consumer wants elements. An iterator that blocks outside of coir blocks the worker of that fiber:
// see [coir.Blocking].
//
//	FromSeq(maps.Keys(m))   a-b-c-|
func FromSeq[T any](seq iter.Seq[T]) Stream[T] {
	return source("FromSeq", func(ctx context.Context, _ *demand, push func([]T) bool) error {
		var (
			p   pulse
			buf [1]T
		)
		for v := range seq {
			buf[0] = v
			if !push(buf[:]) {
				return nil
			}
			if err := p.beat(ctx, 1); err != nil {
				return err
			}
		}
		return coir.Ended(ctx)
	})
}

// FromSeq2 returns a stream of the elements of an iterator over pairs of a value and an error. The first error ends the
// stream.
//
//	FromSeq2(rows)   a-b-X
func FromSeq2[T any](seq iter.Seq2[T, error]) Stream[T] {
	return source("FromSeq2", func(ctx context.Context, _ *demand, push func([]T) bool) error {
		return passAll(ctx, seq, push)
	})
}

func passAll[T any](ctx context.Context, seq iter.Seq2[T, error], push func([]T) bool) error {
	var (
		p   pulse
		buf [1]T
	)
	for v, err := range seq {
		if err != nil {
			return err
		}
		buf[0] = v
		if !push(buf[:]) {
			return nil
		}
		if err := p.beat(ctx, 1); err != nil {
			return err
		}
	}
	return coir.Ended(ctx)
}

// Source is the argument of [From]: a [coir.Chan], a [coir.Reader], a [coir.Ordered], a subscription of package pubsub,
// or a Stream.
type Source[T any] interface {
	All(ctx context.Context) iter.Seq2[T, error]
}

// From returns a stream of the values received from a channel, or from a similar type, until it is closed. The stream
// receives each element only when the consumer wants it, so it passes on each element that it takes.
//
// When the stream ends early, the channel stays open. If the sender must know, use a [coir.Pipe] and close its Reader.
//
//	From(orders)   a---b-c-|
func From[T any](src Source[T]) Stream[T] {
	return source("From", func(ctx context.Context, _ *demand, push func([]T) bool) error {
		return passAll(ctx, src.All(ctx), push)
	})
}

// FromFunc returns a stream of the results of next, until next returns an error. If the error is [io.EOF] itself, the
// stream ends; with any other error it fails.
//
//	FromFunc(next)   a-b-c-|
func FromFunc[T any](next func(ctx context.Context) (T, error)) Stream[T] {
	return source("FromFunc", func(ctx context.Context, _ *demand, push func([]T) bool) error {
		return passAll(ctx, func(yield func(T, error) bool) {
			for {
				v, err := next(ctx)
				if err == io.EOF || !yield(v, err) || err != nil { //nolint:errorlint // a wrapped EOF is a failure
					return
				}
			}
		}, push)
	})
}

// Ticks returns an infinite stream with an element every period: the number of ticks since the last element, which is
// more than 1 if the consumer was slow. It uses a [pace.Ticker].
//
//	Ticks(time.Second)   ---1---1---1...
func Ticks(period time.Duration) Stream[int] {
	if period <= 0 {
		panic("stream: Ticks: the period must be positive")
	}
	return named(&plan{stage: "Ticks"}, func(p *plan) runner[int] {
		return func(ctx context.Context, _ *demand, push func([]int) bool) error {
			t := pace.NewTicker(period, coir.WithName(p.called("ticks")))
			buf := make([]int, 1)
			for {
				n, err := t.Wait(ctx)
				if err != nil {
					return err
				}
				buf[0] = n
				if !push(buf) {
					return nil
				}
			}
		}
	})
}

// Lines returns a stream of the lines of a reader, without their line ends. If a line is longer than 1 MiB, the stream
// fails with an error that matches [bufio.ErrTooLong]. Lines reads up to 64 KiB at a time, or more if a line is longer,
// in [coir.Blocking], and only when it has passed on all lines of the previous read. A reader can be read only once,
// and so can the stream.
//
//	Lines(os.Stdin)   "a"-"b"-|
//
// The end of ctx does not interrupt a read: close the reader to do that. But Close does not interrupt a read of
// os.Stdin. If the program must stop although nothing comes, open the same input once more, and close that:
//
//	in, err := os.Open("/dev/stdin")
func Lines(r io.Reader) Stream[string] {
	return source("Lines", func(ctx context.Context, d *demand, push func([]string) bool) error {
		var (
			p     pulse
			c     = chunker{size: 1}
			text  = text{r: r, buf: make([]byte, 64<<10)}
			chunk []string
		)
		for {
			chunk = text.lines(chunk[:0], c.next(ctx, d))
			if len(chunk) == 0 {
				if text.ended {
					return cmp.Or(text.err, coir.Ended(ctx))
				}
				if err := text.read(ctx); err != nil {
					return err
				}
				c.last = 0 // the time of a read does not count as a chunk's
				continue
			}
			if !push(chunk) {
				return nil
			}
			if err := p.beat(ctx, len(chunk)); err != nil {
				return err
			}
		}
	})
}

const (
	longestLine = 1 << 20
	longestText = longestLine + len("\r\n")
)

// tooLong is the error for a line that is too long.
type tooLong struct{}

func (tooLong) Error() string        { return "stream: Lines: a line is longer than 1 MiB" }
func (tooLong) Is(target error) bool { return target == bufio.ErrTooLong } //nolint:errorlint // this is what Is is for

// text holds the data that has been read and not yet passed on.
type text struct {
	r        io.Reader
	buf      []byte
	from, to int  // the text is buf[from:to]
	seen     int  // there is no line end before this index, so a long line is searched only once
	ended    bool // there is nothing more to read
	err      error
}

// lines appends up to n of the lines that have been read.
func (t *text) lines(to []string, n int) []string {
	for range n {
		begin, end := t.from, t.to
		if at := bytes.IndexByte(t.buf[t.seen:t.to], '\n'); at >= 0 {
			end = t.seen + at
			t.from, t.seen = end+1, end+1
		} else {
			t.seen = t.to
			if !t.ended || begin == end {
				return to
			}
			t.from = t.to
		}
		line := bytes.TrimSuffix(t.buf[begin:end], []byte{'\r'})
		if len(line) > longestLine {
			t.fail(tooLong{})
			return to
		}
		to = append(to, string(line))
	}
	return to
}

// fail drops the remaining text, and makes the stream fail after it.
func (t *text) fail(err error) {
	t.from, t.seen = t.to, t.to
	t.ended, t.err = true, err
}

// read reads more text.
func (t *text) read(ctx context.Context) error {
	if t.from > 0 {
		copy(t.buf, t.buf[t.from:t.to])
		t.from, t.to, t.seen = 0, t.to-t.from, t.seen-t.from
	}
	if t.to == len(t.buf) {
		if t.to >= longestText {
			return tooLong{}
		}
		t.buf = append(t.buf, make([]byte, min(len(t.buf), longestText-len(t.buf)))...)
	}
	for range 100 {
		if err := coir.Ended(ctx); err != nil {
			return err
		}
		n, err := coir.Blocking(ctx, func() (int, error) { return t.r.Read(t.buf[t.to:]) })
		t.to += n
		if err != nil {
			t.ended = true
			if err != io.EOF { //nolint:errorlint // a wrapped EOF is a failure
				t.err = err
			}
		}
		if n > 0 || err != nil {
			return nil
		}
	}
	return io.ErrNoProgress
}

// Using returns a stream that uses a resource, such as a file. Each run opens the resource, and closes it when the run
// ends for any reason. If Close fails and the stream has no other error, the stream fails with the error of Close. If
// the consumer stops before the end, as [First] and [Take] do, the error of Close is dropped; if you need the error,
// store it in Close.
//
//	Using(openFile, lines)   "a"-"b"-|
func Using[R io.Closer, T any](open func(ctx context.Context) (R, error), use func(R) Stream[T]) Stream[T] {
	return source("Using", func(ctx context.Context, d *demand, push func([]T) bool) (err error) {
		r, err := open(ctx)
		if err != nil {
			return err
		}
		on := true
		defer func() {
			if failed := r.Close(); err == nil && on {
				err = failed
			}
		}()
		return use(r).start(ctx, d, func(vs []T) bool {
			on = push(vs)
			return on
		})
	})
}
