package coir

import (
	"context"
	"unsafe"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/wait"
)

// Task is a fiber that returns a value: see [Start]. Any number of fibers and goroutines may wait for it.
type Task[T any] struct {
	f     *Fiber // own, or one that runs on a goroutine
	own   Fiber  // embedded, so that task and fiber are one allocation
	fn    func(context.Context) (T, error)
	value T // written by the fiber before its end, if it has not failed
}

// Start starts a fiber that runs fn, like [Nursery.Go], and returns it as a task that has the value of fn. It is a
// function because methods have no type parameters.
//
// A task is a child of its nursery. An error of fn is returned by Wait, and also fails the nursery, which cancels the
// other children and returns the error from Run, unless the task has [WithIsolatedFailure]: then only Run returns it,
// when all fibers have ended. A task whose function panics or calls runtime.Goexit, or that is cancelled, ends as well,
// so that no wait for it hangs.
//
//go:noinline
func Start[T any](n *Nursery, name string, fn func(ctx context.Context) (T, error), opts ...FiberOption) *Task[T] {
	if n == nil || fn == nil {
		panic(notStarted(n, "Start", name))
	}
	t := &Task[T]{fn: fn}
	set := FiberOption{fiber: &t.own, pc: coro.CallerPC()}
	set.add(opts)
	t.f = n.Go(name, t.run, set)
	return t
}

// run is the function of the task's fiber.
func (t *Task[T]) run(ctx context.Context) error {
	fn := t.fn
	t.fn = nil // a task that is kept must not keep what its function captured
	v, err := fn(ctx)
	if err == nil {
		t.value = v
	}
	return err
}

// Fiber returns the fiber that runs the task.
func (t *Task[T]) Fiber() *Fiber { return t.f }

// Wait waits until the task has ended, and returns its value, or its error as [Fiber.Wait] does. It returns ctx's error
// if ctx ends first. If the error is not nil, the value is the zero value.
func (t *Task[T]) Wait(ctx context.Context) (T, error) {
	if err := t.f.Wait(ctx); err != nil {
		var none T
		return none, err
	}
	return t.value, nil
}

// DoneCase returns a case that happens when the task has ended. It stores the value in *v and the error in *err; either
// may be nil.
func (t *Task[T]) DoneCase(v *T, err *error) Case {
	_ = t.f.nursery // a nil task fails here, not under a lock
	return Case{what: caseEvent, arg: (*taskEnd[T])(t), dst: unsafe.Pointer(v), err: err, join: true}
}

// String returns the description of the task's fiber.
func (t *Task[T]) String() string {
	return "coir.Task[" + typeName[T]() + "](" + t.f.Name() + ", " + t.f.State().String() + ")"
}

// taskEnd is the end of a task as a case of a select: that of its fiber, with a value.
type taskEnd[T any] Task[T]

//go:norace
func (e *taskEnd[T]) happened() bool { return e.f.ended() }

//go:norace
func (e *taskEnd[T]) publish(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	return (*fiberEnd)(e.f).publish(n, p, t)
}

//go:norace
func (e *taskEnd[T]) withdraw(n *wait.Node) bool { return (*fiberEnd)(e.f).withdraw(n) }

//go:norace
func (e *taskEnd[T]) op() policy.Op { return (*fiberEnd)(e.f).op() }

func (e *taskEnd[T]) result(cs *Case) {
	(*fiberEnd)(e.f).result(cs)
	if cs.dst != nil {
		*(*T)(cs.dst) = e.value
	}
}
