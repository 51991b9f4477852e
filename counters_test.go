package coir_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// Each counter of a channel's Stats is one of the counters of its object in a snapshot, with the same value.
//
// Spec: OB-09 (counters are diagnostic)
func TestSnapshotsShowEveryCounterOfAChannel(t *testing.T) {
	notShown := map[string]string{"SentBytes": "it follows from Sent"}
	rt := one(t)
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](2, coir.WithOverflow(coir.OverflowDropOldest))
		for i := range 5 {
			if err := c.TrySend(i); err != nil {
				return err
			}
		}
		n.Go("receiver", func(ctx context.Context) error {
			for range c.All(ctx) {
				continue
			}
			return nil
		})
		yieldUntil(ctx, t, "the receiver waits", func() bool { return c.Stats().Recv.Waiting == 1 })
		shown := map[string]uint64{}
		for _, o := range rt.Snapshot(snapshot.Options{}).Objects {
			for _, x := range o.Counters() {
				shown[x.Name] += x.Value
			}
		}
		stats := reflect.ValueOf(c.Stats())
		for i := range stats.NumField() {
			name := stats.Type().Field(i).Name
			if !stats.Field(i).CanUint() || notShown[name] != "" {
				continue
			}
			if want := stats.Field(i).Uint(); want == 0 || shown[strings.ToLower(name)] != want {
				t.Errorf("%s is %d, which must not be 0, and snapshots show %v: see describeTo", name, want, shown)
			}
		}
		c.Close()
		return nil
	}); err != nil {
		t.Error(err)
	}
}
