package sim

import (
	"context"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
)

// A cache that writes behind: a put changes the memory, and a flusher writes the changes to the store, now and then and
// when there are many. Readers that miss load from the store.

// slowStore is a store that takes time.
type slowStore struct {
	mu     *locks.Mutex
	values map[string]int
	writes int
}

func (st *slowStore) load(ctx context.Context, key string) (int, error) {
	if err := coir.Sleep(ctx, 2*time.Millisecond); err != nil {
		return 0, err
	}
	if err := st.mu.Lock(ctx); err != nil {
		return 0, err
	}
	defer st.mu.Unlock()
	return st.values[key], nil
}

func (st *slowStore) save(ctx context.Context, batch map[string]int) error {
	if err := coir.Sleep(ctx, 3*time.Millisecond); err != nil {
		return err
	}
	if err := st.mu.Lock(ctx); err != nil {
		return err
	}
	defer st.mu.Unlock()
	for key, v := range batch {
		st.values[key] = v
	}
	st.writes++
	return nil
}

// writeBehind is the cache.
type writeBehind struct {
	store  *slowStore
	mu     *locks.Mutex
	values map[string]int
	dirty  map[string]bool
	full   *coir.Chan[struct{}]
	stop   *coir.Event
}

func newWriteBehind(store *slowStore) *writeBehind {
	return &writeBehind{
		store: store, mu: locks.NewMutex(coir.WithName("cache.mu")), values: map[string]int{}, dirty: map[string]bool{},
		full: coir.NewChan[struct{}](1, coir.WithName("full")), stop: coir.NewEvent(coir.WithName("stop")),
	}
}

// put sets a value.
func (c *writeBehind) put(ctx context.Context, key string, v int) error {
	if err := c.mu.Lock(ctx); err != nil {
		return err
	}
	c.values[key] = v
	c.dirty[key] = true
	n := len(c.dirty)
	c.mu.Unlock()
	if n >= 7 {
		_ = c.full.TrySend(struct{}{})
	}
	return nil
}

// get returns a value.
func (c *writeBehind) get(ctx context.Context, key string) (int, error) {
	if err := c.mu.Lock(ctx); err != nil {
		return 0, err
	}
	v, ok := c.values[key]
	c.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := c.store.load(ctx, key)
	if err != nil {
		return 0, err
	}
	if err := c.mu.Lock(ctx); err != nil {
		return 0, err
	}
	defer c.mu.Unlock()
	if now, ok := c.values[key]; ok {
		return now, nil
	}
	c.values[key] = v
	return v, nil
}

// flush writes the changes to the store.
func (c *writeBehind) flush(ctx context.Context) error {
	if err := c.mu.Lock(ctx); err != nil {
		return err
	}
	batch := make(map[string]int, len(c.dirty))
	for key := range c.dirty {
		batch[key] = c.values[key]
	}
	c.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	if err := c.store.save(ctx, batch); err != nil {
		return err
	}
	if err := c.mu.Lock(ctx); err != nil {
		return err
	}
	defer c.mu.Unlock()
	for key := range batch {
		delete(c.dirty, key)
	}
	return nil
}

// run flushes until the cache is stopped, and then once more.
func (c *writeBehind) run(ctx context.Context) error {
	tick := pace.NewTicker(15*time.Millisecond, coir.WithName("flush"))
	for {
		which, err := coir.Select(ctx, tick.WaitCase(nil), c.full.RecvCase(nil), c.stop.DoneCase())
		if err != nil {
			return err
		}
		if err := c.flush(ctx); err != nil || which == 2 {
			return err
		}
	}
}

// cacheService is a cache with writers, readers, and a monitor. Each writer has its own keys, and so knows the value
// that each must have in the end.
func cacheService(ctx context.Context, s *Sim) {
	const writers, readers, rounds = 4, 5, 6
	keys := []string{"ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"}
	store := &slowStore{mu: locks.NewMutex(coir.WithName("store.mu")), values: map[string]int{}}
	c := newWriteBehind(store)
	asked := coir.NewChan[string](4, coir.WithName("asked"))
	nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
		n.Go("flusher", c.run)
		n.Go("monitor", func(ctx context.Context) error {
			tick := pace.NewTicker(10*time.Millisecond, coir.WithName("watch"))
			for {
				which, err := coir.Select(ctx, tick.WaitCase(nil), asked.RecvCase(nil), c.stop.DoneCase())
				if err != nil || which == 2 {
					return err
				}
			}
		})
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range writers {
				n.Go("writer", func(ctx context.Context) error {
					for round := range rounds {
						if err := coir.Sleep(ctx, time.Duration(5+i)*time.Millisecond); err != nil {
							return err
						}
						if err := c.put(ctx, keys[2*i+round%2], round); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
			for i := range readers {
				n.Go("reader", func(ctx context.Context) error {
					for round := range rounds {
						key := keys[(i+3*round)%len(keys)]
						if _, err := c.get(ctx, key); err != nil {
							return err
						}
						_ = asked.TrySend(key)
						if err := coir.Sleep(ctx, 6*time.Millisecond); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
		c.stop.Set()
	})
	for i, key := range keys {
		if want := rounds - 2 + i%2; store.values[key] != want {
			s.Errorf("%s is %d in the store, and was set to %d last", key, store.values[key], want)
		}
	}
}
