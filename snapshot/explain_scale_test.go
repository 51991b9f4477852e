package snapshot

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

type shapeOf struct {
	name string
	make func(n int) Snapshot
}

// shapes are snapshots of n fibers for which a search in more than linear time would be noticed.
var shapes = []shapeOf{
	{"circle", circle},
	{"pairs", func(n int) Snapshot { return many(n / 2) }},
	{"chain", func(n int) Snapshot { // to one that has locked twice
		s := circle(n)
		s.Objects[n-1].Holders[0] = uint64(n)
		return s
	}},
	{"crowd", func(n int) Snapshot { // half of them hold one lock, half of them wait for it
		s := Snapshot{Objects: []Object{mutex(1, "rw"), mutex(2, "mu", uint64(n+9))}}
		for k := range n {
			id := uint64(k + 10)
			if k%2 == 0 {
				s.Objects[0].Holders = append(s.Objects[0].Holders, id)
				s.Fibers = append(s.Fibers, waiting(id, fmt.Sprintf("reader[%d]", k), lock(2, "mu")))
			} else {
				s.Fibers = append(s.Fibers, waiting(id, fmt.Sprintf("writer[%d]", k), lock(1, "rw")))
			}
		}
		return s
	}},
	{"select", func(n int) Snapshot { // one select with a case for each of the others
		s := circle(n)
		for k := range n {
			s.Fibers[0].Wait = append(s.Fibers[0].Wait, end(uint64(k+1)))
		}
		return s
	}},
	{"nest", func(n int) Snapshot { // each has a nursery in that of another, and all were cancelled
		var s Snapshot
		for k := range n {
			f := waiting(uint64(k+1), fmt.Sprintf("f[%d]", k), join(uint64(k+1)))
			f.Nursery = uint64(k)
			s.Fibers = append(s.Fibers, f)
			s.Nurseries = append(s.Nurseries, Nursery{ID: uint64(k + 1), Owner: f.ID, Parent: f.Nursery, Ended: true})
		}
		s.Fibers[n-1].Wait[0] = recv(1)
		return s
	}},
	{"ready", func(n int) Snapshot {
		var s Snapshot
		for k := range n {
			s.Fibers = append(s.Fibers, Fiber{ID: uint64(k + 1), Name: fmt.Sprintf("f[%d]", k), State: StateReady,
				Spawned: fmt.Sprint("x.go:", k%9)})
		}
		return s
	}},
	{"full", fullOnes},
}

// twice returns a snapshot taken two seconds before noon and one taken at noon. They share everything else, because
// Explain only reads it.
func twice(s Snapshot) (earlier, later *Snapshot) {
	earlier, later = new(Snapshot), new(Snapshot)
	*earlier, *later = s, s
	earlier.Taken, later.Taken = ago(2*time.Second), noon
	return earlier, later
}

// TestManyFibers: the time grows with the number of fibers, not with its square; otherwise this test would not end.
func TestManyFibers(t *testing.T) {
	n := 50_000
	if testing.Short() {
		n = 5_000
	}
	for _, shape := range shapes {
		earlier, later := twice(shape.make(n))
		all := Explain(earlier, later)
		told := 0
		for _, x := range all {
			told += len(x.Fibers)
		}
		if len(all) == 0 || len(all) > 10 || told < n/3 && shape.name != "nest" {
			t.Errorf("%s: %d explanations of %d fibers", shape.name, len(all), told)
		}
	}
}

// TestGraphIsSmall: the graph has no more arrows than the snapshot has entries.
func TestGraphIsSmall(t *testing.T) {
	for _, shape := range shapes {
		earlier, later := twice(shape.make(1000))
		entries := len(later.Fibers) // also as children
		for _, f := range later.Fibers {
			entries += len(f.Wait)
		}
		for _, o := range later.Objects {
			entries += 2 + len(o.Holders)
		}
		g, arrows := compare(earlier, later).graph(soft), 0
		for _, v := range g.all {
			arrows += len(v.out)
		}
		if arrows > entries {
			t.Errorf("%s: %d arrows for %d entries", shape.name, arrows, entries)
		}
	}
}

// TestAnySnapshot: a dump may have any numbers. Explain returns, and does not panic.
func TestAnySnapshot(t *testing.T) {
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := Snapshot{Omitted: r.IntN(8) / 7}
		id := func() uint64 { return r.Uint64N(7) }
		at := func() time.Time {
			if r.IntN(4) == 0 {
				return time.Time{}
			}
			return noon.Add(time.Duration(r.IntN(300)-290) * time.Second)
		}
		kinds := []WaitKind{WaitSend, WaitRecv, WaitSleep, WaitEnd, WaitJoin, WaitPlace, WaitCancel, WaitUse, WaitUse, WaitSend, "?"}
		states := []State{StatePending, StateReady, StateRunning, StateBlocking, StateWaiting, StateWaiting, StateWaiting, StateOutside, "?"}
		for range r.IntN(8) {
			f := Fiber{ID: id(), Nursery: id(), State: states[r.IntN(len(states))], System: r.IntN(9) == 0, Since: at()}
			for range r.IntN(3) {
				f.Wait = append(f.Wait, Wait{Kind: kinds[r.IntN(len(kinds))], Object: id(), Fiber: id(), Nursery: id()})
			}
			if r.IntN(6) == 0 {
				f.Until = at()
			}
			s.Fibers = append(s.Fibers, f)
		}
		for range r.IntN(6) {
			s.Objects = append(s.Objects, Object{
				ID: id(), Kind: []string{"channel", "mutex", ticket}[r.IntN(3)], Len: r.IntN(3) - 1, Cap: r.IntN(3) - 1,
				Sender: id(), Receiver: id(), Oldest: at(), Ends: []string{"", "unlock", "release"}[r.IntN(3)],
				Holders: []uint64{id(), id()}[:r.IntN(3)],
			})
			s.Nurseries = append(s.Nurseries, Nursery{ID: id(), Owner: id(), Parent: id(), Ended: r.IntN(2) == 0,
				Limit: r.IntN(2)})
			s.Workers = append(s.Workers, Worker{ID: r.IntN(4), Fiber: id(), State: "running"})
		}
		earlier, later := pairOf(t, s)
		for _, x := range Explain(earlier, later) {
			if x.Text == "" || len(x.Fibers) == 0 {
				t.Fatalf("seed %d: %+v", seed, x)
			}
		}
	}
}

// healthy returns a snapshot of n fibers that wait for messages from a running one.
func healthy(n int) Snapshot {
	s := Snapshot{Fibers: []Fiber{runs}}
	for k := range n {
		id := uint64(1000 + k)
		f := waiting(id, fmt.Sprintf("conn[%d]", k), recv(id))
		f.Spawned = "/src/app/serve.go:12"
		s.Fibers = append(s.Fibers, f)
		s.Objects = append(s.Objects, Object{ID: id, Kind: "channel", Sender: runs.ID, Receiver: id, Receivers: 1})
	}
	return s
}

func BenchmarkExplain(b *testing.B) {
	for _, shape := range append(shapes, shapeOf{"healthy", healthy}) {
		b.Run(shape.name, func(b *testing.B) {
			earlier, later := twice(shape.make(10_000))
			for b.Loop() {
				Explain(earlier, later)
			}
		})
	}
}
