package transporttest

import (
	"context"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// put calls Put until its outcome is known.
func put(ctx context.Context, t remote.Transport, key, data string) (stored string, err error) {
	err = until(ctx, func(ctx context.Context) error {
		b, err := t.Put(ctx, key, []byte(data))
		stored = string(b)
		return err
	})
	return stored, err
}

// get calls Get until it has an answer.
func get(ctx context.Context, t remote.Transport, key string) (stored []byte, err error) {
	err = until(ctx, func(ctx context.Context) error {
		stored, err = t.Get(ctx, key)
		return err
	})
	return stored, err
}

// The first data that is put under a key is kept, for all processes. Each key has its own data.
func firstPutCounts(ctx context.Context, e *Env) error {
	none, err := get(ctx, e.A, e.Name)
	if err := first(err, differs("found before Put", none == nil, true)); err != nil {
		return err
	}
	keys := []string{e.Name, e.Name + ".x", e.Name + " x", e.Name + "/*>"}
	for _, key := range keys {
		stored, err := put(ctx, e.A, key, "first "+key)
		if err := first(err, differs("put", stored, "first "+key)); err != nil {
			return err
		}
	}
	for _, key := range keys {
		for _, t := range []remote.Transport{e.B, e.A} {
			stored, err := put(ctx, t, key, "second")
			if err := first(err, differs("put again", stored, "first "+key)); err != nil {
				return err
			}
			got, err := get(ctx, t, key)
			if err := first(err, differs("get", string(got), "first "+key)); err != nil {
				return err
			}
		}
	}
	return nil
}

// If many calls put data at the same time, one of them stores its data, and all return that data.
func oneOfManyPuts(ctx context.Context, e *Env) error {
	const calls = 20
	results := coir.NewChan[string](calls)
	err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i := range calls {
			n.Go("put", func(ctx context.Context) error {
				stored, err := put(ctx, []remote.Transport{e.A, e.B}[i%2], e.Name, fmt.Sprint(i))
				if err != nil {
					return err
				}
				return results.Send(ctx, stored)
			}, coir.WithIndex(i))
		}
		return nil
	})
	results.Close()
	one := ""
	for stored, all := range results.All(ctx) {
		if one == "" {
			one = stored
		}
		err = first(err, all, differs("put", stored, one))
	}
	return err
}

// One process waits for a promise, and another resolves it, once. The result can be read again.
func promise(ctx context.Context, e *Env) error {
	a, err := remote.NewPromise[string](e.A, e.Name, remote.WithMeaning(remote.MeaningStored))
	if err != nil {
		return err
	}
	b, err := remote.NewPromise[string](e.B, e.Name, remote.WithMeaning(remote.MeaningStored))
	if err != nil {
		return err
	}
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("waiter", func(ctx context.Context) error {
			v, err := a.Wait(ctx)
			return first(err, differs("waited for", v, "paid"))
		})
		won, err := b.Resolve(ctx, "paid")
		if err := first(err, differs("the first wins", won, true)); err != nil {
			return err
		}
		if won, err = a.Reject(ctx, "too late"); err != nil {
			return err
		}
		v, err := b.Wait(ctx)
		return first(err, differs("the second wins", won, false), differs("read again", v, "paid"))
	})
}

// A process that peeks at a promise learns that it is open, and then its result.
func promisePeek(ctx context.Context, e *Env) error {
	for _, reason := range []string{"", "no money"} {
		var ps []*remote.Promise[string]
		for _, t := range []remote.Transport{e.A, e.B} {
			p, err := remote.NewPromise[string](t, e.Name+" "+reason, remote.WithMeaning(remote.MeaningStored))
			if err != nil {
				return err
			}
			_, done, err := p.Peek(ctx)
			if err := first(err, differs("done before Resolve", done, false)); err != nil {
				return err
			}
			ps = append(ps, p)
		}
		var err error
		if reason == "" {
			_, err = ps[0].Resolve(ctx, "paid")
		} else {
			_, err = ps[0].Reject(ctx, reason)
		}
		if err != nil {
			return err
		}
		for _, p := range ps {
			if err := peekUntilDone(ctx, p, reason != ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// peekUntilDone peeks until a promise is done, because a look may miss a completion of a moment ago.
func peekUntilDone(ctx context.Context, p *remote.Promise[string], rejected bool) error {
	for {
		v, done, err := p.Peek(ctx)
		switch {
		case done && rejected:
			return isNot("peek at a rejected promise", err, remote.ErrRejected)
		case done || err != nil:
			return first(err, differs("peeked at", v, "paid"))
		}
		if err := coir.Sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("a promise that was completed stays open: %w", err)
		}
	}
}
