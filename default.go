package coir

import (
	"errors"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// outside holds the defaults of code that runs in no bubble of testing/synctest.
var outside defaults

// defaults is the default runtime outside of bubbles, and the options of every default runtime. The runtime is created
// on first use and never closed: an idle runtime holds no goroutine.
type defaults struct {
	rt xatomic.Pointer[Runtime]

	mu      xatomic.Mutex
	used    bool            // the options can no longer change
	options []RuntimeOption // set once
}

// In a race build, a goroutine that is ordered after nothing creates default runtimes: see makeAlone and
// bubble.Registry. This Release orders it after the initialization of the packages that it uses.
func init() { race.Release(unsafe.Pointer(&outside)) }

// Default returns the default runtime, on which [Run] runs fibers if it is called from a goroutine. In a bubble of
// testing/synctest it is the bubble's own. It need not be closed, and cannot be replaced: if it is closed, every later
// [Run] on it returns [ErrClosed].
func Default() *Runtime { return defaultRuntime() }

// Configure sets the options of the default runtime: those of [NewRuntime]. The default runtimes of bubbles of
// testing/synctest get them too. Call it once, at the start of the program. If a default runtime has been used, by
// [Run], [Default], a time limit or a timer, or if Configure was called before, it changes nothing and returns an
// error.
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

// runtime returns the default runtime outside of bubbles. Sharing it orders nothing.
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

// makeAlone makes the default runtime. Users of the runtime are ordered after its creation, but not after its first
// user. It is called in a hidden section.
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
	race.Acquire(unsafe.Pointer(o)) // of Configure, and of init
	return NewRuntime(o.options...)
}
