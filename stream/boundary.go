package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/coir-go/coir"
)

// The stages before and after a boundary run in different fibers. The consumer stays in the fiber that runs the stream;
// the input runs in a fiber of a nursery that the boundary opens, and sends to a channel. So each boundary ends its
// fibers before it returns (R5).
//
// How a stream ends at a boundary:
//
//	the input ends      its fiber closes the channel; the consumer receives what is left, and then ErrClosed
//	the input fails     the fiber also stores the error before it closes; the consumer returns it after the elements
//	the consumer leaves it cancels the nursery, which ends every wait of the input
//	a cancellation      ends the waits on both sides
//	a panic             of the input: the nursery cancels the consumer's wait and panics; of the consumer: it panics
//
// The fiber of an input returns no error, because that would cancel the consumer before it has received the elements.

// within opens a nursery for fn, and cancels it when fn returns. Reports and snapshots show its fibers as spawned at
// the program counter p.at; if that is 0, as fibers of coir.
func within(ctx context.Context, p *plan, fn func(ctx context.Context, n *home) error) error {
	// Spec: ST-06 (a torn-down pipeline leaves no fiber)
	var result error
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		defer n.Cancel(nil)
		result = fn(ctx, &home{n, p, coir.WithSpawnSite(p.at)})
		return nil
	})
	return cmp.Or(result, err)
}

// boundary returns the stream of a stage that starts fibers, in a nursery of its own.
func boundary[T any](
	p *plan, run func(ctx context.Context, n *home, d *demand, push func([]T) bool) error,
) Stream[T] {
	return named(p, func(p *plan) runner[T] {
		return func(ctx context.Context, d *demand, push func([]T) bool) error {
			return within(ctx, p, func(ctx context.Context, n *home) error { return run(ctx, n, d, push) })
		}
	})
}

// home is a nursery. Reports and snapshots show its fibers as spawned at the line where the program created the stage.
type home struct {
	*coir.Nursery
	*plan // has the names
	site  coir.FiberOption
}

// Go starts a fiber.
func (h *home) Go(name string, fn func(ctx context.Context) error) { h.Nursery.Go(name, fn, h.site) }

// maker returns the place where the program called the function of this package that calls maker.
func maker() uintptr {
	var pcs [8]uintptr
	n := runtime.Callers(2, pcs[:])
	for _, pc := range pcs[:n] {
		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		if !strings.HasPrefix(frame.Function, "github.com/coir-go/coir/stream.") || strings.HasSuffix(frame.File, "_test.go") {
			return pc
		}
	}
	return 0
}

// inputName returns the name of a fiber that runs a stage's input, whose plan is p.
func inputName(p *plan, stage string) string { return cmp.Or(p.loop(), "input of "+stage) }

// spawn starts a fiber that calls fn, and then calls end with the error of fn. If fn does not return, the error is
// coir.ErrGoexit; if fn panics, so does the nursery.
func spawn(n *home, name string, fn func(ctx context.Context) error, end func(err error)) {
	n.Go(name, func(ctx context.Context) error {
		err := coir.ErrGoexit
		defer func() { end(err) }()
		err = fn(ctx)
		return nil
	})
}

// inlet is a channel to which a stream in another fiber sends its elements.
type inlet[T any] struct {
	*coir.Chan[T]
	failed error // the error of the stream; set before the channel is closed
}

// open starts a fiber of n that runs s and sends its elements to a channel. It takes up to want elements at once.
func open[T any](n *home, name string, s Stream[T], want, capacity int, opts ...coir.ChanOption) *inlet[T] {
	in := &inlet[T]{Chan: coir.NewChan[T](held[T](capacity), append([]coir.ChanOption{coir.WithName(name)}, opts...)...)}
	spawn(n, inputName(s.plan, in.Name()), func(ctx context.Context) error {
		return sendAll(ctx, s, want, in.Chan, opts...)
	}, func(err error) {
		in.failed = err
		in.Close()
	})
	return in
}

// held returns the capacity of a channel. A bounded channel allocates its buffer when it is made; if that is more than
// 1 GiB, it is unbounded instead, and allocates as needed.
func held[T any](capacity int) int {
	if size := max(int(reflect.TypeFor[T]().Size()), 1); capacity > 1<<30/size {
		return coir.Unbounded
	}
	return capacity
}

// checkCapacity panics if a channel cannot have the capacity.
func checkCapacity(of string, capacity int) {
	if capacity < 0 && capacity != coir.Conflated {
		panic(fmt.Sprintf("stream: %s with a capacity of %d: it must be 0 or more; write coir.Unbounded for any number "+
			"of elements, or coir.Conflated for the newest", of, capacity))
	}
}

// sendAll runs s and sends its elements to c, which has the options opts. An element that it could not send is passed
// to the function of coir.OnUndelivered.
func sendAll[T any](ctx context.Context, s Stream[T], want int, c *coir.Chan[T], opts ...coir.ChanOption) error {
	// Spec: ST-04 (backpressure passes through)
	var failed error
	err := s.start(ctx, &demand{want: want}, func(vs []T) bool {
		sent := 0
		if len(vs) == 1 {
			failed = c.Send(ctx, vs[0])
		} else {
			sent, failed = c.SendMany(ctx, vs)
		}
		if failed != nil && len(opts) > 0 {
			handOver(vs[sent:], opts)
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// handOver calls the function of coir.OnUndelivered, if it is among the options, with each element. Only a channel can
// call it, so handOver makes one that loses the elements.
func handOver[T any](vs []T, opts []coir.ChanOption) {
	c := coir.NewChan[T](held[T](len(vs)), opts...)
	for _, v := range vs {
		_ = c.TrySend(v)
	}
	c.Abort(nil)
}

// end returns the error of the stream if err says that the channel is closed, and err otherwise.
func (in *inlet[T]) end(err error) error {
	if errors.Is(err, coir.ErrClosed) {
		return in.failed
	}
	return err
}

// pass pushes the received elements, each time as many as are available and the consumer wants.
func (in *inlet[T]) pass(ctx context.Context, d *demand, push func([]T) bool) error {
	var buf []T
	for {
		buf = room(buf, d.want)
		n, err := in.RecvMany(ctx, buf)
		if err != nil {
			return in.end(err)
		}
		if !push(buf[:n]) {
			return nil
		}
	}
}

// Buffer lets the stages before it run ahead of the consumer, by up to capacity elements, in a fiber of their own. The
// options are those of [coir.NewChan]: with [coir.WithOverflow] elements are dropped when the buffer is full, or the
// stream fails with [coir.ErrWouldBlock]. The function of [coir.OnUndelivered] gets each element that the buffer does
// not pass on: those that are dropped, and, when the stream ends early, those left in the buffer and the one that
// waits to be put in. Two fibers may call it at the same time. The capacity may be [coir.Unbounded], or
// [coir.Conflated]: then a slow consumer gets the newest element only. A buffer of more than 1 GiB is unbounded.
//
//	          a-b-c-d--------|
//	Buffer(2) a---b---c---d--|   a slow consumer
func Buffer[T any](s Stream[T], capacity int, opts ...coir.ChanOption) Stream[T] {
	checkCapacity("Buffer", capacity)
	p := apart(describe(capacity), "Buffer", s.plan)
	return boundary(p, func(ctx context.Context, n *home, d *demand, push func([]T) bool) error {
		in := open(n, n.called("buffer"), s, 1, capacity, opts...)
		defer in.Abort(nil) // hands over the remaining elements
		return in.pass(ctx, d, push)
	})
}
