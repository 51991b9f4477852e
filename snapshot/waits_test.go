package snapshot

import (
	"testing"
	"time"
)

func TestNoProblemNamesTheOldestWait(t *testing.T) {
	const none = "No problem found."
	tests := []struct {
		name string
		in   Snapshot
		edit func(s *Snapshot)
		want string
	}{
		{"a pool", lent, nil, none + " The oldest wait: 12 fibers have waited up to 20s for a value of connections."},
		{"a semaphore, not for long", permits, nil, none},
		{"a semaphore", permits, func(s *Snapshot) { s.Objects[0].Oldest = ago(10 * time.Second) },
			none + " The oldest wait: 2 fibers have waited up to 10s to acquire limit."},
		{"a lock", locked, func(s *Snapshot) { s.Objects[0].Oldest = ago(time.Minute) },
			none + " The oldest wait: 1 fiber has waited up to 1m to lock mu."},
		{"a send", full, func(s *Snapshot) { s.Objects[0].Senders, s.Fibers[0] = 1, goroutine(34, send(11)) },
			none + " The oldest wait: 1 goroutine has waited up to 12s to send to something."},
		{"a receive", Snapshot{
			Fibers:  []Fiber{waiting(1, "main", recv(11))},
			Objects: []Object{{ID: 11, Kind: "channel", Receivers: 1, Oldest: ago(time.Hour)}},
		}, nil, none},
		{"a fiber of coir", full, func(s *Snapshot) { s.Fibers[0].System = true }, none},
		{"nothing", Snapshot{}, nil, none},
	}
	for _, test := range tests {
		_, s := pairOf(t, test.in)
		if test.edit != nil {
			test.edit(s)
		}
		if got := NoProblem(s); got != test.want {
			t.Errorf("%s: %q, not %q", test.name, got, test.want)
		}
	}
}

func TestContends(t *testing.T) {
	object := func(id uint64) *Object {
		return map[uint64]*Object{
			1: {ID: 1, Kind: "mutex", Ends: "unlock"}, 2: {ID: 2, Kind: semaphore}, 3: {ID: 3, Kind: pool},
			4: {ID: 4, Kind: channel}, 5: {ID: 5, Kind: "event", Ends: "set"},
		}[id]
	}
	use := func(id uint64) Wait { return Wait{Kind: WaitUse, Object: id} }
	for _, w := range []Wait{use(1), use(2), recv(3), send(4), send(9)} {
		if f := waiting(1, "a", w); !f.Contends(object) {
			t.Errorf("%v does not contend", w)
		}
	}
	for _, w := range []Wait{use(5), recv(4), recv(9), use(9), end(2), join(1), {Kind: WaitSleep}} {
		if f := waiting(1, "a", w, use(1)); f.Contends(object) {
			t.Errorf("%v contends", w)
		}
	}
	if (&Fiber{}).Contends(object) {
		t.Error("a fiber that does not wait contends")
	}
}
