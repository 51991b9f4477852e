package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Child is a function that a supervisor runs.
type Child struct {
	Name    string                          // shown in events, errors and reports
	Run     func(ctx context.Context) error // must return when ctx ends
	Restart Restart
}

// Restart says when a child that has ended is restarted.
type Restart uint8

// The restart policies.
const (
	RestartPermanent Restart = iota // always
	RestartTransient                // if it failed: it returned an error, panicked or called runtime.Goexit
	RestartTemporary                // never; its failure does not affect the others
)

func (r Restart) String() string {
	return word(int(r), "permanent", "transient", "temporary")
}

// Strategy says which other children are stopped and restarted when a child is restarted.
type Strategy uint8

// The strategies. Children that have ended for good are not restarted, and a temporary child that is stopped has ended
// for good.
const (
	StrategyOneForOne  Strategy = iota // no others
	StrategyOneForAll                  // all others
	StrategyRestForOne                 // all children after it in the list
)

func (s Strategy) String() string {
	return word(int(s), "one for one", "one for all", "rest for one")
}

func word(i int, words ...string) string {
	if i >= len(words) {
		return "unknown"
	}
	return words[i]
}

// Option is an option of [New].
type Option func(*settings)

type settings struct {
	name     string
	strategy Strategy
	most     int // how many restarts are allowed within
	within   time.Duration
	first    time.Duration // the backoff
	longest  time.Duration
}

// WithName gives the supervisor a name, which events, errors and reports show.
func WithName(name string) Option { return func(set *settings) { set.name = name } }

// WithStrategy sets the strategy. The default is [StrategyOneForOne].
func WithStrategy(s Strategy) Option {
	if s > StrategyRestForOne {
		panic(fmt.Sprintf("supervise: WithStrategy(%d): unknown strategy", s))
	}
	return func(set *settings) { set.strategy = s }
}

// WithIntensity sets how many restarts are allowed within a period. If one more is needed, the supervisor gives up. The
// default is 10 within a minute.
func WithIntensity(restarts int, within time.Duration) Option {
	if restarts < 0 || within <= 0 {
		panic(fmt.Sprintf("supervise: WithIntensity(%d, %v): the number must not be negative, and the period "+
			"must be positive", restarts, within))
	}
	return func(set *settings) { set.most, set.within = restarts, within }
}

// WithBackoff sets how long the supervisor waits before a restart: after the first failure of a child a random time
// between first/2 and first, and after each further failure in a row up to twice as long, but never more than longest.
// After a child has run for longer than longest, the waits begin with first again. By default, first is 100
// milliseconds and longest 10 seconds. If both are 0, there is no wait.
func WithBackoff(first, longest time.Duration) Option {
	if first < 0 || longest < first {
		panic(fmt.Sprintf("supervise: WithBackoff(%v, %v): the first wait must not be negative, nor longer than the longest",
			first, longest))
	}
	return func(set *settings) { set.first, set.longest = first, longest }
}

// Supervisor runs children, and restarts those that fail. Create one with [New].
type Supervisor struct {
	settings
	children []Child
	events   *coir.Writer[Event]
	reader   *coir.Reader[Event]
	shown    history
	site     coir.FiberOption // where New was called: the place in the program that defines the children
	running  locks.Mutex      // not an atomic, so that package sim sees that two calls of Run depend on each other
}

// keptEvents is the number of events that are kept for a slow reader.
const keptEvents = 64

// New returns a supervisor for the children. [Supervisor.Run] starts them in this order.
func New(children []Child, opts ...Option) *Supervisor {
	s := &Supervisor{
		settings: settings{most: 10, within: time.Minute, first: 100 * time.Millisecond, longest: 10 * time.Second},
		children: slices.Clone(children),
	}
	for i, c := range children {
		if c.Run == nil {
			panic(fmt.Sprintf("supervise: New: child %d, %q, has no function to run", i, c.Name))
		}
		if c.Restart > RestartTemporary {
			panic(fmt.Sprintf("supervise: New: child %d, %q, has the unknown policy Restart(%d)", i, c.Name, c.Restart))
		}
	}
	for _, o := range opts {
		o(&s.settings)
	}
	var caller [1]uintptr
	runtime.Callers(2, caller[:])
	s.site = coir.WithSpawnSite(caller[0])
	s.events, s.reader = coir.Pipe[Event](
		keptEvents, coir.WithName(s.title()+" events"), coir.WithOverflow(coir.OverflowDropOldest))
	return s
}

// Name returns the name that [WithName] gave the supervisor.
func (s *Supervisor) Name() string { return s.name }

// title returns the word for the supervisor in the names of its channels.
func (s *Supervisor) title() string { return cmp.Or(s.name, "supervisor") }

// String returns a short description of the supervisor.
func (s *Supervisor) String() string {
	if s.name == "" {
		return fmt.Sprintf("supervise.Supervisor(%v, %d children)", s.strategy, len(s.children))
	}
	return fmt.Sprintf("supervise.Supervisor(%s, %v, %d children)", s.name, s.strategy, len(s.children))
}

// Events returns a reader for the events of the children. The supervisor never waits for the reader: it keeps the last
// 64 events and drops older ones, which the Stats of the reader count. The reader stays open when Run has returned,
// since Run may be called again.
func (s *Supervisor) Events() *coir.Reader[Event] { return s.reader }

// errRunning is the error of a call of Run while another one runs.
var errRunning = errors.New("supervise: already running")

// Run starts the children and supervises them. It returns nil when all have ended for good, a [*GaveUpError] if there
// were too many restarts, and ctx's error if ctx has ended. When Run returns, all children have ended. If a child that
// is being stopped returns an error other than its context's, that error is joined to Run's error. Run may be called
// again after it has returned.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.running.TryLock() {
		if s.name == "" {
			return errRunning
		}
		return fmt.Errorf("%w: %s", errRunning, s.name)
	}
	defer s.running.Unlock()
	// A cancellation of ctx must not reach the children directly, because they are stopped in order.
	return coir.Run(coir.Shield(ctx), func(in context.Context, n *coir.Nursery) error {
		r := newRound(in, s, n)
		return r.run(ctx)
	})
}
