package snapshot

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

var (
	noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	ago  = func(d time.Duration) time.Time { return noon.Add(-d) }
)

// waiting returns a fiber that has waited since 3.1 s before noon.
func waiting(id uint64, name string, waits ...Wait) Fiber {
	return Fiber{ID: id, Name: name, Nursery: 100, State: StateWaiting, Waits: 7, Since: ago(3100 * time.Millisecond),
		Wait: waits}
}

func lock(object uint64, name string) Wait {
	return Wait{Kind: WaitUse, Object: object, Text: "to lock " + name}
}

func send(object uint64) Wait {
	return Wait{Kind: WaitSend, Object: object, Text: "to send to something"}
}

func recv(object uint64) Wait {
	return Wait{Kind: WaitRecv, Object: object, Text: "to receive from something"}
}

func end(fiber uint64) Wait { return Wait{Kind: WaitEnd, Fiber: fiber, Text: "for something to end"} }

func join(nursery uint64) Wait {
	return Wait{Kind: WaitJoin, Nursery: nursery, Text: "for its children to end"}
}

// inLine returns a fiber that has not begun.
func inLine(id uint64, name string) Fiber {
	return Fiber{ID: id, Name: name, Nursery: 100, State: StateWaiting,
		Wait: []Wait{{Kind: WaitPlace, Nursery: 100, Text: "for a place in its nursery"}}}
}

func mutex(id uint64, name string, holders ...uint64) Object {
	return Object{ID: id, Kind: "mutex", Name: name, Ends: "unlock", Holders: holders, Waiters: 1}
}

// runs is a running fiber, so that ProblemAllWaiting is not reported.
var runs = Fiber{ID: 99, Name: "other", Nursery: 100, State: StateRunning}

// change changes two snapshots that were equal.
type change func(earlier, later *Snapshot)

// pairOf returns a snapshot taken two seconds before noon and one taken at noon, which are equal except for the
// changes.
func pairOf(t testing.TB, s Snapshot, changes ...change) (earlier, later *Snapshot) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []**Snapshot{&earlier, &later} {
		*x = new(Snapshot)
		if err := json.Unmarshal(text, *x); err != nil {
			t.Fatal(err)
		}
	}
	earlier.Taken, later.Taken = ago(2*time.Second), noon
	for _, c := range changes {
		c(earlier, later)
	}
	return earlier, later
}

// lines returns explanations as text.
func lines(all []Explanation) []string {
	texts := make([]string, len(all))
	for k, x := range all {
		texts[k] = string(x.Kind) + ": " + x.Text
		if x.Certain {
			texts[k] = "certain " + texts[k]
		}
	}
	return texts
}

// Two fibers that lock A and B in different orders.
var crossed = Snapshot{
	Fibers: []Fiber{
		waiting(1, "transfer[0]", lock(12, "B")),
		waiting(2, "transfer[1]", lock(11, "A")),
		runs,
	},
	Objects: []Object{mutex(11, "A", 1), mutex(12, "B", 2)},
}

const crossedText = "certain deadlock: transfer[0] waits to lock B, held by transfer[1], which waits to lock A, held " +
	"by transfer[0]: a deadlock, for 3.1s"

// likelyText is the explanation of these two fibers if it is not certain.
var likelyText = strings.Replace(crossedText[len("certain "):], "a deadlock,", "likely a deadlock,", 1)

// Two stages, each of which waits to send to the other.
var jammed = Snapshot{
	Fibers: []Fiber{waiting(1, "parse", send(11)), waiting(2, "retry", send(12)), runs},
	Objects: []Object{
		{ID: 11, Kind: "channel", Name: "parsed", Len: 4, Cap: 4, Receiver: 2, Sender: 1, Senders: 1},
		{ID: 12, Kind: "channel", Name: "again", Receiver: 1, Sender: 2, Senders: 1},
	},
}

// A goroutine that holds a lock, and waits to send to a fiber that waits for the lock. The goroutine has a context that
// may end.
var audited = Snapshot{
	Fibers: []Fiber{
		{ID: FirstGoroutine + 29, Name: "goroutine[29]", State: StateGoroutine, Waits: 5,
			Since: ago(3100 * time.Millisecond), Foreign: true, Wait: []Wait{send(11)}},
		waiting(2, "receiver", lock(12, "settings")),
		runs,
	},
	Objects: []Object{
		{ID: 11, Kind: "channel", Name: "audit", Len: 4, Cap: 4, Receiver: 2, Senders: 1},
		mutex(12, "settings", FirstGoroutine+29),
	},
}

// A pool without values, for which fibers wait.
var lent = func() (s Snapshot) {
	for i := range 12 {
		s.Fibers = append(s.Fibers, waiting(uint64(i+1), fmt.Sprintf("get[%d]", i),
			Wait{Kind: WaitRecv, Object: 11, Text: "for a value of connections"}))
	}
	s.Fibers = append(s.Fibers, runs)
	s.Objects = []Object{{ID: 11, Kind: "pool", Name: "connections", Len: 4, Cap: 4, Sent: 20, Received: 20, Receivers: 12,
		Oldest: ago(20 * time.Second), Ends: "give a value back to"}}
	return s
}()

// A fiber that holds a lock and waits for a value of a pool, and fibers that have the values and wait for the lock.
var borrowed = func() (s Snapshot) {
	pool := Wait{Kind: WaitRecv, Object: 11, Text: "for a value of connections"}
	s.Fibers = []Fiber{
		waiting(1, "refresh", pool), waiting(2, "query[0]", lock(12, "cache")), waiting(3, "query[1]", lock(12, "cache")),
		waiting(4, "query[2]", pool), runs,
	}
	s.Objects = []Object{
		{ID: 11, Kind: "pool", Name: "connections", Len: 2, Cap: 2, Sent: 20, Received: 20, Sender: 99, Receivers: 2,
			Holders: []uint64{2, 3}, Oldest: ago(3100 * time.Millisecond), Ends: "give a value back to"},
		mutex(12, "cache", 1),
	}
	return s
}()

const borrowedText = "deadlock: refresh waits for a value of connections (2 of 2 lent), lent to 2 fibers, all of them " +
	"stuck, of which query[0] waits to lock cache, held by refresh: likely a deadlock, for 3.1s; query[1], query[2] wait " +
	"for them, the oldest for 3.1s"

// A semaphore without permits.
var permits = Snapshot{
	Fibers: []Fiber{
		waiting(1, "load[0]", Wait{Kind: WaitUse, Object: 11, Text: "to acquire limit"}),
		waiting(2, "load[1]", Wait{Kind: WaitUse, Object: 11, Text: "to acquire limit"}), runs,
	},
	Objects: []Object{{ID: 11, Kind: "semaphore", Name: "limit", Ends: "release", Waiters: 2, Oldest: ago(9 * time.Second)}},
}

// A lock that a running fiber holds.
var locked = Snapshot{
	Fibers: []Fiber{waiting(1, "a", lock(11, "mu")), full.Fibers[1], runs},
	Objects: []Object{{ID: 11, Kind: "mutex", Name: "mu", Ends: "unlock", Holders: []uint64{2}, Waiters: 1,
		Oldest: ago(6 * time.Second)}},
}

// Two channels that hold a token each. Two fibers take the tokens in different orders. Main has sent the tokens.
var tokens = Snapshot{
	Fibers: []Fiber{
		waiting(1, "main", join(101)), runs,
		{ID: 2, Name: "ab", Nursery: 101, State: StateWaiting, Since: ago(3100 * time.Millisecond), Wait: []Wait{recv(12)}},
		{ID: 3, Name: "ba", Nursery: 101, State: StateWaiting, Since: ago(3100 * time.Millisecond), Wait: []Wait{recv(11)}},
	},
	Objects: []Object{
		{ID: 11, Kind: "channel", Name: "a", Sender: 1, Receiver: 3, ReceiverBefore: 2, Receivers: 1},
		{ID: 12, Kind: "channel", Name: "b", Sender: 1, Receiver: 2, ReceiverBefore: 3, Receivers: 1},
	},
}

// A consumer that waits for more, and a producer that waits for the consumer.
var unclosed = Snapshot{
	Fibers:  []Fiber{waiting(1, "main", end(2)), waiting(2, "consumer", recv(11)), runs},
	Objects: []Object{{ID: 11, Kind: "channel", Sender: 1, Sent: 5, Received: 5, Receivers: 1}},
}

var orders = Object{ID: 11, Kind: "channel", Name: "orders", Len: 64, Cap: 64, Received: 9, Sender: 1, Receiver: 2,
	Senders: 1, Oldest: ago(12 * time.Second)}

// A producer whose consumer does something else.
var full = Snapshot{
	Fibers: []Fiber{
		{ID: 1, Name: "producer", State: StateWaiting, Waits: 3, Since: ago(12 * time.Second), Wait: []Wait{send(11)}},
		{ID: 2, Name: "consumer", State: StateRunning, At: "/src/shop/db.go:7"},
	},
	Objects: []Object{orders},
}

// A producer whose consumer has ended.
var gone = Snapshot{Fibers: []Fiber{full.Fibers[0], runs}, Objects: []Object{orders}}

// Two fibers that wait for a lock whose holder has ended.
var leaked = Snapshot{
	Fibers:  []Fiber{waiting(1, "a", lock(11, "mu")), waiting(2, "b", lock(11, "mu")), runs},
	Objects: []Object{mutex(11, "mu", 50)},
}

// A worker pool in which one fiber does not yield.
var busyPool = Snapshot{
	Fibers: []Fiber{
		{ID: 1, Name: "crunch", State: StateRunning, Waits: 2, Spawned: "/src/app/main.go:10", At: "/src/app/sum.go:4"},
		{ID: 2, Name: "web[0]", State: StateReady, Waits: 2, Spawned: "/src/app/main.go:20"},
		{ID: 3, Name: "web[1]", State: StateReady, Waits: 5, Spawned: "/src/app/main.go:20"},
		{ID: 4, Name: "web[2]", State: StateReady, Waits: 6, Spawned: "/src/app/main.go:20"},
	},
	Workers: []Worker{{ID: 1, State: "running", Fiber: 1, Beats: 50}},
}

// A nursery that was cancelled.
var cancelled = Snapshot{
	Fibers: []Fiber{
		{ID: 1, Name: "main", Main: true, Nursery: 100, State: StateWaiting, Waits: 1, Wait: []Wait{join(101)}},
		{ID: 2, Name: "flush", Nursery: 101, State: StateBlocking, Waits: 4},
		{ID: 3, Name: "poll[0]", Nursery: 101, State: StateRunning},
		{ID: 4, Name: "poll[1]", Nursery: 101, State: StateRunning},
	},
	Nurseries: []Nursery{{
		ID: 101, Owner: 1, Parent: 100, Children: 3, Ended: true, Cause: "signal: interrupt",
	}},
}

var tickets = Snapshot{
	Fibers: []Fiber{waiting(1, "pay", Wait{Kind: WaitUse, Object: 11, Text: "for the answer of ticket payments"}), runs},
	Objects: []Object{{ID: 11, Kind: "ticket", Name: "payments", Ends: "complete", Waiters: 1,
		Oldest: ago(4*time.Minute + 10*time.Second)}},
}

// goroutine returns a goroutine that waits since 3.1 s before noon.
func goroutine(n uint64, waits ...Wait) Fiber {
	return Fiber{ID: FirstGoroutine + n, Name: fmt.Sprintf("goroutine[%d]", n), State: StateGoroutine, Waits: 5,
		Since: ago(3100 * time.Millisecond), Wait: waits}
}

// A fiber and a goroutine that lock A and B in different orders.
var outside = Snapshot{
	Fibers:  []Fiber{goroutine(34, lock(12, "B")), waiting(2, "pay", lock(11, "A")), runs},
	Objects: []Object{mutex(11, "A", FirstGoroutine+34), mutex(12, "B", 2)},
}

const outsideText = "deadlock: pay waits to lock A, held by goroutine[34], which waits to lock B, held by pay: "

// A fiber that waits for an event, and a goroutine that waits to receive.
var still = Snapshot{
	Process: Process{Live: 1},
	Fibers:  []Fiber{waiting(1, "main", Wait{Kind: WaitUse, Object: 11, Text: "for the event go"}), goroutine(34, recv(12))},
	Objects: []Object{{ID: 11, Kind: "event", Name: "go", Ends: "set", Waiters: 1},
		{ID: 12, Kind: "channel", Name: "orders", Receivers: 1}},
}

// edit returns a change of both snapshots.
func edit(edits ...func(s *Snapshot)) change {
	return func(earlier, later *Snapshot) {
		for _, f := range edits {
			f(earlier)
			f(later)
		}
	}
}

// timed gives the run of a snapshot a deadline.
func timed(s *Snapshot) {
	ends := noon.Add(52 * time.Second)
	s.Nurseries = []Nursery{{ID: 100, Deadline: ends}}
	s.Fibers[0].Until = ends
}

// explainTest is a pair of snapshots, and what Explain returns for it.
type explainTest struct {
	name   string
	in     Snapshot
	change change
	want   []string
}

func testExplain(t *testing.T, tests []explainTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var changes []change
			if test.change != nil {
				changes = append(changes, test.change)
			}
			earlier, later := pairOf(t, test.in, changes...)
			if got := lines(Explain(earlier, later)); !slices.Equal(got, test.want) {
				t.Errorf("Explain returned\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
		})
	}
}

// A fiber that sends on a remote channel whose broker is away.
var away = Snapshot{
	Fibers: []Fiber{waiting(1, "producer",
		Wait{Kind: WaitSend, Object: 11, Text: "to send on remote orders (durable, full, 64 of 64)"}), runs},
	Objects: []Object{{ID: 11, Kind: remote, Name: "orders", Len: 64, Cap: 64, Senders: 1, FromOutside: true, ToOutside: true,
		Oldest: ago(12 * time.Second), Trouble: "the broker is away: connection refused", TroubleSince: ago(12 * time.Second)}},
}

func TestCertainCyclesAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"two locks in different orders", crossed, nil, []string{crossedText}},
		{"with lines", crossed, edit(func(s *Snapshot) { s.Fibers[0].At = "/src/bank/transfer.go:12" }), []string{
			strings.Replace(crossedText, "B,", "B (at bank/transfer.go:12),", 1)}},
		{"with spawn sites", crossed, edit(func(s *Snapshot) {
			s.Fibers[0].Spawned, s.Fibers[1].Spawned = "/src/bank/main.go:12", "/src/bank/main.go:12"
		}), []string{crossedText + "; spawned at bank/main.go:12"}},
		{"age not known", crossed, edit(func(s *Snapshot) { s.Fibers[1].Since = time.Time{} }), []string{
			strings.Replace(crossedText, "3.1s", "at least 2s", 1)}},
		{"no time between the snapshots", crossed,
			func(earlier, _ *Snapshot) { earlier.Taken = noon }, []string{crossedText}},
		{"it is as old as its youngest wait", crossed, edit(func(s *Snapshot) { s.Fibers[0].Since = ago(time.Hour) }),
			[]string{crossedText}},
		{"a lock taken twice", Snapshot{
			Fibers: []Fiber{waiting(1, "a", lock(11, "mu")), runs}, Objects: []Object{mutex(11, "mu", 1)},
		}, nil, []string{"certain deadlock: a waits to lock mu, held by itself: a deadlock, for 3.1s"}},
		{"a lock that it takes while each of the snapshots is made", Snapshot{
			Fibers: []Fiber{waiting(1, "a", lock(11, "mu")), runs}, Objects: []Object{mutex(11, "mu", 1)},
		}, func(_, later *Snapshot) { later.Fibers[0].Waits++ }, nil},
		{"a lock that it takes while the later snapshot is made", Snapshot{
			Fibers: []Fiber{waiting(1, "a", lock(11, "mu")), runs}, Objects: []Object{mutex(11, "mu", 1)},
		}, func(earlier, _ *Snapshot) { earlier.Objects[0].Holders = nil }, nil},
		{"a lock and the end of a fiber", Snapshot{
			Fibers:  []Fiber{waiting(1, "a", end(2)), waiting(2, "b", lock(11, "mu")), runs},
			Objects: []Object{mutex(11, "mu", 1)},
		}, nil, []string{"certain deadlock: a waits for b to end, which waits to lock mu, held by a: a deadlock, for 3.1s"}},
		{"a fiber that waits for its own end", Snapshot{Fibers: []Fiber{waiting(1, "a", end(1)), runs}}, nil,
			[]string{"certain deadlock: a waits for a to end: a deadlock, for 3.1s"}},
		{"a lock and a join, although a sibling runs", Snapshot{
			Fibers: []Fiber{
				waiting(1, "main", join(100)),
				{ID: 2, Name: "quick", Nursery: 100, State: StateRunning},
				waiting(3, "child", lock(11, "mu")),
			},
			Objects:   []Object{mutex(11, "mu", 1)},
			Nurseries: []Nursery{{ID: 100, Owner: 1, Parent: 100}}, // a wrong dump may say that it is inside itself
		}, nil, []string{"certain deadlock: main waits for its children to end: child, which waits to lock mu, held by " +
			"main: a deadlock, for 3.1s"}},
		{"a lock and a join, although a sibling is free at the end of a chain", Snapshot{
			Fibers: []Fiber{
				waiting(1, "main", join(101)), runs,
				{ID: 2, Name: "quick", Nursery: 101, State: StateWaiting, Wait: []Wait{end(99)}},
				{ID: 3, Name: "child", Nursery: 101, State: StateWaiting, Wait: []Wait{lock(11, "mu")}},
			},
			Objects: []Object{mutex(11, "mu", 1)},
		}, nil, []string{"certain deadlock: main waits for its children to end: child, which waits to lock mu, held by " +
			"main: a deadlock, for at least 2s"}},
		{"others wait for them", crossed, edit(func(s *Snapshot) {
			for k := range uint64(3) {
				s.Fibers = append(s.Fibers, waiting(20+k, fmt.Sprintf("worker[%d]", k), lock(11, "A")))
			}
			s.Fibers = append(s.Fibers, waiting(30, "main", end(20)))
			s.Fibers[3].Since = ago(5 * time.Minute)
		}), []string{crossedText + "; main, worker[0..2] (4 fibers) wait for them, the oldest for 5m"}},
		{"one waits for it", crossed, edit(func(s *Snapshot) {
			s.Fibers[1].Wait[0], s.Objects[0].Holders = end(2), nil
		}), []string{"certain deadlock: transfer[1] waits for transfer[1] to end: a deadlock, for 3.1s; transfer[0] waits " +
			"for it"}},
		{"a select of which each case is stuck", crossed, edit(func(s *Snapshot) {
			s.Fibers[0].Wait = append(s.Fibers[0].Wait, end(2))
		}), []string{"certain deadlock: transfer[0] waits in a select, each of whose 2 cases is stuck, for transfer[1] to " +
			"end, which waits to lock A, held by transfer[0]: a deadlock, for 3.1s"}},
		{"a lock with several holders, each of them stuck", crossed, edit(func(s *Snapshot) {
			s.Fibers = append(s.Fibers, waiting(3, "reader", lock(11, "A")))
			s.Objects[1].Holders = []uint64{3, 2}
		}), []string{"certain deadlock: transfer[0] waits to lock B, held by 2 fibers, all of them stuck, of which " +
			"transfer[1] waits to lock A, held by transfer[0]: a deadlock, for 3.1s; reader waits for them"}},
		{"a reader that wants to write", Snapshot{
			Fibers:  []Fiber{waiting(1, "a", lock(11, "rw")), waiting(2, "b", lock(11, "rw")), runs},
			Objects: []Object{mutex(11, "rw", 1, 2)},
		}, edit(func(s *Snapshot) { s.Objects[0].Ends = "read-unlock" }), []string{"certain deadlock: a waits to lock rw, " +
			"held by 2 fibers, all of them stuck, one of which is itself: a deadlock, for 3.1s; b waits for it"}},
		{"a long cycle", circle(1000), nil, []string{"certain deadlock: f[0] waits to lock m0, held by f[1], which waits " +
			"to lock m1, held by f[2], which waits to lock m2, held by f[3], which waits to lock m3, held by f[4], which " +
			"waits in the same way, as do the next 995 fibers; the last, f[999], waits to lock m999, held by f[0]: " +
			"a deadlock, for 3.1s"}},
		{"many that are alike", many(50), nil, []string{"certain deadlock: p[0] waits to lock x[0], held by p[1], which " +
			"waits to lock x[1], held by p[0]: a deadlock, for 3.1s; the same 49 times more, with 98 other fibers"}},

		{"a fiber and a goroutine", outside, nil, []string{"certain " + outsideText + "a deadlock, for 3.1s"}},
		{"a goroutine in a context that may end", outside, edit(func(s *Snapshot) { s.Fibers[0].Foreign = true }), []string{
			outsideText + "likely a deadlock, for 3.1s, unless the context of a wait ends"}},
		{"another wait of a goroutine", outside, func(_, later *Snapshot) { later.Fibers[0].Waits++ }, nil},
		{"a goroutine that does not wait holds the lock", outside, edit(func(s *Snapshot) { s.Fibers = s.Fibers[1:] }), nil},
		{"a full channel, for goroutines", full, edit(func(s *Snapshot) {
			s.Fibers[0] = goroutine(34, send(11))
			s.Fibers = append(s.Fibers, goroutine(35, send(11)), goroutine(36, send(11)))
		}), []string{"channel-full: goroutine[34..36] (3 goroutines) wait to send to orders (full, 64 of 64), the oldest for " +
			"12s; consumer, which was the last to receive from it, runs (at shop/db.go:7)"}},
		{"every fiber waits, and a goroutine", still, nil, []string{"all-waiting: the only fiber waits for 3.1s: main waits " +
			"for the event go; so does a goroutine: goroutine[34] waits to receive from orders; only another goroutine could " +
			"end that"}},
		{"every fiber waits, and a goroutine has begun a wait", still,
			func(_, later *Snapshot) { later.Fibers[1].Waits++ }, nil},
		{"every fiber waits, and a goroutine has ended a wait", still,
			func(_, later *Snapshot) { later.Fibers = later.Fibers[:1] }, nil},
		{"every fiber waits, for a goroutine that holds a lock", still, edit(func(s *Snapshot) {
			s.Objects[0] = mutex(11, "mu", FirstGoroutine+99)
		}), nil},
		{"every fiber waits, under a deadline that is not the goroutine's", still, edit(timed), []string{
			"all-waiting: the only fiber waits for 3.1s: main waits for the event go; so does a goroutine: goroutine[34] " +
				"waits to receive from orders; only another goroutine could end that before the deadline, in 52s"}},
	})
}

func TestAlmostACycleIsNotExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"another wait", crossed, func(_, later *Snapshot) { later.Fibers[1].Waits++ }, nil},
		{"ready in between", crossed, func(earlier, _ *Snapshot) { earlier.Fibers[0].State = StateReady }, nil},
		{"about to run", crossed, func(_, later *Snapshot) { later.Fibers[0].State = StateReady }, nil},
		{"not seen before", crossed, func(earlier, _ *Snapshot) { earlier.Fibers = earlier.Fibers[1:] }, nil},
		{"not seen again", crossed, func(_, later *Snapshot) { later.Fibers = later.Fibers[1:] }, []string{
			"holder-gone: transfer[1] waits to lock A for 3.1s; transfer[0], which holds it, has ended"}},
		{"another object", crossed, func(earlier, _ *Snapshot) { earlier.Fibers[0].Wait[0].Object = 11 }, nil},
		{"another holder", crossed, func(earlier, _ *Snapshot) { earlier.Objects[0].Holders[0] = 99 }, nil},
		{"no holder", crossed, func(earlier, _ *Snapshot) { earlier.Objects[0].Holders = nil }, nil},
		{"one more holder", crossed, func(_, later *Snapshot) { later.Objects[0].Holders = []uint64{1, 99} }, nil},
		{"a holder that runs", crossed, edit(func(s *Snapshot) { s.Objects[0].Holders = []uint64{1, 99} }), nil},
		{"a holder that is not in the snapshot", crossed,
			edit(func(s *Snapshot) { s.Objects[0].Holders = []uint64{1, 98} }), nil},
		{"an object that is not in the snapshot", crossed,
			func(earlier, _ *Snapshot) { earlier.Objects = earlier.Objects[1:] }, nil},
		{"a select with a live case", crossed, edit(func(s *Snapshot) {
			s.Fibers[0].Wait = append(s.Fibers[0].Wait, recv(50))
		}), nil},
		{"a select with a time", crossed, edit(func(s *Snapshot) {
			s.Fibers[0].Wait = append(s.Fibers[0].Wait, Wait{Kind: WaitSleep, Text: "for time to pass"})
		}), nil},
		{"a select with a case that is free at the end of a chain", crossed, edit(func(s *Snapshot) {
			s.Fibers[0].Wait = append(s.Fibers[0].Wait, end(50))
			s.Fibers = append(s.Fibers, waiting(50, "a", end(51)), waiting(51, "b", end(99)))
		}), nil},
		{"a holder that is free at the end of a chain", crossed, edit(func(s *Snapshot) {
			s.Objects[0].Holders = []uint64{1, 50}
			s.Fibers = append(s.Fibers, waiting(50, "a", end(51)), waiting(51, "b", end(99)))
		}), nil},
		{"a fiber of coir", crossed, edit(func(s *Snapshot) { s.Fibers[0].System = true }), nil},
		{"an end that comes", crossed, edit(func(s *Snapshot) { s.Fibers[0].Wait[0] = end(99) }), nil},
		{"snapshots that overlap", crossed, func(earlier, _ *Snapshot) { earlier.Took = 3 * time.Second }, nil},
		{"in the wrong order", crossed, func(earlier, _ *Snapshot) { earlier.Taken = noon.Add(1) }, nil},
		{"another process", crossed, func(earlier, _ *Snapshot) { earlier.Process.PID++ }, nil},
		{"a chain without a cycle", crossed, edit(func(s *Snapshot) { s.Objects[0].Holders[0] = 99 }), nil},
		{"a semaphore that another fiber releases", Snapshot{
			Fibers:  []Fiber{waiting(1, "producer", Wait{Kind: WaitUse, Object: 11, Text: "to acquire room"}), runs},
			Objects: []Object{{ID: 11, Kind: "semaphore", Name: "room", Ends: "release", Holders: []uint64{1}}},
		}, nil, nil},
	})
}

func TestLikelyCyclesAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"with a limit", crossed, edit(func(s *Snapshot) { s.Fibers[1].Until = noon.Add(4 * time.Second) }), []string{
			likelyText + ", until a wait ends by itself in 4s"}},
		{"with a limit, young", crossed, func(earlier, later *Snapshot) {
			earlier.Taken = ago(100 * time.Millisecond)
			for _, s := range []*Snapshot{earlier, later} {
				s.Fibers[0].Since, s.Fibers[1].Since = ago(time.Second/2), ago(time.Second/2)
				s.Fibers[1].Until = noon.Add(time.Second / 2)
			}
		}, []string{strings.Replace(likelyText, "3.1s", "500ms", 1) + ", until a wait ends by itself in 500ms"}},
		{"with a limit in the earlier", crossed, func(earlier, _ *Snapshot) { earlier.Fibers[1].Until = noon }, []string{
			likelyText + ", until a wait ends by itself"}},
		{"with a deadline around", crossed, edit(func(s *Snapshot) {
			s.Nurseries = []Nursery{{ID: 100, Parent: 90}, {ID: 90, Parent: 80}, {ID: 80, Deadline: noon.Add(time.Minute)}}
		}), []string{
			likelyText + ", until a wait ends by itself in 1m"}},
		{"in a cancelled nursery", crossed, edit(func(s *Snapshot) { s.Nurseries = []Nursery{{ID: 100, Ended: true}} }), []string{
			likelyText + ", although their nursery was cancelled",
			"cancel-ignored: nursery 100 was cancelled, and 3 fibers have not ended: transfer[0] waits to " +
				"lock B; transfer[1] waits to lock A; other runs"}},
		{"a select with more cases", crossed, edit(func(s *Snapshot) { s.Fibers[1].More = 1 }), nil},
		{"in another context", crossed, edit(func(s *Snapshot) { s.Fibers[1].Foreign = true }), []string{
			likelyText + ", unless the context of a wait ends"}},
		{"cancelled just now", crossed, func(earlier, later *Snapshot) {
			later.Nurseries = []Nursery{{ID: 100, Ended: true}}
			later.Fibers[1].Since, earlier.Taken = ago(time.Millisecond), ago(time.Millisecond)
		}, nil},
		{"a semaphore", crossed, edit(func(s *Snapshot) { s.Objects[0].Ends = "release" }), []string{
			likelyText}},
		{"over channels", jammed, nil, []string{"deadlock: parse waits to send to parsed (full, 4 of 4), and retry, which " +
			"was the last to receive from it, waits to send to again, and parse was the last to receive from it: likely a " +
			"deadlock, for 3.1s"}},
		{"over channels, which are full for long", jammed, edit(func(s *Snapshot) { s.Objects[0].Oldest = ago(time.Minute) }),
			[]string{"deadlock: parse waits to send to parsed (full, 4 of 4), and retry, which was the last to receive from " +
				"it, waits to send to again, and parse was the last to receive from it: likely a deadlock, for 3.1s"}},
		{"its own queue", Snapshot{
			Fibers:  []Fiber{waiting(1, "worker", send(11)), runs},
			Objects: []Object{{ID: 11, Kind: "channel", Name: "jobs", Len: 4, Cap: 4, Receiver: 1, Senders: 1}},
		}, nil, []string{"deadlock: worker waits to send to jobs (full, 4 of 4), and was itself the last to receive from " +
			"it: likely a deadlock, for 3.1s"}},
		{"a channel that was not closed", unclosed,
			nil, []string{"deadlock: main waits for consumer to end, which waits to receive from channel #11, " +
				"and main was the last to send to it: likely a deadlock, for 3.1s"}},
		{"a channel that was not closed, in which others put something", unclosed,
			func(earlier, _ *Snapshot) { earlier.Objects[0].Sender = 99 }, nil},
		{"a channel that was not closed, and moves", unclosed, func(earlier, _ *Snapshot) { earlier.Objects[0].Sent-- }, nil},
		{"a channel that was not closed, with a sender", unclosed, edit(func(s *Snapshot) { s.Objects[0].Senders = 1 }), nil},
		{"a select on its own queue and another", Snapshot{
			Fibers:  []Fiber{waiting(1, "a", recv(11), lock(12, "mu")), runs},
			Objects: []Object{{ID: 11, Kind: "channel", Name: "jobs", Sender: 1}, mutex(12, "mu", 1)},
		}, nil, nil},
		{"over channels, young", jammed, func(earlier, later *Snapshot) {
			later.Fibers[0].Since, earlier.Taken = ago(time.Second/2), ago(time.Second/4)
		}, nil},
		{"over channels, young, and all wait", jammed, func(earlier, later *Snapshot) {
			earlier.Fibers, later.Fibers = earlier.Fibers[:2], later.Fibers[:2]
			later.Fibers[0].Since, earlier.Taken = ago(time.Second/2), ago(time.Second/4)
		}, []string{"deadlock: parse waits to send to parsed (full, 4 of 4), and retry, which was the last to receive from " +
			"it, waits to send to again, and parse was the last to receive from it: likely a deadlock, for 500ms"}},
		{"over channels, that move", jammed, func(_, later *Snapshot) { later.Objects[0].Received++ }, nil},
		{"over channels, another receiver", jammed, func(earlier, _ *Snapshot) { earlier.Objects[0].Receiver = 99 }, nil},
		{"over channels, a receiver waits", jammed, edit(func(s *Snapshot) { s.Objects[0].Receivers = 1 }), nil},
		{"over channels, no receiver known", jammed, edit(func(s *Snapshot) { s.Objects[0].Receiver = 0 }), nil},
		{"over channels, with a limit", jammed, edit(func(s *Snapshot) { s.Fibers[0].Until = noon.Add(time.Second) }), []string{
			"deadlock: parse waits to send to parsed (full, 4 of 4), and retry, which was the last to receive from it, waits " +
				"to send to again, and parse was the last to receive from it: likely a deadlock, for 3.1s, until a wait ends by " +
				"itself in 1s"}},
		{"over channels, in a context that may end", jammed, edit(func(s *Snapshot) { s.Fibers[0].Foreign = true }), []string{
			"deadlock: parse waits to send to parsed (full, 4 of 4), and retry, which was the last to receive from it, waits " +
				"to send to again, and parse was the last to receive from it: likely a deadlock, for 3.1s, unless the context of " +
				"a wait ends"}},
		{"over channels, young, in a context that may end", jammed, func(earlier, later *Snapshot) {
			earlier.Fibers[0].Foreign, later.Fibers[0].Foreign = true, true
			later.Fibers[0].Since, earlier.Taken = ago(time.Second/2), ago(time.Second/4)
		}, nil},
		{"over a channel and a lock, in a context that may end", audited, nil, []string{
			"deadlock: receiver waits to lock settings, held by goroutine[29], which waits to send to audit (full, 4 of 4), " +
				"and receiver was the last to receive from it: likely a deadlock, for 3.1s, unless the context of a wait ends"}},
		{"over channels, closed", jammed, edit(func(s *Snapshot) { s.Objects[0].Closed = true }), nil},
		{"over channels, one of two receivers runs", jammed,
			edit(func(s *Snapshot) { s.Objects[0].ReceiverBefore = runs.ID }), nil},
		{"over channels, the last receiver has ended", jammed,
			edit(func(s *Snapshot) { s.Objects[0].Receiver, s.Objects[0].ReceiverBefore = 50, 2 }), []string{
				"deadlock: parse waits to send to parsed (full, 4 of 4), and retry, which was among the last to receive from it, " +
					"waits to send to again, and parse was the last to receive from it: likely a deadlock, for 3.1s"}},
		{"channels as locks", tokens, nil, []string{"deadlock: ab waits to receive from b, and ba, which was the last to " +
			"receive from it, waits to receive from a, and ab was the last to receive from it: likely a deadlock, for 3.1s; " +
			"main waits for them"}},
		{"channels as locks, and the holder runs", tokens, edit(func(s *Snapshot) {
			s.Objects[1].ReceiverBefore = runs.ID
		}), nil},
		{"its own queue, and all wait", Snapshot{
			Fibers:  []Fiber{waiting(1, "watcher", recv(11))},
			Objects: []Object{{ID: 11, Kind: "channel", Name: "changes", Sender: 1, Receiver: 1, Receivers: 1}},
		}, nil, []string{"deadlock: watcher waits to receive from changes, and was itself the last to send to it: likely a " +
			"deadlock, for 3.1s"}},
		{"a lock and a pool", borrowed, nil, []string{borrowedText}},
		{"a lock and a pool, young, with a limit", borrowed, func(earlier, later *Snapshot) {
			earlier.Taken = ago(100 * time.Millisecond)
			for _, s := range []*Snapshot{earlier, later} {
				s.Objects[0].Oldest = ago(time.Second / 2)
				for i := range 4 {
					s.Fibers[i].Since, s.Fibers[i].Until = ago(time.Second/2), noon.Add(time.Second/2)
				}
			}
		}, []string{strings.Replace(strings.ReplaceAll(borrowedText, "3.1s", "500ms"), "500ms", "500ms, until a wait ends by "+
			"itself in 500ms", 1)}},
		{"a lock and a pool with one value", borrowed, edit(func(s *Snapshot) {
			o := &s.Objects[0]
			o.Len, o.Cap, o.Holders = 1, 1, []uint64{2}
		}), []string{"deadlock: refresh waits for a value of connections (1 of 1 lent), lent to query[0], which waits to " +
			"lock cache, held by refresh: likely a deadlock, for 3.1s; query[1], query[2] wait for them, the oldest for 3.1s"}},
		{"a pool whose borrowers wait for a second value", borrowed, edit(func(s *Snapshot) {
			s.Fibers, s.Objects[0].Holders = []Fiber{s.Fibers[0], s.Fibers[3], runs}, []uint64{1, 4}
		}), []string{"deadlock: refresh waits for a value of connections (2 of 2 lent), lent to 2 fibers, all of them " +
			"stuck, one of which is itself: likely a deadlock, for 3.1s; query[2] waits for it"}},
		{"a lock and a pool, and a borrower runs", borrowed,
			edit(func(s *Snapshot) { s.Objects[0].Holders[1] = runs.ID }), nil},
		{"a lock and a pool, and a borrower has ended", borrowed,
			edit(func(s *Snapshot) { s.Objects[0].Holders[1] = 50 }), nil},
		{"a lock and a pool, and one borrower is not known", borrowed,
			edit(func(s *Snapshot) { s.Objects[0].Holders = s.Objects[0].Holders[:1] }), nil},
		{"a lock and a pool, and a value is free", borrowed, edit(func(s *Snapshot) { s.Objects[0].Cap++ }), nil},
		{"a lock and a pool that is closed", borrowed, edit(func(s *Snapshot) { s.Objects[0].Closed = true }), nil},
		{"a lock and a pool that moves", borrowed, func(_, later *Snapshot) { later.Objects[0].Received++ }, nil},
		{"a lock and a pool, in a context that may end", borrowed,
			edit(func(s *Snapshot) { s.Fibers[0].Foreign = true }), []string{strings.Replace(borrowedText, "; query",
				", unless the context of a wait ends; query", 1)}},
		{"idle actors", Snapshot{
			Fibers: []Fiber{waiting(1, "a", recv(11)), waiting(2, "b", recv(12)), runs},
			Objects: []Object{
				{ID: 11, Kind: "channel", Name: "to a", Sender: 2, Receivers: 1},
				{ID: 12, Kind: "channel", Name: "to b", Sender: 1, Receivers: 1},
			},
		}, nil, nil},
	})
}

func TestAllWaitingIsExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"all wait", Snapshot{
			Fibers: []Fiber{
				waiting(1, "main", join(100)),
				waiting(2, "worker[0]", recv(11)), waiting(3, "worker[1]", recv(11)), waiting(4, "worker[2]", recv(11)),
				waiting(5, "late", Wait{Kind: WaitUse, Object: 12, Text: "for the event start"}),
			},
			Objects: []Object{{ID: 11, Kind: "channel", Name: "jobs"}, {ID: 12, Kind: "event", Name: "start", Ends: "set"}},
		}, nil, []string{"all-waiting: every fiber waits, the oldest for 3.1s: main waits for its children to end; " +
			"worker[0..2] (3 fibers) wait to receive from jobs; late waits for the event start; only a goroutine outside of " +
			"coir could end that"}},
		{"a server waits for the network", Snapshot{
			Fibers: []Fiber{
				waiting(1, "main", join(100)), waiting(2, "accept", Wait{Kind: WaitUse, Object: 11, Text: "for a connection to #11"}),
			},
			Objects: []Object{{ID: 11, Kind: "listener"}},
		}, nil, nil},
		{"all wait at a barrier", Snapshot{
			Fibers: []Fiber{
				waiting(1, "main", join(100)), waiting(2, "early", Wait{Kind: WaitUse, Object: 11, Text: "for a signal of phase"}),
			},
			Objects: []Object{{ID: 11, Kind: "condition", Name: "phase", Ends: "signal"}},
		}, nil, []string{"all-waiting: every fiber waits, the oldest for 3.1s: main waits for its children to end; early " +
			"waits for a signal of phase; only a goroutine outside of coir could end that"}},
		{"it is fed by a goroutine", lonely, edit(func(s *Snapshot) { s.Objects[1].FromOutside = true }), nil},
		{"a goroutine takes what it sends", Snapshot{
			Fibers: []Fiber{waiting(1, "main", send(11))}, Objects: []Object{{ID: 11, Kind: "channel", ToOutside: true}},
		}, nil, nil},
		{"some wait for their children", Snapshot{
			Fibers: []Fiber{waiting(1, "a", join(100)), waiting(2, "b", join(101)), waiting(3, "c", recv(11))},
		}, nil, []string{"all-waiting: every fiber waits, the oldest for 3.1s: a, b wait for their children to end; c waits " +
			"to receive from something; only a goroutine outside of coir could end that"}},
		{"all wait for a pool", Snapshot{
			Fibers:  []Fiber{waiting(1, "main", Wait{Kind: WaitRecv, Object: 11, Text: "for a value of conns"})},
			Objects: []Object{{ID: 11, Kind: "pool", Name: "conns"}},
		}, nil, []string{"all-waiting: the only fiber waits for 3.1s: main waits for a value of conns; only a goroutine " +
			"outside of coir could end that"}},
		{"the only one waits", lonely,
			nil, []string{"all-waiting: the only fiber waits for 3.1s: main waits in a select to " +
				"receive from a, or to receive from b; only a goroutine outside of coir could end that"}},
		{"all wait for different things", Snapshot{Fibers: []Fiber{
			waiting(1, "a", recv(1), recv(2), recv(3), recv(4), recv(5)), waiting(2, "b", end(1)), waiting(3, "c", end(2)),
			waiting(4, "d", end(3)), waiting(5, "e", end(4)), waiting(6, "f", end(4)),
		}}, nil, []string{"all-waiting: every fiber waits, the oldest for 3.1s: a waits in a select to receive from " +
			"something, or to receive from something, or to receive from something, or 2 more cases; b waits for a to " +
			"end; c waits for b to end; d waits for c to end; and 2 fibers more; only a goroutine outside of coir could end " +
			"that"}},
		{"all wait, and some are in line", lonely, edit(func(s *Snapshot) {
			s.Fibers = append(s.Fibers, inLine(2, "job[0]"), inLine(3, "job[1]"), inLine(4, "job[2]"))
			s.Process.Live = 1
			s.Nurseries = []Nursery{{ID: 100, Limit: 1}}
		}), []string{"all-waiting: every fiber waits, the oldest for 3.1s: main waits in a select to receive from a, or to " +
			"receive from b; job[0..2] (3 fibers) wait for a place in their nursery; only a goroutine outside of coir could " +
			"end that"}},
		{"some are in line, and one was missed", lonely, edit(func(s *Snapshot) {
			s.Fibers = append(s.Fibers, inLine(2, "job"))
			s.Process.Live = 2
		}), nil},
		{"one runs", lonely, edit(func(s *Snapshot) { s.Fibers = append(s.Fibers, runs) }), nil},
		{"one is outside", lonely,
			edit(func(s *Snapshot) { s.Fibers = append(s.Fibers, Fiber{ID: 3, State: StateOutside}) }), nil},
		{"one blocks", lonely, edit(func(s *Snapshot) {
			s.Fibers = append(s.Fibers, Fiber{ID: 3, Name: "io", State: StateBlocking, System: true})
		}), nil},
		{"one is new", lonely,
			func(_, later *Snapshot) { later.Fibers = append(later.Fibers, waiting(5, "new", recv(1))) }, nil},
		{"some were omitted", lonely, func(_, later *Snapshot) { later.Omitted = 1 }, nil},
		{"some were missed", lonely, func(_, later *Snapshot) { later.Process.Live = 2 }, nil},
		{"one has ended", lonely, func(earlier, _ *Snapshot) { earlier.Fibers = append(earlier.Fibers, runs) }, nil},
		{"one has begun", lonely, func(_, later *Snapshot) { later.Process.Spawned = 1 }, nil},
		{"it waits for one that has ended", lonely, edit(func(s *Snapshot) { s.Fibers[0].Wait[1] = end(5) }), nil},
		{"it has moved", lonely, func(_, later *Snapshot) { later.Fibers[0].Waits++ }, nil},
		{"it has a limit", lonely, edit(func(s *Snapshot) { s.Fibers[0].Until = noon.Add(time.Hour) }), nil},
		{"the run has a deadline", lonely, edit(timed), []string{"all-waiting: the only fiber waits for 3.1s: main waits in " +
			"a select to receive from a, or to receive from b; only a goroutine outside of coir could end that before the " +
			"deadline, in 52s"}},
		{"the run has a deadline, and some are in line", lonely, edit(timed, func(s *Snapshot) {
			s.Fibers = append(s.Fibers, inLine(2, "job"))
			s.Process.Live = 1
		}), []string{"all-waiting: every fiber waits, the oldest for 3.1s: main waits in a select to receive from a, or to " +
			"receive from b; job waits for a place in its nursery; only a goroutine outside of coir could end that before " +
			"the deadline, in 52s"}},
		{"the run has a deadline, and its wait is young", lonely,
			edit(timed, func(s *Snapshot) { s.Fibers[0].Since = ago(900 * time.Millisecond) }), nil},
		{"the run has a deadline, which has passed", lonely,
			edit(timed, func(s *Snapshot) { s.Nurseries[0].Deadline, s.Fibers[0].Until = noon, noon }), nil},
		{"the run has a deadline, and its wait an earlier one", lonely,
			edit(timed, func(s *Snapshot) { s.Fibers[0].Until = noon.Add(51 * time.Second) }), nil},
		{"the run has a deadline, and one sleeps", lonely, edit(timed, func(s *Snapshot) {
			s.Fibers = append(s.Fibers, waiting(2, "tick", Wait{Kind: WaitSleep, Text: "for time to pass"}))
		}), nil},
		{"the run has a deadline, and one waits for a cancel", lonely, edit(timed, func(s *Snapshot) {
			s.Fibers = append(s.Fibers, waiting(2, "stop", Wait{Kind: WaitCancel, Text: "for a cancel"}))
		}), nil},
		{"a part has a deadline", lonely, edit(timed, func(s *Snapshot) {
			s.Nurseries[0].Parent = 50
			s.Nurseries = append(s.Nurseries, Nursery{ID: 50})
		}), nil},
		{"it may be cancelled", lonely, edit(func(s *Snapshot) { s.Fibers[0].Wait[1] = Wait{Kind: WaitCancel} }), nil},
		{"it sleeps", lonely, edit(func(s *Snapshot) { s.Fibers[0].Wait[1] = Wait{Kind: WaitSleep} }), nil},
		{"it waits for the network", lonely, edit(func(s *Snapshot) {
			s.Fibers[0].Wait[1] = Wait{Kind: WaitUse, Object: 50, Text: "to read from 10.0.0.1:80"}
			s.Objects = append(s.Objects, Object{ID: 50, Kind: "network"})
		}), nil},
		{"it waits for a ticket", tickets, edit(func(s *Snapshot) {
			s.Fibers, s.Objects[0].Oldest = s.Fibers[:1], time.Time{}
		}), nil},
		{"all are in a cycle", crossed, edit(func(s *Snapshot) { s.Fibers = s.Fibers[:2] }), []string{crossedText}},
		{"idle actors, and no others", Snapshot{
			Fibers: []Fiber{waiting(1, "a", recv(11)), waiting(2, "b", recv(12))},
			Objects: []Object{
				{ID: 11, Kind: "channel", Name: "to a", Sender: 2, Receivers: 1},
				{ID: 12, Kind: "channel", Name: "to b", Sender: 1, Receivers: 1},
			},
		}, nil, []string{"deadlock: a waits to receive from to a, and b, which was the last to send to it, waits to " +
			"receive from to b, and a was the last to send to it: likely a deadlock, for 3.1s"}},
	})
}

func TestStarvedFibersAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"a fiber that never yields", busyPool, nil, []string{
			"starved: web[0..2] (3 fibers), spawned at app/main.go:20, are ready to run, and likely have not run for at " +
				"least 2s; crunch, which does not yield, holds the workers",
			"never-yields: crunch, spawned at app/main.go:10, likely has not yielded its worker for at least 2s; crunch is at " +
				"app/sum.go:4"}},
		{"a fiber that has not yielded since before the earlier snapshot", busyPool, edit(func(s *Snapshot) {
			for i := range s.Workers {
				s.Workers[i].Since = ago(time.Minute)
			}
			s.Fibers = s.Fibers[:1]
		}), []string{"never-yields: crunch, spawned at app/main.go:10, likely has not yielded its worker for 1m; " +
			"crunch is at app/sum.go:4"}},
		{"a fiber that computes", busyPool, hogs("running", ago(12*time.Second)), []string{"never-yields: crunch, spawned at " +
			"app/main.go:10, computes for 12s without yielding; crunch is at app/sum.go:4"}},
		{"a fiber that computes, since when is not known", busyPool, hogs("running", time.Time{}), []string{"never-yields: " +
			"crunch, spawned at app/main.go:10, computes for at least 2s without yielding; crunch is at app/sum.go:4"}},
		{"several fibers that compute", busyPool, func(earlier, later *Snapshot) {
			hogs("running", ago(12*time.Second))(earlier, later)
			for _, s := range []*Snapshot{earlier, later} {
				s.Fibers[0].At = ""
				s.Fibers = append(s.Fibers, s.Fibers[0])
				s.Fibers[1].ID, s.Fibers[1].Name = 2, "crush"
				s.Workers = append(s.Workers, Worker{ID: 2, State: "held", Fiber: 2, Beats: 9, Since: ago(7 * time.Second)})
			}
		}, []string{"never-yields: crunch, crush, spawned at app/main.go:10, compute for at least 7s without yielding"}},
		{"a fiber in a network read", busyPool, hogs("IO wait", ago(12*time.Second)), []string{"blocking-calls: crunch, " +
			"spawned at app/main.go:10, is blocked in I/O (such as a network read) for 12s; crunch is at app/sum.go:4"}},
		{"a fiber in a system call", busyPool, hogs("syscall", time.Time{}), []string{"blocking-calls: crunch, " +
			"spawned at app/main.go:10, is blocked in a system call for at least 2s; crunch is at app/sum.go:4"}},
		{"a fiber in a native wait", busyPool, hogs("native wait", ago(time.Minute)), []string{"blocking-calls: crunch, " +
			"spawned at app/main.go:10, is blocked in a native wait (such as for a native channel) for 1m; crunch is at " +
			"app/sum.go:4"}},
		{"a fiber that computes and calls", busyPool, func(earlier, later *Snapshot) {
			hogs("syscall", ago(12*time.Second))(earlier, later)
			earlier.Fibers[0].State, earlier.Fibers[0].Call = StateRunning, "running"
		}, []string{"blocking-calls: crunch, spawned at app/main.go:10, is again and again blocked in a system call for 12s; " +
			"crunch is at app/sum.go:4"}},
		{"a fiber that has not begun", busyPool, edit(func(s *Snapshot) {
			s.Fibers = s.Fibers[:2]
			s.Fibers[1].State, s.Fibers[1].Nursery, s.Nurseries = StatePending, 100, []Nursery{{ID: 100}}
			s.Workers[0].State, s.Fibers[0].State = WorkerStateHeld, StateBlocking
		}), []string{
			"starved: web[0], spawned at app/main.go:20, is ready to run, and likely has not run for at least 2s; crunch, " +
				"which does not yield, holds the workers",
			"never-yields: crunch, spawned at app/main.go:10, likely has not yielded its worker for at least 2s; crunch is at " +
				"app/sum.go:4"}},
		{"fibers that yield", busyPool, func(_, later *Snapshot) { later.Workers[0].Beats += 3 }, nil},
		{"more fibers than turns", busyPool, func(_, later *Snapshot) { later.Workers[0].Beats += 2 }, []string{
			"starved: web[0..2] (3 fibers), spawned at app/main.go:20, are ready to run, and likely have not run for at least 2s"}},
		{"fibers in line for a place", busyPool, edit(func(s *Snapshot) {
			s.Fibers = s.Fibers[:2]
			s.Fibers[1].State, s.Fibers[1].Nursery, s.Nurseries = StatePending, 100, []Nursery{{ID: 100, Limit: 1}}
		}), []string{"never-yields: crunch, spawned at app/main.go:10, likely has not yielded its worker for at least 2s; " +
			"crunch is at app/sum.go:4"}},
		{"fibers that wait to begin", busyPool, edit(func(s *Snapshot) {
			s.Fibers = s.Fibers[1:2]
			s.Fibers[0].State, s.Fibers[0].Nursery, s.Nurseries = StatePending, 100, []Nursery{{ID: 100}}
		}), nil},
		{"it was not on the worker", busyPool, func(earlier, later *Snapshot) {
			earlier.Fibers[0].State = StateReady
			later.Fibers = later.Fibers[:1]
		}, nil},
		{"the worker has run others", busyPool, func(_, later *Snapshot) {
			later.Workers[0].Beats++
			later.Fibers = later.Fibers[:1]
		}, nil},
		{"the worker runs another", busyPool, func(earlier, later *Snapshot) {
			earlier.Workers[0].Fiber = 2
			later.Fibers = later.Fibers[:1]
		}, nil},
		{"the worker is in a call", busyPool, func(earlier, later *Snapshot) {
			earlier.Workers[0].State = WorkerStateBlocking
			later.Fibers = later.Fibers[:1]
		}, nil},
		{"it has waited in between", busyPool, func(_, later *Snapshot) {
			for k := range later.Fibers {
				later.Fibers[k].Waits++
			}
		}, nil},
		{"too soon to say", busyPool, func(earlier, _ *Snapshot) { earlier.Taken = ago(99 * time.Millisecond) }, nil},
		{"they belong to coir", busyPool, edit(func(s *Snapshot) {
			for k := range s.Fibers {
				s.Fibers[k].System = true
			}
		}), nil},
	})
}

func TestFullChannelsAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"a channel that is full", full,
			nil, []string{"channel-full: producer waits to send to orders (full, 64 of 64) for 12s; " +
				"consumer, which was the last to receive from it, runs (at shop/db.go:7)"}},
		{"a channel that is full, with lines", full, edit(func(s *Snapshot) {
			s.Fibers[0].At, s.Fibers[0].Spawned = "/src/shop/order.go:4", "/src/shop/main.go:9"
		}), []string{"channel-full: producer waits to send to orders (full, 64 of 64) (at shop/order.go:4) for 12s; " +
			"consumer, which was the last to receive from it, runs (at shop/db.go:7)"}},
		{"a channel that is full, with spawn sites", full,
			edit(func(s *Snapshot) { s.Fibers[0].Spawned = "/src/shop/main.go:9" }),
			[]string{"channel-full: producer, spawned at shop/main.go:9, waits to send to orders (full, 64 of 64) for 12s; " +
				"consumer, which was the last to receive from it, runs (at shop/db.go:7)"}},
		{"a channel that is full, its receiver not known", full,
			edit(func(s *Snapshot) { s.Objects[0].Receiver = 0 }), []string{
				"channel-full: producer waits to send to orders (full, 64 of 64) for 12s; nothing was received from it for at " +
					"least 2s"}},
		{"many channels that are full", fullOnes(10),
			nil, []string{"channel-full: p[0] waits to send to q[0] (full, 2 of 2) for " +
				"20s; nothing has ever been received from it; the same 9 times more, with 9 other fibers"}},
		{"a channel that is full, its last receiver a goroutine", full,
			edit(func(s *Snapshot) { s.Objects[0].Receiver, s.Objects[0].ToOutside = 0, true }), []string{
				"channel-full: producer waits to send to orders (full, 64 of 64) for 12s; nothing was received from it for at " +
					"least 2s; the last to receive from it was a goroutine that is not a fiber"}},
		{"a channel that is full, its last receiver ended, but not the one before", full,
			edit(func(s *Snapshot) { s.Objects[0].Receiver, s.Objects[0].ReceiverBefore = 99, 2 }), []string{
				"channel-full: producer waits to send to orders (full, 64 of 64) for 12s; fiber 99, which was the last to " +
					"receive from it, has ended; consumer, which was the last but one to receive from it, runs (at shop/db.go:7)"}},
		{"a channel that is full, with waits that time out", full, func(earlier, later *Snapshot) {
			earlier.Taken = ago(8 * time.Second)
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(9*time.Second), ago(time.Second)
		}, []string{"channel-full: producer waits to send to orders (full, 64 of 64) for 1s; nothing was received for at " +
			"least 8s; consumer, which was the last to receive from it, runs (at shop/db.go:7)"}},
		{"a channel that is full, too soon to say", full, func(earlier, _ *Snapshot) { earlier.Taken = ago(99 * time.Millisecond) },
			nil},
		{"a channel that is full, and moves", full, func(_, later *Snapshot) { later.Objects[0].Received++ }, nil},
		{"a channel that was not full", full, func(earlier, _ *Snapshot) { earlier.Objects[0].Len-- }, nil},
		{"a channel that is full, not for long", full,
			edit(func(s *Snapshot) { s.Objects[0].Oldest = ago(4 * time.Second) }), nil},
		{"a channel that is full, another wait", full, func(_, later *Snapshot) { later.Fibers[0].Waits++ }, nil},
		{"a channel without a buffer", full, edit(func(s *Snapshot) {
			s.Objects[0].Len, s.Objects[0].Cap, s.Objects[0].Received = 0, 0, 1
		}), nil},
		{"a channel without a buffer, never used", full, edit(func(s *Snapshot) {
			s.Objects[0] = Object{ID: 11, Kind: "channel", Name: "orders", Senders: 1, Oldest: s.Objects[0].Oldest}
		}), []string{"channel-full: producer waits to send to orders (of capacity 0) for 12s; nothing has ever been received " +
			"from it"}},
		{"a channel that is full, of coir", full, edit(func(s *Snapshot) { s.Fibers[0].System = true }), nil},

		{"a channel that is full, and who holds what its receiver waits for", audited, edit(func(s *Snapshot) {
			s.Fibers = append(s.Fibers, waiting(3, "poster", send(13)))
			s.Objects = append(s.Objects, Object{ID: 13, Kind: "channel", Name: "posts", Len: 1, Cap: 1, Receiver: 2,
				Senders: 1, Oldest: ago(9 * time.Second)})
			s.Objects[0].ReceiverBefore = runs.ID
		}), []string{
			"channel-full: poster waits to send to posts (full, 1 of 1) for 9s; receiver, which was the last to receive from " +
				"it, waits to lock settings, held by goroutine[29], which waits to send to audit (full, 4 of 4)"}},
	})
}

func TestExhaustedPoolsAndHeldLocksAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"a pool whose values are lent", lent, nil, []string{"exhausted: 12 fibers wait for a value of connections (4 of 4 " +
			"lent), the oldest for 20s; coir does not know who has the values"}},
		{"a pool whose values are lent, and one waiter", lent, edit(func(s *Snapshot) { s.Fibers = s.Fibers[11:] }), []string{
			"exhausted: get[11] waits for a value of connections (4 of 4 lent) for 20s; coir does not know who has the values"}},
		{"a pool whose values are lent to known fibers", lent, edit(func(s *Snapshot) {
			s.Objects[0].Holders = []uint64{runs.ID, 1, 50, 50}
		}), []string{"exhausted: 12 fibers wait for a value of connections (4 of 4 lent), the oldest for 20s; those that have " +
			"the values: get[0] waits for a value of connections (4 of 4 lent); other runs; fiber 50 has ended"}},
		{"a pool whose values are lent to one fiber", lent, edit(func(s *Snapshot) {
			s.Objects[0].Holders = []uint64{50, 50, 50, 50}
		}), []string{"exhausted: 12 fibers wait for a value of connections (4 of 4 lent), the oldest for 20s; fiber 50, which " +
			"has all of them, has ended"}},
		{"a pool that moves", lent, func(_, later *Snapshot) { later.Objects[0].Received++ }, nil},
		{"a pool to which a value was given back", lent, func(_, later *Snapshot) { later.Objects[0].Sent++ }, nil},
		{"a pool that was not exhausted", lent, func(earlier, _ *Snapshot) { earlier.Objects[0].Len-- }, nil},
		{"a pool whose values are lent, not for long", lent,
			edit(func(s *Snapshot) { s.Objects[0].Oldest = ago(4 * time.Second) }), nil},
		{"a pool whose values are lent, with waits that time out", lent, func(earlier, later *Snapshot) {
			earlier.Taken, later.Fibers = ago(8*time.Second), later.Fibers[11:]
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(9*time.Second), ago(time.Second)
		}, []string{"exhausted: get[11] waits for a value of connections (4 of 4 lent) for 1s; nothing was given back for at " +
			"least 8s; coir does not know who has the values"}},
		{"a pool that moves, with waits that time out", lent, func(earlier, later *Snapshot) {
			earlier.Taken, later.Objects[0].Oldest = ago(8*time.Second), ago(time.Second)
			later.Objects[0].Sent, later.Objects[0].Received = later.Objects[0].Sent+1, later.Objects[0].Received+1
		}, nil},
		{"a pool that is closed", lent, edit(func(s *Snapshot) { s.Objects[0].Closed = true }), nil},
		{"a semaphore without permits", permits, nil, []string{"exhausted: load[0], load[1] wait to acquire limit, the oldest " +
			"for 9s; coir does not know who has the permits"}},
		{"a semaphore without permits, for a young wait", permits,
			edit(func(s *Snapshot) { s.Objects[0].Oldest = ago(4 * time.Second) }), nil},
		{"a semaphore that moves", permits,
			func(earlier, _ *Snapshot) { earlier.Objects[0].Oldest = ago(10 * time.Second) }, nil},
		{"a lock that is held", locked, nil, []string{"lock-held: a waits to lock mu for 6s; consumer, which holds it, runs (at " +
			"shop/db.go:7)"}},
		{"a lock that is held by a fiber that waits", locked, edit(func(s *Snapshot) {
			s.Fibers[1] = waiting(2, "copy", recv(12))
			s.Objects = append(s.Objects, Object{ID: 12, Kind: "channel", Name: "orders", Receivers: 1})
		}), []string{"lock-held: a waits to lock mu for 6s; copy, which holds it, waits to receive from orders"}},
		{"a lock that is held by a goroutine", locked, edit(func(s *Snapshot) { s.Objects[0].Holders[0] = FirstGoroutine + 7 }),
			[]string{"lock-held: a waits to lock mu for 6s; goroutine[7], which holds it, does not wait in coir: it computes, " +
				"waits for something else, or has ended"}},
		{"a lock whose holder is not known", locked, edit(func(s *Snapshot) { s.Objects[0].Holders = nil }), []string{
			"lock-held: a waits to lock mu for 6s; coir does not know who holds it"}},
		{"a lock that is held, not for long", locked,
			edit(func(s *Snapshot) { s.Objects[0].Oldest = ago(4 * time.Second) }), nil},
		{"a lock that is passed on", locked, func(earlier, _ *Snapshot) { earlier.Objects[0].Holders[0] = 50 }, nil},
		{"a lock that another fiber has got", locked,
			func(earlier, _ *Snapshot) { earlier.Objects[0].Oldest = ago(10 * time.Second) }, nil},
		{"a lock that is held, since when is known", locked, edit(func(s *Snapshot) {
			s.Objects[0].HeldSince = []time.Time{ago(time.Minute)}
		}), []string{"lock-held: a waits to lock mu for 6s; consumer, which holds it (in each snapshot for 1m), runs (at " +
			"shop/db.go:7)"}},
		{"a pool whose values are lent, since when is known", lent, edit(func(s *Snapshot) {
			s.Objects[0].Holders = []uint64{runs.ID, 1, 50, 51}
			s.Objects[0].HeldSince = []time.Time{ago(time.Minute), {}, ago(5 * time.Minute), {}}
		}), []string{"exhausted: 12 fibers wait for a value of connections (4 of 4 lent), the oldest for 20s; those that have " +
			"the values: get[0] waits for a value of connections (4 of 4 lent); other runs; fiber 50 has ended; fiber 51 has " +
			"ended; fiber 50 has had one for the longest time, in each snapshot for 5m"}},
	})
}

// The waits for a lock have time limits, so that none of them is in both snapshots.
func TestHeldLocksWhoseWaitsTimeOutAreExplained(t *testing.T) {
	timeouts := func(edits ...change) change {
		return func(earlier, later *Snapshot) {
			earlier.Taken = ago(10 * time.Second)
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(13*time.Second), ago(3*time.Second)
			later.Fibers[0].Waits += 3
			later.Objects[0].GaveUp += 3
			for _, e := range edits {
				e(earlier, later)
			}
		}
	}
	moves := func(_, later *Snapshot) { later.Fibers[1].Waits++ }
	by := func(holder uint64) change { return edit(func(s *Snapshot) { s.Objects[0].Holders[0] = holder }) }
	stack := "goroutine 7 [chan receive, 2 minutes]:\nexample.com/shop.(*Cache).load(0xc000, {0x1, 0x2})\n" +
		"\t/src/shop/cache.go:31 +0x1d\ncreated by example.com/shop.Serve in goroutine 1\n\t/src/shop/main.go:9 +0x9d\n"
	known := func(stack string) change {
		return edit(func(s *Snapshot) {
			s.Outside = []Fiber{{ID: FirstGoroutine + 7, Name: "goroutine[7]", State: StateOutside, Stack: stack,
				At: "/src/shop/cache.go:31", Spawned: "/src/shop/main.go:9"}}
		})
	}
	const head = "lock-held: a waits to lock mu for 3s; "
	const others = "; 3 other waits for it ended without it"
	testExplain(t, []explainTest{
		{"a holder that has not waited", locked, timeouts(), []string{
			head + "consumer, which holds it (in each snapshot for 10s), runs (at shop/db.go:7)" + others}},
		{"a holder that has waited", locked, timeouts(moves), []string{
			head + "consumer, which holds it (in each snapshot for 10s), runs (at shop/db.go:7)" + others}},
		{"a holder that has waited, and short waits", locked, timeouts(moves, func(earlier, later *Snapshot) {
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(10*time.Second), ago(time.Millisecond)
		}), nil},
		{"a holder that has waited, and no wait gave up", locked,
			timeouts(moves, edit(func(s *Snapshot) { s.Objects[0].GaveUp = 0 })), nil},
		{"a goroutine", locked, timeouts(by(FirstGoroutine + 7)), []string{head + "goroutine[7], which holds it (in each " +
			"snapshot for 10s), does not wait in coir: it computes, waits for something else, or has ended" + others}},
		{"a goroutine whose stack is known", locked, timeouts(by(FirstGoroutine+7), known(stack)), []string{
			head + "goroutine[7], which holds it (in each snapshot for 10s), waits in shop.(*Cache).load (chan " +
				"receive at shop/cache.go:31), started at shop/main.go:9" + others}},
		{"a goroutine that computes", locked,
			timeouts(by(FirstGoroutine+7), known(strings.Replace(stack, "chan receive, 2 minutes", "runnable", 1))), []string{
				head + "goroutine[7], which holds it (in each snapshot for 10s), computes in shop.(*Cache).load (at " +
					"shop/cache.go:31), started at shop/main.go:9" + others}},
		{"too soon to say, but snapshots before say it", locked, timeouts(func(earlier, later *Snapshot) {
			earlier.Taken, earlier.Objects[0].Oldest = ago(time.Second), ago(4*time.Second)
			later.Objects[0].HeldSince, later.Objects[0].WaitedSince = []time.Time{ago(9 * time.Second)}, ago(8*time.Second)
		}), []string{head + "consumer, which holds it (in each snapshot for 9s), runs (at shop/db.go:7)" + others}},
		{"too soon to say, also by the snapshots before", locked, timeouts(func(earlier, later *Snapshot) {
			earlier.Taken, earlier.Objects[0].Oldest = ago(time.Second), ago(4*time.Second)
			later.Objects[0].HeldSince, later.Objects[0].WaitedSince = []time.Time{ago(4 * time.Second)}, ago(8*time.Second)
		}), nil},
		{"another holder", locked, timeouts(func(earlier, _ *Snapshot) { earlier.Objects[0].Holders[0] = 50 }), nil},
		{"a holder that is not known", locked, timeouts(edit(func(s *Snapshot) { s.Objects[0].Holders = nil })), nil},
		{"nobody waited before", locked, timeouts(func(earlier, _ *Snapshot) { earlier.Objects[0].Oldest = time.Time{} }), nil},
		{"too soon to say", locked, timeouts(func(earlier, _ *Snapshot) { earlier.Taken = ago(4 * time.Second) }), nil},
		{"a full channel", full, func(earlier, later *Snapshot) {
			earlier.Taken, later.Fibers[0].Waits = ago(8*time.Second), 9
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(9*time.Second), ago(time.Second)
		}, []string{"channel-full: producer waits to send to orders (full, 64 of 64) for 1s; nothing was received for at " +
			"least 8s; consumer, which was the last to receive from it, runs (at shop/db.go:7)"}},
		{"a ticket", tickets, func(earlier, later *Snapshot) {
			earlier.Taken, later.Fibers[0].Waits = ago(10*time.Second), 9
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(13*time.Second), ago(3*time.Second)
			later.Objects[0].WaitedSince = ago(2 * time.Minute)
		}, []string{"ticket-old: pay waits for the answer of ticket payments for 3s; it was waited for in each snapshot for 2m"}},
		{"a ticket, not for long", tickets, func(earlier, later *Snapshot) {
			earlier.Taken, later.Fibers[0].Waits = ago(10*time.Second), 9
			earlier.Objects[0].Oldest, later.Objects[0].Oldest = ago(13*time.Second), ago(3*time.Second)
			later.Objects[0].WaitedSince = ago(59 * time.Second)
		}, nil},
	})
}

func TestTroubleIsExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"trouble", away, nil, []string{"trouble: remote channel orders has trouble for 12s: the broker is away: connection " +
			"refused; producer waits to send on remote orders (durable, full, 64 of 64)"}},
		{"trouble, while a fiber tries again", away, func(_, later *Snapshot) { later.Fibers[0].Waits++ }, []string{
			"trouble: remote channel orders has trouble for 12s: the broker is away: connection refused; producer waits to " +
				"send on remote orders (durable, full, 64 of 64)"}},
		{"trouble, and no fiber waits", away, edit(func(s *Snapshot) { s.Fibers = s.Fibers[1:] }), []string{
			"trouble: remote channel orders has trouble for 12s: the broker is away: connection refused; no fiber waits for it"}},
		{"trouble, only for fibers of coir", away, edit(func(s *Snapshot) { s.Fibers[0].System = true }), []string{
			"trouble: remote channel orders has trouble for 12s: the broker is away: connection refused; no fiber waits for it"}},
		{"trouble of an object without a name", away, edit(func(s *Snapshot) { s.Objects[0].Name = "" }), []string{
			"trouble: remote channel #11 has trouble for 12s: the broker is away: connection refused; producer waits to send on " +
				"remote orders (durable, full, 64 of 64)"}},
		{"trouble that the object knows", away, edit(func(s *Snapshot) { s.Objects[0].TroubleCertain = true }), []string{
			"certain trouble: remote channel orders has trouble for 12s: the broker is away: connection refused; producer " +
				"waits to send on remote orders (durable, full, 64 of 64)"}},
		{"trouble that the object has just learned", away, func(_, later *Snapshot) {
			later.Objects[0].TroubleCertain = true
		}, []string{
			"trouble: remote channel orders has trouble for 12s: the broker is away: connection refused; producer waits to " +
				"send on remote orders (durable, full, 64 of 64)"}},
		{"trouble that is over", away, func(_, later *Snapshot) {
			later.Objects[0].Trouble, later.Objects[0].TroubleSince = "", time.Time{}
			later.Objects[0].Len = 1
		}, nil},
		{"trouble that is new", away, func(earlier, _ *Snapshot) {
			earlier.Objects[0].TroubleSince = ago(20 * time.Second)
			earlier.Objects[0].Len = 1
		}, nil},
		{"trouble that has just begun", away, edit(func(s *Snapshot) {
			s.Objects[0].TroubleSince, s.Objects[0].Len = ago(time.Second-1), 1
		}), nil},
		{"a remote channel that is full", away, edit(func(s *Snapshot) { s.Objects[0].Trouble = "" }), []string{
			"channel-full: producer waits to send to orders (full, 64 of 64) for 12s; nothing was received from it for at " +
				"least 2s by this process"}},
	})
}

func TestGoneReceiversAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"a receiver that is gone", gone, func(earlier, _ *Snapshot) {
			earlier.Fibers = append(earlier.Fibers, Fiber{ID: 2, Name: "consumer", State: StateRunning})
		}, []string{"receiver-gone: producer waits to send to orders (full, 64 of 64) for 12s; consumer, which was the " +
			"last to receive from it, has ended"}},
		{"a receiver that is long gone", gone,
			nil, []string{"receiver-gone: producer waits to send to orders (full, 64 of 64) " +
				"for 12s; fiber 2, which was the last to receive from it, has ended"}},
		{"a receiver that may be omitted", gone, func(_, later *Snapshot) {
			later.Omitted = 1
			later.Objects[0].Oldest = noon
		}, nil},
		{"a receiver that is gone, not the one before", gone, edit(func(s *Snapshot) {
			s.Objects[0].ReceiverBefore = runs.ID
			s.Objects[0].Oldest = noon
		}), nil},
		{"a receiver that is gone, and the one before", gone, edit(func(s *Snapshot) { s.Objects[0].ReceiverBefore = 3 }),
			[]string{"receiver-gone: producer waits to send to orders (full, 64 of 64) for 12s; fiber 2, which was the last " +
				"to receive from it, has ended"}},
		{"a receiver that is gone, another waits", gone, edit(func(s *Snapshot) {
			s.Objects[0].Receivers = 1
			s.Objects[0].Oldest = noon
		}), nil},
		{"a receiver that is gone, a limit", gone, edit(func(s *Snapshot) {
			s.Fibers[0].Until = noon.Add(time.Second)
			s.Objects[0].Oldest = noon
		}), nil},
		{"a receiver that is gone, in another context", gone, edit(func(s *Snapshot) {
			s.Fibers[0].Foreign = true
			s.Objects[0].Oldest = noon
		}), nil},
		{"a receiver that is gone, after it received", gone,
			func(earlier, _ *Snapshot) { earlier.Objects[0].Received-- }, nil},
		{"a receiver that is gone, a select", gone, edit(func(s *Snapshot) {
			s.Fibers[0].Wait = append(s.Fibers[0].Wait, recv(50))
			s.Objects[0].Oldest = noon
		}), nil},
		{"a receiver that is gone, a new one came", gone, func(earlier, later *Snapshot) {
			earlier.Objects[0].Receiver = 3
			later.Objects[0].Oldest = noon
		}, nil},
		{"a receiver that is gone, just now", gone, func(earlier, later *Snapshot) {
			earlier.Taken = ago(200 * time.Millisecond)
			later.Fibers[0].Since, later.Objects[0].Oldest = ago(time.Second/2), ago(time.Second/2)
		}, nil},
	})
}

func TestGoneHoldersAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"a holder that is gone", leaked, nil, []string{
			"holder-gone: a, b wait to lock mu, the oldest for 3.1s; fiber 50, which holds it, has ended"}},
		{"a holder that is gone, which was there", leaked, func(earlier, _ *Snapshot) {
			earlier.Fibers = append(earlier.Fibers, Fiber{ID: 50, Name: "holder", State: StateRunning})
		}, []string{"holder-gone: a, b wait to lock mu, the oldest for 3.1s; holder, which holds it, has ended"}},
		{"a holder that is gone, another lock", leaked, func(earlier, _ *Snapshot) { earlier.Objects[0].Holders[0] = 99 }, nil},
		{"a holder that may be omitted", leaked, func(_, later *Snapshot) { later.Omitted = 1 }, nil},
		{"a holder that is gone, a semaphore", leaked, edit(func(s *Snapshot) { s.Objects[0].Ends = "release" }), nil},
		{"a holder that is gone, just now", leaked, func(earlier, later *Snapshot) {
			earlier.Taken = ago(200 * time.Millisecond)
			later.Fibers[0].Since, later.Fibers[1].Since = ago(time.Second/2), ago(time.Second/2)
		}, nil},
		{"a holder that is gone, a select and a limit", leaked, edit(func(s *Snapshot) {
			s.Fibers[0].Wait, s.Fibers[1].Until = append(s.Fibers[0].Wait, recv(50)), noon.Add(time.Second)
		}), nil},
	})
}

func TestBlockingCallsAreExplained(t *testing.T) {
	only := func(s *Snapshot) { s.Fibers, s.Workers = s.Fibers[3:4], s.Workers[3:4] }
	testExplain(t, []explainTest{
		{"calls that block", blocked, nil, []string{
			"blocking-calls: scan[0..2] (3 fibers), spawned at app/main.go:8, are blocked in a native wait (such as for a " +
				"native channel) for at least 2s",
			"blocking-calls: dial, spawned at app/main.go:9, is blocked in a system call for at least 2s; dial is at " +
				"net/dial.go:1"}},
		{"several calls that block", blocked, edit(func(s *Snapshot) { s.Fibers[1].Call = "syscall" }, func(s *Snapshot) {
			s.Fibers, s.Workers = s.Fibers[:2], s.Workers[:2]
		}), []string{"blocking-calls: scan[0], scan[1], spawned at app/main.go:8, are in calls that block for at least 2s"}},
		{"calls in coir.Blocking", blocked, edit(func(s *Snapshot) {
			for k := range s.Workers {
				s.Workers[k].State, s.Fibers[k].Since = WorkerStateBlocking, ago(time.Hour)
			}
		}), nil},
		{"a call in coir.Blocking, not before", blocked, func(earlier, later *Snapshot) {
			edit(only)(earlier, later)
			later.Workers[0].State = WorkerStateBlocking
		}, nil},
		{"a call in coir.Blocking, before", blocked, func(earlier, later *Snapshot) {
			edit(only)(earlier, later)
			earlier.Workers[0].State = WorkerStateBlocking
		}, nil},
		{"calls that block, again and again", blocked, func(earlier, later *Snapshot) {
			edit(only)(earlier, later)
			earlier.Fibers[0].State, earlier.Fibers[0].Call = StateRunning, computing
		}, []string{"blocking-calls: dial, spawned at app/main.go:9, is again and again blocked in a system call for at " +
			"least 2s; dial is at net/dial.go:1"}},
		{"calls that block, not at the moment", blocked, func(earlier, later *Snapshot) {
			edit(only)(earlier, later)
			later.Fibers[0].State, later.Fibers[0].Call = StateRunning, computing
		}, []string{"blocking-calls: dial, spawned at app/main.go:9, is again and again blocked in a system call for at " +
			"least 2s; dial is at net/dial.go:1"}},
		{"calls that block, others", blocked, func(_, later *Snapshot) {
			for k := range later.Fibers {
				later.Fibers[k].Waits++
			}
		}, nil},
		{"calls that block, by beats others", blocked, func(earlier, later *Snapshot) {
			edit(only)(earlier, later)
			later.Workers[0].Beats++
		}, nil},
		{"calls that block, too soon to say", blocked,
			func(earlier, _ *Snapshot) { earlier.Taken = ago(time.Millisecond) }, nil},
	})
}

func TestIgnoredCancelsAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"a cancel that is ignored", cancelled, nil, []string{
			"cancel-ignored: the nursery of main was cancelled (signal: interrupt), " +
				"and 3 fibers have not ended: flush is in a call that blocks, or computes; poll[0], poll[1] run"}},
		{"a cancel, and the fiber that waits for the others is of the nursery", cancelled, edit(func(s *Snapshot) {
			s.Fibers = s.Fibers[:3]
			s.Fibers[0].Nursery = 101
			s.Fibers[1].State = StateRunning
		}), []string{"cancel-ignored: the nursery of main was cancelled (signal: interrupt), " +
			"and 2 fibers have not ended: flush, poll[0] run"}},
		{"a cancel in a nursery within", cancelled, edit(func(s *Snapshot) {
			s.Fibers = []Fiber{s.Fibers[0], waiting(2, "inner", join(102)), waiting(3, "leaf", recv(50))}
			s.Fibers[1].Nursery, s.Fibers[2].Nursery = 101, 102
			s.Nurseries = append(s.Nurseries, Nursery{ID: 102, Owner: 2, Parent: 101, Ended: true})
		}), []string{"cancel-ignored: the nursery of inner was cancelled, and 1 fiber has not ended: leaf " +
			"waits to receive from something"}},
		{"a cancel that a fiber has had no time to see", cancelled, edit(func(s *Snapshot) {
			s.Fibers = s.Fibers[:3]
			s.Fibers[1].State, s.Fibers[2].State = StateReady, StatePending
			s.Workers = []Worker{{ID: 1}}
		}), []string{
			"starved: flush is ready to run, and likely has not run for at least 2s"}},
		{"a cancel in a nursery within, whose fibers are about to run", cancelled, func(earlier, later *Snapshot) {
			edit(func(s *Snapshot) {
				s.Fibers = []Fiber{s.Fibers[0], waiting(2, "inner", join(102)), {ID: 3, Name: "leaf", Nursery: 102, State: StateReady}}
				s.Fibers[1].Nursery = 101
				s.Nurseries = append(s.Nurseries, Nursery{ID: 102, Owner: 2, Parent: 101, Ended: true})
			})(earlier, later)
			earlier.Fibers[2].State = StateWaiting
		}, nil},
		{"a cancel, and fibers in line", cancelled, edit(func(s *Snapshot) {
			s.Fibers = []Fiber{s.Fibers[0], inLine(2, "flush"), runs}
			s.Fibers[1].Nursery = 101
		}), nil},
		{"a cancel just now", cancelled,
			func(earlier, _ *Snapshot) { earlier.Nurseries[0].Ended, earlier.Fibers[1].Waits = false, 0 }, nil},
		{"a cancel, too soon to say", cancelled, func(earlier, _ *Snapshot) { earlier.Taken = ago(time.Millisecond) }, nil},
		{"a cancel of fibers of coir", cancelled, edit(func(s *Snapshot) {
			for k := range s.Fibers {
				s.Fibers[k].System = true
			}
		}), nil},
		{"a cancel, and new fibers that clean up", cancelled,
			func(earlier, _ *Snapshot) { earlier.Fibers = earlier.Fibers[:1] }, nil},
	})
}

func TestOldTicketsAreExplained(t *testing.T) {
	testExplain(t, []explainTest{
		{"an old ticket", tickets, nil, []string{"ticket-old: pay waits for the answer of ticket payments for 4m10s"}},
		{"an old ticket without a name", tickets, edit(func(s *Snapshot) { s.Objects[0].Name = "" }), []string{
			"ticket-old: pay waits for the answer of ticket #11 for 4m10s"}},
		{"a young ticket", tickets, edit(func(s *Snapshot) { s.Objects[0].Oldest = ago(59 * time.Second) }), nil},
		{"a new wait for a ticket", tickets, func(_, later *Snapshot) { later.Fibers[0].Waits++ }, nil},
		{"a ticket of coir", tickets, edit(func(s *Snapshot) { s.Fibers[0].System = true }), nil},
		{"another object that is old", tickets, edit(func(s *Snapshot) { s.Objects[0].Kind = "promise" }), nil},
	})
}

// lonely has one fiber, which waits.
var lonely = Snapshot{
	Fibers:  []Fiber{waiting(1, "main", recv(11), recv(12))},
	Objects: []Object{{ID: 11, Kind: "channel", Name: "a"}, {ID: 12, Kind: "channel", Name: "b"}},
}

var blocked = Snapshot{
	Fibers: []Fiber{
		{ID: 1, Name: "scan[0]", State: StateBlocking, Call: "native wait", Spawned: "/src/app/main.go:8"},
		{ID: 2, Name: "scan[1]", State: StateBlocking, Call: "native wait", Spawned: "/src/app/main.go:8"},
		{ID: 3, Name: "scan[2]", State: StateBlocking, Call: "native wait", Spawned: "/src/app/main.go:8"},
		{ID: 4, Name: "dial", State: StateBlocking, Call: "syscall", Spawned: "/src/app/main.go:9", At: "/go/net/dial.go:1"},
		{ID: 5, Name: "poller", State: StateBlocking, Call: "syscall", System: true},
	},
	Workers: []Worker{
		{ID: 1, State: WorkerStateHeld, Fiber: 1}, {ID: 2, State: WorkerStateHeld, Fiber: 2},
		{ID: 3, State: WorkerStateHeld, Fiber: 3}, {ID: 4, State: WorkerStateHeld, Fiber: 4},
		{ID: 5, State: WorkerStateHeld, Fiber: 5},
	},
}

// circle returns a snapshot with a cycle of n fibers.
func circle(n int) (s Snapshot) {
	for k := range n {
		s.Fibers = append(s.Fibers, waiting(uint64(k+1), fmt.Sprintf("f[%d]", k), lock(uint64(n+k+1), fmt.Sprint("m", k))))
		s.Objects = append(s.Objects, mutex(uint64(n+k+1), fmt.Sprint("m", k), uint64((k+1)%n+1)))
	}
	return s
}

// many returns a snapshot with n cycles of two fibers.
func many(n int) (s Snapshot) {
	for k := range 2 * n {
		id := uint64(k)
		s.Fibers = append(s.Fibers, waiting(id+1, fmt.Sprintf("p[%d]", k), lock(id+1001, fmt.Sprintf("x[%d]", k))))
		s.Objects = append(s.Objects, mutex(id+1001, fmt.Sprintf("x[%d]", k), id^1+1))
	}
	return s
}

// fullOnes returns a snapshot with n channels that are full.
func fullOnes(n int) Snapshot {
	s := Snapshot{Fibers: []Fiber{runs}}
	for k := range n {
		id := uint64(200 + k)
		s.Fibers = append(s.Fibers, waiting(id, fmt.Sprintf("p[%d]", k), send(id)))
		s.Objects = append(s.Objects, Object{ID: id, Kind: "channel", Name: fmt.Sprintf("q[%d]", k), Len: 2, Cap: 2,
			Oldest: ago(20*time.Second - time.Duration(k))})
	}
	return s
}

// hogs makes the fiber of busyPool the only one, and says what it does in Go, and since when.
func hogs(call string, since time.Time) change {
	return edit(func(s *Snapshot) {
		s.Fibers = s.Fibers[:1]
		s.Workers[0].Since, s.Fibers[0].Call = since, call
		if call != "running" {
			s.Fibers[0].State = StateBlocking
		}
	})
}

// The fiber that should receive belongs to the problem, after those that wait to send.
func TestFullChannelsHaveTheirReceiver(t *testing.T) {
	x := Explain(pairOf(t, full))[0]
	if want := []uint64{1, 2}; !slices.Equal(x.Fibers, want) {
		t.Errorf("Fibers is %d, not %d", x.Fibers, want)
	}
}

func TestExplanationHasItsFibersAndObjects(t *testing.T) {
	earlier, later := pairOf(t, crossed)
	earlier.Fibers[0].Since, later.Fibers[0].Since = ago(time.Minute), ago(time.Minute)
	later.Fibers = append(later.Fibers, waiting(5, "behind", end(1)))
	earlier.Fibers = append([]Fiber{waiting(5, "behind", end(1))}, earlier.Fibers...) // the order does not matter
	x := Explain(earlier, later)[0]
	if want := []uint64{1, 2, 5}; !slices.Equal(x.Fibers, want) {
		t.Errorf("Fibers is %d, not %d", x.Fibers, want)
	}
	if want := []uint64{12, 11}; !slices.Equal(x.Objects, want) {
		t.Errorf("Objects is %d, not %d", x.Objects, want)
	}
	if want := later.Fibers[1].Since; !x.Since.Equal(want) { // not the time of the older wait, or of the fiber behind
		t.Errorf("Since is %v, not %v", x.Since, want)
	}
}

func TestExplainNothing(t *testing.T) {
	s := &crossed
	for _, got := range [][]Explanation{Explain(nil, nil), Explain(s, nil), Explain(nil, s), Explain(s, s),
		Explain(new(Snapshot), new(Snapshot))} {
		if got != nil {
			t.Errorf("Explain returned %q", lines(got))
		}
	}
}

// TestTheWorstComesFirst: certain explanations come first, then the others by severity, whatever the order of fibers.
func TestTheWorstComesFirst(t *testing.T) {
	var s Snapshot
	base := uint64(0)
	for _, x := range []Snapshot{tickets, blocked, full, busyPool, cancelled, jammed, crossed} {
		base += 1000
		s.Fibers = append(s.Fibers, moved(x, base).Fibers...)
		s.Objects = append(s.Objects, moved(x, base).Objects...)
		s.Nurseries = append(s.Nurseries, moved(x, base).Nurseries...)
		s.Workers = append(s.Workers, moved(x, base).Workers...)
	}
	earlier, later := pairOf(t, s)
	all := Explain(earlier, later)
	var kinds []Problem
	for _, x := range all {
		kinds = append(kinds, x.Kind)
	}
	want := []Problem{
		ProblemDeadlock, ProblemDeadlock, ProblemCancelIgnored, ProblemStarved, ProblemNeverYields, ProblemChannelFull,
		ProblemBlockingCalls, ProblemBlockingCalls, ProblemTicketOld,
	}
	if !slices.Equal(kinds, want) || !all[0].Certain || all[1].Certain {
		t.Errorf("Explain returned\n\t%s", strings.Join(lines(all), "\n\t"))
	}
	for range 20 {
		for _, x := range []*Snapshot{earlier, later} {
			rand.Shuffle(len(x.Fibers), func(i, j int) { x.Fibers[i], x.Fibers[j] = x.Fibers[j], x.Fibers[i] })
			rand.Shuffle(len(x.Objects), func(i, j int) { x.Objects[i], x.Objects[j] = x.Objects[j], x.Objects[i] })
		}
		if got := lines(Explain(earlier, later)); !slices.Equal(got, lines(all)) {
			t.Fatalf("in another order Explain returned\n\t%s", strings.Join(got, "\n\t"))
		}
	}
}

// moved returns a snapshot whose numbers are larger by base.
func moved(s Snapshot, base uint64) (m Snapshot) {
	for _, f := range s.Fibers {
		f.ID, f.Nursery, f.Wait = f.ID+base, f.Nursery+base, slices.Clone(f.Wait)
		for k := range f.Wait {
			for _, id := range []*uint64{&f.Wait[k].Object, &f.Wait[k].Fiber, &f.Wait[k].Nursery} {
				if *id != 0 {
					*id += base
				}
			}
		}
		m.Fibers = append(m.Fibers, f)
	}
	for _, o := range s.Objects {
		o.ID, o.Sender, o.Receiver, o.Holders = o.ID+base, o.Sender+base, o.Receiver+base, slices.Clone(o.Holders)
		for k := range o.Holders {
			o.Holders[k] += base
		}
		m.Objects = append(m.Objects, o)
	}
	for _, n := range s.Nurseries {
		n.ID, n.Owner, n.Parent = n.ID+base, n.Owner+base, n.Parent+base
		m.Nurseries = append(m.Nurseries, n)
	}
	for _, w := range s.Workers {
		w.ID, w.Fiber = w.ID+int(base), w.Fiber+base
		m.Workers = append(m.Workers, w)
	}
	return m
}

// TestTextIsSafe: whatever the names contain, a text is safe for a terminal, and not long.
func TestTextIsSafe(t *testing.T) {
	for _, name := range []string{
		"\x1b[31mred\x1b]0;title\x07", "a\r\nb\x00c", "\u202egnp.exe", "\xff\xfe", "\u2028\u0085\u200b", "\ufffd",
		"<script>alert(1)</script>", strings.Repeat("M", 1<<20), strings.Repeat("\x1b", 1<<20), strings.Repeat("[", 1<<16),
		"worker[99999999999999999999]", "worker[", "[0]", "/", "//", ":",
	} {
		for _, in := range []Snapshot{crossed, jammed, tokens, leaked, full, gone, busyPool, cancelled, tickets, blocked, lonely,
			circle(9), many(9)} {
			earlier, later := pairOf(t, in)
			edit(func(s *Snapshot) {
				for k := range s.Fibers {
					f := &s.Fibers[k]
					f.Name, f.At, f.Spawned = name, name, name
					for k := range f.Wait {
						f.Wait[k].Text = name
					}
				}
				for k := range s.Objects {
					s.Objects[k].Name = name
				}
				for k := range s.Nurseries {
					s.Nurseries[k].Cause = name
				}
			})(earlier, later)
			all := Explain(earlier, later)
			if len(all) == 0 {
				t.Errorf("%.20q: nothing was told", name)
			}
			for _, x := range all {
				bad := func(r rune) bool { return !unicode.IsPrint(r) || r == '\ufffd' }
				if strings.ContainsFunc(x.Text, bad) || len(x.Text) > 3000 {
					t.Errorf("%.20q: Text is %d bytes: %.200q", name, len(x.Text), x.Text)
				}
			}
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 999 * time.Microsecond: "0ms", 120 * time.Millisecond: "120ms", time.Second: "1s",
		3190 * time.Millisecond: "3.1s", 9999 * time.Millisecond: "9.9s", 12900 * time.Millisecond: "12s",
		59 * time.Second: "59s", time.Minute: "1m", 4*time.Minute + 50*time.Second: "4m50s", 14*time.Minute + time.Second: "14m",
		90 * time.Minute: "1h", 47 * time.Hour: "47h", 100 * time.Hour: "4d",
	} {
		if got := (span{d: d}).String(); got != want {
			t.Errorf("%v is %q, not %q", d, got, want)
		}
	}
}
