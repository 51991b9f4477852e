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
		{"a lock whose waits time out", locked, func(s *Snapshot) { s.Objects[0].GaveUp = 117 },
			none + " So far, 117 waits for mu ended without it, by a time limit or a cancel."},
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
