//go:build corpus

package mixed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// A registry reports its changes on a coir channel. The fiber that changes the registry sends while it holds the lock.
// The goroutine that watches it takes the lock before it receives, to compare. Each can hold what the other waits for.

type registry struct {
	mu      sync.Mutex
	names   []string
	changes *coir.Chan[string]
}

func (r *registry) add(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
	return r.changes.Send(ctx, name)
}

func (r *registry) addThenTell(ctx context.Context, name string) error {
	r.mu.Lock()
	r.names = append(r.names, name)
	r.mu.Unlock()
	return r.changes.Send(ctx, name)
}

func watchRegistry(t *testing.T, add func(*registry, context.Context, string) error) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		r := &registry{changes: coir.NewChan[string](0)}
		told := make(chan string)
		go func() {
			r.mu.Lock()
			before := len(r.names)
			r.mu.Unlock()
			if before > 0 {
				r.mu.Lock()
				defer r.mu.Unlock()
			}
			name, _ := r.changes.Recv(context.Background())
			told <- name
		}()
		n.Go("add", func(ctx context.Context) error { return add(r, ctx, "a") })
		_, err := coir.Blocking(ctx, func() (string, error) { return <-told, nil })
		return err
	})
}

// Expect: deadlock
func TestBugRegistry(t *testing.T) { watchRegistry(t, (*registry).add) }

func TestFixedRegistry(t *testing.T) { watchRegistry(t, (*registry).addThenTell) }

// There are two accounts, each with a lock of package sync. A fiber moves money in one direction, and a goroutine in
// the other.

type account struct {
	mu      sync.Mutex
	balance int
}

func move(from, to, first, second *account) {
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	from.balance--
	to.balance++
}

func moveBoth(t *testing.T, there, back func(a, b *account)) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		var a, b account
		done := coir.NewChan[bool](0)
		n.Go("there", func(context.Context) error { there(&a, &b); return nil })
		go func() {
			back(&a, &b)
			_ = done.Close()
		}()
		_, _ = done.Recv(ctx)
		return nil
	}, coir.WithWorkers(2))
}

// Expect: deadlock
func TestBugAccounts(t *testing.T) {
	moveBoth(t, func(a, b *account) { move(a, b, a, b) }, func(a, b *account) { move(b, a, b, a) })
}

func TestFixedAccounts(t *testing.T) {
	moveBoth(t, func(a, b *account) { move(a, b, a, b) }, func(a, b *account) { move(b, a, a, b) })
}

// A cache fills itself with fibers while it holds its lock, and waits for them. If tracing is on, a fiber records its
// work under the same lock. A goroutine turns tracing on at some moment.

type cache struct {
	mu     sync.Mutex
	values map[int]int
	trace  atomic.Bool
	notes  sync.Mutex // in the corrected cache, guards noted
	noted  int
}

func (c *cache) fill(note *sync.Mutex) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := make([]int, 2)
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range got {
			n.Go("load", func(context.Context) error {
				got[i] = i
				if c.trace.Load() {
					note.Lock()
					c.noted++
					note.Unlock()
				}
				return nil
			}, coir.WithIndex(i))
		}
		return nil
	})
	c.values = map[int]int{0: got[0], 1: got[1]}
	return err
}

func fillTraced(t *testing.T, note func(*cache) *sync.Mutex) {
	c := &cache{}
	var wg sync.WaitGroup
	wg.Go(func() {
		c.notes.Lock()
		c.trace.Store(true)
		c.notes.Unlock()
	})
	if err := c.fill(note(c)); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// Expect: deadlock
func TestBugCache(t *testing.T) { fillTraced(t, func(c *cache) *sync.Mutex { return &c.mu }) }

func TestFixedCache(t *testing.T) { fillTraced(t, func(c *cache) *sync.Mutex { return &c.notes }) }

// A fiber and a goroutine count. Each reads the counter under its lock, and writes it under its lock, but unlocks in
// between.

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) twoSteps() {
	c.mu.Lock()
	n := c.n
	c.mu.Unlock()
	c.mu.Lock()
	c.n = n + 1
	c.mu.Unlock()
}

func (c *counter) oneStep() {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
}

func count(t *testing.T, step func(*counter)) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		var c counter
		done := make(chan bool)
		go func() { step(&c); close(done) }()
		if err := n.Go("count", func(context.Context) error { step(&c); return nil }).Wait(ctx); err != nil {
			return err
		}
		<-done
		if c.n != 2 {
			t.Errorf("counted %d, want 2", c.n)
		}
		return nil
	}, coir.WithWorkers(1))
}

// Expect: fail
func TestBugCounter(t *testing.T) { count(t, (*counter).twoSteps) }

func TestFixedCounter(t *testing.T) { count(t, (*counter).oneStep) }

// A goroutine waits on a condition of package sync until a fiber has received the configuration. The fiber sets the
// flag and signals without the lock, perhaps between the goroutine's check of the flag and its wait.

type config struct {
	mu     sync.Mutex
	cond   *sync.Cond
	loaded atomic.Bool
}

func awaitConfig(t *testing.T, set func(*config)) {
	c := &config{}
	c.cond = sync.NewCond(&c.mu)
	var wg sync.WaitGroup
	wg.Go(func() {
		c.mu.Lock()
		for !c.loaded.Load() {
			c.cond.Wait()
		}
		c.mu.Unlock()
	})
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		text := coir.NewChan[string](1)
		n.Go("load", func(ctx context.Context) error {
			_, err := text.Recv(ctx)
			set(c)
			return err
		})
		return text.Send(ctx, "text")
	})
	wg.Wait()
}

// Expect: deadlock
func TestBugConfig(t *testing.T) {
	awaitConfig(t, func(c *config) {
		c.loaded.Store(true)
		c.cond.Signal()
	})
}

func TestFixedConfig(t *testing.T) {
	awaitConfig(t, func(c *config) {
		c.mu.Lock()
		c.loaded.Store(true)
		c.mu.Unlock()
		c.cond.Signal()
	})
}

// Two transfers lock both accounts with locks of coir, and each locks its own account first.

func transfers(t *testing.T, order func(own, other *locks.Mutex) (first, second *locks.Mutex)) {
	alice, bob := locks.NewMutex(coir.WithName("alice")), locks.NewMutex(coir.WithName("bob"))
	run(t, func(_ context.Context, n *coir.Nursery) error {
		for i, pair := range [][2]*locks.Mutex{{alice, bob}, {bob, alice}} {
			n.Go("transfer", func(ctx context.Context) error {
				first, second := order(pair[0], pair[1])
				if err := first.Lock(ctx); err != nil {
					return err
				}
				defer first.Unlock()
				if err := second.Lock(ctx); err != nil {
					return err
				}
				defer second.Unlock()
				return nil
			}, coir.WithIndex(i))
		}
		return nil
	})
}

// Expect: deadlock
func TestBugTransfers(t *testing.T) {
	transfers(t, func(own, other *locks.Mutex) (first, second *locks.Mutex) { return own, other })
}

func TestFixedTransfers(t *testing.T) {
	transfers(t, func(own, other *locks.Mutex) (first, second *locks.Mutex) {
		if own.String() > other.String() {
			return other, own
		}
		return own, other
	})
}
