package inspect

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// lends returns a snapshot of a pool, taken at a time after noon, that has lent values to these fibers.
func lends(after time.Duration, holders ...uint64) *snapshot.Snapshot {
	return &snapshot.Snapshot{Taken: noon.Add(after), Objects: []snapshot.Object{
		{ID: 11, Kind: snapshot.KindPool, Name: "conns", Len: len(holders), Cap: 4, Receivers: 1, Holders: holders},
		{ID: 12, Kind: "channel", Name: "jobs", Receivers: 1},
	}}
}

// Each loan is as old as the snapshots that show it, one after the other. A holder with several values keeps the older
// ages when it gives one back.
func TestSightingsOfLoans(t *testing.T) {
	s := &sightings{objects: map[uint64]sighting{}}
	for _, step := range []struct {
		after   time.Duration
		holders []uint64
		want    string // the ages in seconds, - if not known
	}{
		{0, []uint64{1, 2}, ""},
		{500 * time.Millisecond, []uint64{1, 2}, ""}, // not worth showing
		{10 * time.Second, []uint64{1, 2, 2}, "10 10 -"},
		{20 * time.Second, []uint64{1, 2, 2}, "20 20 10"},
		{15 * time.Second, []uint64{1, 2, 2}, "15 15 5"}, // it was taken at the same time as the last
		{30 * time.Second, []uint64{2, 1}, "30 -"},
		{40 * time.Second, []uint64{1}, "10"},
		{50 * time.Second, nil, ""},
		{60 * time.Second, []uint64{1}, ""},
		{121 * time.Second, []uint64{1}, "61"},
	} {
		if step.after == 30*time.Second { // 1 gives its value back, and takes another one
			s.look(lends(25*time.Second, 2))
		}
		now := lends(step.after, step.holders...)
		s.look(now)
		var got []string
		for _, at := range now.Objects[0].HeldSince {
			if at.IsZero() {
				got = append(got, "-")
				continue
			}
			got = append(got, fmt.Sprint(int(now.Taken.Sub(at).Seconds())))
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("after %v the ages are %q, want %q", step.after, got, step.want)
		}
		if now.Objects[1].HeldSince != nil || !now.Objects[1].WaitedSince.IsZero() {
			t.Errorf("after %v a channel is %+v", step.after, now.Objects[1])
		}
	}
	gone := lends(0)
	gone.Taken, gone.Objects = noon.Add(10*time.Minute), nil
	if s.look(gone); len(s.objects) > 0 {
		t.Errorf("objects that are no longer shown are remembered: %+v", s.objects)
	}
}

// A handler knows what a Watch has seen, and both forget it.
func TestSightingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{s: deadlock()}
		w := newWatcher(&settings{of: []Source{source}})
		w.begin()
		w.look(t.Context(), &w.sources[0])
		source.s.Taken = source.s.Taken.Add(time.Minute)
		text := ask(handlerOf(source), "GET", "http://localhost/text").Body.String()
		const want = "mutex stock #11: held by worker[1] #3 (at shop/orders.go:71, in each snapshot for 1m), 1 waits"
		if !strings.Contains(text, want) {
			t.Errorf("the text has no\n%s\nbut is\n%s", want, text)
		}
		w.end()
		time.Sleep(2 * idle)
		synctest.Wait()
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if s := shared.of[source]; s != nil {
			t.Errorf("they are kept: %+v", s)
		}
	})
}

// A source that cannot be compared, such as one that contains a slice, is shown too.
func TestSightingsOfASourceThatCannotBeCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := several{&fake{s: deadlock()}}
		if w := ask(handlerOf(source), "GET", "http://localhost/text"); w.Code != 200 {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
}

type several []*fake

func (s several) Snapshot(o snapshot.Options) *snapshot.Snapshot { return s[0].Snapshot(o) }
