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
	f     *Fiber // own, or a fiber that runs on a goroutine
	own   Fiber  // embedded, so that the task and its fiber need only one allocation
	fn    func(context.Context) (T, error)
	value T // written by the fiber before it ends, if fn has not failed
}

// Start starts a fiber that runs fn, like [Nursery.Go], and returns it as a task with the result of fn. Start is a
// function because methods cannot have type parameters.
//
// A task is a child of its nursery. An error of fn is returned by Wait. It also fails the nursery, which cancels the
// other children and returns the error from Run; with [WithIsolatedFailure] it cancels no child, and Run returns it
// when all fibers have ended. A task also ends if its function panics or calls runtime.Goexit, or if it is cancelled,
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
	t.fn = nil // so that a task that is kept does not keep the variables that its function captured
	v, err := fn(ctx)
	if err == nil {
		t.value = v
	}
	return err
}

// Fiber returns the fiber that runs the task.
func (t *Task[T]) Fiber() *Fiber { return t.f }

// Wait waits until the task has ended, and returns its value, or its error as [Fiber.Wait] does. If ctx ends first, it
// returns ctx's error. If the error is not nil, the value is the zero value.
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
	_ = t.f.nursery // panics here if the task is nil, not under a lock
	return Case{what: caseEvent, arg: (*taskEnd[T])(t), ptr: unsafe.Pointer(v), err: err, join: true}
}

// String returns a short description of the task: the name of its fiber, and what it is doing.
func (t *Task[T]) String() string {
	return "coir.Task[" + typeName[T]() + "](" + t.f.Name() + ", " + t.f.State().String() + ")"
}

// taskEnd is the end of a task used as a case of a select: the end of its fiber, with a value.
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

func (e *taskEnd[T]) result(c *Case) {
	(*fiberEnd)(e.f).result(c)
	if c.ptr != nil {
		*(*T)(c.ptr) = e.value
	}
}
