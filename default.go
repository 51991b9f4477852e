package coir

import (
	"errors"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// outside holds the defaults of code that does not run in a bubble of testing/synctest.
var outside defaults

// defaults holds the default runtime outside of bubbles, and the options of all default runtimes. The runtime is
// created on first use and never closed: an idle runtime holds no goroutine.
type defaults struct {
	rt xatomic.Pointer[Runtime]

	mu      xatomic.Mutex
	used    bool            // the options can no longer change
	options []RuntimeOption // set once
}

// In a race build, default runtimes are created on a goroutine that is not ordered after anything: see makeAlone and
// bubble.Registry. This Release orders that goroutine after the initialisation of the packages that it uses.
func init() { race.Release(unsafe.Pointer(&outside)) }

// Default returns the default runtime, on which [Run] runs fibers when a goroutine calls it. In a bubble of
// testing/synctest, it returns the bubble's own default runtime. The default runtime need not be closed, and cannot be
// replaced: once it is closed, every later [Run] on it returns [ErrClosed].
func Default() *Runtime { return defaultRuntime() }

// Configure sets the options of the default runtime, which are those of [NewRuntime]. They also apply to the default
// runtimes of bubbles of testing/synctest. Call it once, at the start of the program. If [Run], [Default], a time limit
// or a timer has already used a default runtime, or if Configure was called before, Configure changes nothing and
// returns an error.
func Configure(opts ...RuntimeOption) error {
	race.Release(unsafe.Pointer(&outside))
	if !outside.configure(opts) {
		return errors.New("coir: Configure: the default runtime has been configured or used already: " +
			"call Configure once, at the start of main, before the first Run")
	}
	return nil
}

//go:norace
func (o *defaults) configure(opts []RuntimeOption) bool {
	race.Disable()
	defer race.Enable()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used {
		return false
	}
	o.used, o.options = true, opts
	return true
}

// use makes the options final. It is called in a hidden section.
//
//go:norace
func (o *defaults) use() {
	o.mu.Lock()
	o.used = true
	o.mu.Unlock()
}

// runtime returns the default runtime outside of bubbles. It does not order its callers after each other.
//
//go:norace
func (o *defaults) runtime() *Runtime {
	race.Disable()
	rt := o.rt.Load()
	if rt == nil {
		rt = o.make()
	}
	race.Enable()
	race.Acquire(unsafe.Pointer(rt.s))
	return rt
}

//go:noinline
//go:norace
func (o *defaults) make() *Runtime {
	o.use()
	o.mu.Lock()
	defer o.mu.Unlock()
	rt := o.rt.Load()
	if rt == nil {
		rt = o.makeAlone()
		o.rt.Store(rt)
	}
	return rt
}

// newInBubble makes the default runtime of a bubble.
//
//go:norace
func newInBubble() *Runtime {
	race.Disable()
	outside.use()
	race.Enable()
	return outside.new()
}

// makeAlone makes the default runtime. The runtime's users are ordered after its creation, but not after its first
// user. makeAlone is called in a hidden section.
//
//go:norace
func (o *defaults) makeAlone() (rt *Runtime) {
	race.Alone(func() {
		rt = o.new()
		race.Release(unsafe.Pointer(rt.s))
	})
	return rt
}

//go:norace
func (o *defaults) new() *Runtime {
	race.Acquire(unsafe.Pointer(o)) // by Configure and by init
	return NewRuntime(o.options...)
}
