package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf/shm"
	"github.com/coir-go/coir/netio"
)

const (
	frameSize = 640 * 480
	frames    = 8 // in memory at the same time
	header    = 16
)

// Report describes a link between the two processes after it has ended.
type Report struct {
	Frames int    // frames sent or received
	First  uint64 // the number of the first frame
	Broken int    // received frames whose contents differ from those sent
	Copied uint64 // frames whose bytes were copied because memory could not be shared
	End    error  // nil if the other process closed the link
}

func (r Report) String() string {
	return fmt.Sprintf("%d frames from number %d, %d broken, %d copied; the end: %v",
		r.Frames, r.First, r.Broken, r.Copied, r.End)
}

// Watch has functions that are called for events.
type Watch struct {
	Frame func(number uint64) // called after each frame that was sent or received; may be nil
	End   func(Report)        // called after each link
}

func (w Watch) frame(number uint64) {
	if w.Frame != nil {
		w.Frame(number)
	}
}

// Dial connects to the consumer.
type Dial func(ctx context.Context) (*netio.Conn, error)

// Produce sends frames until ctx ends. When a link ends, it connects again.
func Produce(ctx context.Context, dial Dial, every time.Duration, watch Watch) error {
	number := uint64(1)
	for {
		conn, err := dial(ctx)
		if err == nil {
			r := Report{First: number}
			r.End = send(ctx, conn, every, watch, &r)
			number += uint64(r.Frames)
			watch.End(r)
		}
		if err := coir.Sleep(ctx, 10*time.Millisecond); err != nil { // by then a consumer may be running again
			return err
		}
	}
}

func send(ctx context.Context, conn *netio.Conn, every time.Duration, watch Watch, r *Report) error {
	out, err := shm.NewSender(ctx, conn, frameSize, frames, shm.WithName("frames"))
	if err != nil {
		return err
	}
	defer func() {
		out.Close()
		r.Copied = out.Stats().Copied
	}()
	for {
		b, err := out.Get(ctx) // waits while the consumer has all buffers
		if err != nil {
			return err
		}
		b = b.Slice(0, frameSize)
		number := r.First + uint64(r.Frames)
		paint(b.Bytes(), number)
		if err := out.Send(ctx, b); err != nil {
			b.Release()
			return err
		}
		r.Frames++
		watch.frame(number)
		if err := coir.Sleep(ctx, every); err != nil {
			return err
		}
	}
}

// Consume receives frames from one producer after another until ctx ends.
func Consume(ctx context.Context, l *netio.Listener, watch Watch) error {
	for {
		conn, err := l.AcceptContext(ctx)
		if err != nil {
			return err
		}
		var r Report
		r.End = receive(ctx, conn, watch, &r)
		watch.End(r)
		if err := coir.Ended(ctx); err != nil {
			return err
		}
	}
}

func receive(ctx context.Context, conn *netio.Conn, watch Watch, r *Report) error {
	in, err := shm.NewReceiver(ctx, conn, shm.WithName("frames"))
	if err != nil {
		return err
	}
	defer func() {
		in.Close()
		r.Copied = in.Stats().Copied
	}()
	for b, err := range in.All(ctx) {
		if err != nil {
			return err
		}
		r.look(b.Bytes())
		b.Release() // returns the buffer to the producer
		watch.frame(r.First + uint64(r.Frames) - 1)
	}
	return nil
}

// look checks a received frame.
func (r *Report) look(frame []byte) {
	number := binary.LittleEndian.Uint64(frame)
	if r.Frames == 0 {
		r.First = number
	}
	if number != r.First+uint64(r.Frames) || sum(frame) != binary.LittleEndian.Uint64(frame[8:]) {
		r.Broken++
	}
	r.Frames++
}

// paint makes a frame: its number, the sum of its pixels, and the pixels.
func paint(frame []byte, number uint64) {
	binary.LittleEndian.PutUint64(frame, number)
	for at := header; at < len(frame); at += 8 {
		binary.LittleEndian.PutUint64(frame[at:], number*uint64(at))
	}
	binary.LittleEndian.PutUint64(frame[8:], sum(frame))
}

func sum(frame []byte) (s uint64) {
	for at := header; at < len(frame); at += 8 {
		s += binary.LittleEndian.Uint64(frame[at:])
	}
	return s
}
