package inspect

import (
	"context"
	"encoding/json"
	"expvar"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// The variable counts the fibers of a runtime, and package expvar can show it.
func TestVarOfARuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.Default()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var run sync.WaitGroup
		run.Go(func() {
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				jobs := coir.NewChan[int](0)
				for range 3 {
					n.Go("worker", func(ctx context.Context) error {
						_, err := jobs.Recv(ctx)
						return err
					})
				}
				return nil
			})
		})
		time.Sleep(time.Minute) // on the virtual clock
		synctest.Wait()
		all := new(expvar.Map).Init()
		all.Set("coir", Var(rt))
		var got struct{ Coir numbers }
		if err := json.Unmarshal([]byte(all.String()), &got); err != nil {
			t.Fatalf("%v in %s", err, all)
		}
		n := got.Coir
		if n.Fibers["waiting"] != 4 || n.Waits["recv"] != 3 || n.Waits["join"] != 1 || n.Oldest < 59 || n.Oldest > 60 ||
			n.Stats == nil || n.Stats.Spawned != 4 {
			t.Errorf("it shows %s", all)
		}
		cancel()
		run.Wait()
	})
}

// The age of the oldest wait does not count a call that blocks.
func TestACallThatBlocksIsNoWait(t *testing.T) {
	now := time.Now()
	n := numbersOf(&fake{s: &snapshot.Snapshot{Taken: now, Fibers: []snapshot.Fiber{
		{ID: 1, State: snapshot.StateBlocking, Since: now.Add(-time.Hour)},
		{ID: 2, State: snapshot.StateWaiting, Since: now.Add(-time.Minute), Wait: []snapshot.Wait{{Kind: snapshot.WaitRecv}}},
	}}})
	if n.Oldest != 60 || n.Fibers[snapshot.StateBlocking] != 1 {
		t.Errorf("it shows %+v", n)
	}
}

// Any number of readers at the same time share a snapshot.
func TestReadersOfAVarShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{s: deadlock(), began: runtime.Gosched}
		v := Var(f)
		read := func() {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if !json.Valid([]byte(v.String())) {
						t.Error("it is not JSON")
					}
				})
			}
			all.Wait()
		}
		read()
		time.Sleep(fresh - time.Nanosecond)
		read()
		if n := f.taken(); n != 1 {
			t.Errorf("%d snapshots were taken, not 1", n)
		}
		time.Sleep(time.Nanosecond)
		read()
		if n := f.taken(); n != 2 {
			t.Errorf("%d snapshots were taken, not 2", n)
		}
	})
}
