package coir_test

import (
	"context"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// A panic that leaves a call of coir must restore the state of the race detector. If the panic left a section in which
// coir hides its synchronisation without ending the section, the program's synchronisation would be hidden from then
// on, and the detector would report false races. Without -race these tests check only that the calls panic.

// panics calls use, and reports whether it panicked. Then it passes a value to a goroutine through a channel. If the
// detector does not see the channel, it reports a race and so fails the test.
func panics(use func()) (did bool) {
	panicsCalled++
	byOwnPath(panicsCalled, func() {
		value, passed, read := new(int), make(chan struct{}), make(chan struct{})
		go func() {
			<-passed
			*value++
			close(read)
		}()
		func() {
			defer func() { did = recover() != nil }()
			use()
		}()
		*value++
		close(passed)
		<-read
	})
	return did
}

var panicsCalled int

// byOwnPath calls f through frames that depend on n: the detector reports a race between the same stacks only once.
//
//go:noinline
func byOwnPath(n int, f func()) {
	switch {
	case n == 0:
		f()
	case n%2 == 0:
		byOwnPath(n/2, f)
	default:
		byOwnPath(n/2, f)
	}
}

// onEither runs a test in a goroutine and in a fiber.
func onEither(t *testing.T, name string, check func(ctx context.Context, n *coir.Nursery)) {
	t.Run(name, func(t *testing.T) {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			check(ctx, n)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				check(context.Background(), n)
			}()
			_, err := coir.Blocking(ctx, func() (int, error) { <-ended; return 0, nil })
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A method of a nil pointer or of a zero value that panics leaves the race detector as it was, and so does a select of
// a case of one.
//
// Spec: FB-29 (the race detector sees fibers as goroutines)
func TestPanicOfNilIsNotHidden(t *testing.T) {
	for _, none := range []any{
		(*coir.Alarm)(nil), (*coir.Chan[int])(nil), (*coir.Clock)(nil), (*coir.Cond)(nil), (*coir.Event)(nil),
		(*coir.Fiber)(nil), (*coir.Nursery)(nil), (*coir.Ordered[int])(nil), (*coir.Pool[int])(nil),
		(*coir.Promise[int])(nil), (*coir.Queue)(nil), (*coir.Reader[int])(nil), (*coir.Runtime)(nil),
		(*coir.Selector)(nil), (*coir.Simulation)(nil), (*coir.Task[int])(nil), (*coir.Timer)(nil),
		(*coir.Watch)(nil), (*coir.Writer[int])(nil),
		new(coir.Chan[int]), new(coir.Ordered[int]), new(coir.Pool[int]), new(coir.Queue), new(coir.Reader[int]),
		new(coir.Selector), new(coir.Timer), new(coir.Writer[int]),
	} {
		v := reflect.ValueOf(none)
		of := "nil "
		if !v.IsNil() {
			of = "zero "
		}
		for i := range v.NumMethod() {
			onEither(t, of+v.Type().String()+"."+v.Type().Method(i).Name, func(ctx context.Context, n *coir.Nursery) {
				panics(func() {
					for _, out := range call(ctx, n, v.Method(i)) {
						if c, is := out.Interface().(coir.Case); is {
							idle := coir.NewChan[int](0)
							_, _ = coir.Select(ctx, idle.RecvCase(nil), c, coir.After(time.Millisecond))
						}
					}
				})
			})
		}
	}
}

type noWatcher struct{}

func (noWatcher) Ended(error) {}

// A panic out of the middle of an operation leaves the race detector as it was.
//
// Spec: FB-29 (the race detector sees fibers as goroutines)
func TestPanicOfOperationIsNotHidden(t *testing.T) {
	for name, use := range map[string]func(ctx context.Context, n *coir.Nursery){
		"Clock.Advance(-1)": func(context.Context, *coir.Nursery) { coir.NewClock().Advance(-1) },
		"Alarm.Start twice": func(ctx context.Context, _ *coir.Nursery) {
			var a coir.Alarm
			defer a.Stop()
			a.Start(ctx, noWatcher{}, time.Hour)
			a.Start(ctx, noWatcher{}, time.Hour)
		},
		"an observer that panics": func(ctx context.Context, n *coir.Nursery) {
			clock := coir.NewClock()
			var ready atomic.Bool // a worker may still report that the fiber began
			rt := coir.NewRuntime(coir.WithClock(clock), coir.WithObserver(&hooked{onReady: func(*coir.Fiber) {
				if ready.Load() {
					panic("observer failed")
				}
			}}))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
					return coir.Sleep(ctx, time.Hour)
				})
			}()
			for clock.Len() == 0 {
				runtime.Gosched()
			}
			defer func() {
				v := recover()
				ready.Store(false)
				<-ended
				_ = rt.Close(context.Background())
				panic(v)
			}()
			ready.Store(true)
			clock.Advance(time.Hour)
		},
	} {
		onEither(t, name, func(ctx context.Context, n *coir.Nursery) {
			if !panics(func() { use(ctx, n) }) {
				t.Errorf("%s: no panic", name)
			}
		})
	}
}

// call calls a method with arguments that are made up.
func call(ctx context.Context, n *coir.Nursery, method reflect.Value) []reflect.Value {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		switch in := method.Type().In(i); in {
		case reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case reflect.TypeFor[*coir.Nursery]():
			args = append(args, reflect.ValueOf(n))
		case reflect.TypeFor[error]():
			args = append(args, reflect.ValueOf(context.Canceled))
		default:
			if in.Kind() == reflect.Func {
				args = append(args, reflect.MakeFunc(in, func([]reflect.Value) (outs []reflect.Value) {
					for i := range in.NumOut() {
						outs = append(outs, reflect.Zero(in.Out(i)))
					}
					return outs
				}))
				continue
			}
			args = append(args, reflect.Zero(in))
		}
	}
	return method.Call(args)
}
