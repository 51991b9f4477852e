package inspect

import (
	"fmt"
	"sync"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// fake is a source whose snapshots are made by hand.
type fake struct {
	mu    sync.Mutex
	s     *snapshot.Snapshot
	stack func(id uint64) string
	took  int    // how many snapshots were taken
	began func() // if not nil, it is called when a snapshot begins
}

func (f *fake) set(s *snapshot.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s = s
}

func (f *fake) taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.took
}

func (f *fake) Snapshot(o snapshot.Options) *snapshot.Snapshot {
	if f.began != nil {
		f.began()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took++
	s := *f.s
	s.Fibers = nil
	for i := range f.s.Fibers {
		one := f.s.Fibers[i]
		if o.Stacks && f.stack != nil {
			one.Stack = f.stack(one.ID)
		}
		if o.Each == nil {
			s.Fibers = append(s.Fibers, one)
		} else if !o.Each(&one) {
			break
		}
		one = snapshot.Fiber{} // the caller must not keep the pointer
	}
	return &s
}

var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// deadlock is a snapshot of a shop: two workers wait for each other's lock, and the feeder waits for room in a full
// channel.
func deadlock() *snapshot.Snapshot {
	use := func(text string, object uint64) []snapshot.Wait {
		return []snapshot.Wait{{Kind: snapshot.WaitUse, Text: text, Object: object}}
	}
	s := &snapshot.Snapshot{
		Taken: noon, Took: 1200 * time.Microsecond,
		Process: snapshot.Process{PID: 4711, Program: "shop", Go: "go1.26.8", Coir: "v0.9.0", Live: 112, Spawned: 40960},
		Nurseries: []snapshot.Nursery{
			{ID: 1, Owner: 1, Children: 7},
			{ID: 2, Owner: 4, Parent: 1, Children: 104, Limit: 200,
				Deadline: noon.Add(90 * time.Second)},
			{ID: 3, Owner: 6, Parent: 1, Children: 1, Ended: true,
				Cause: "mail: the server is gone"},
		},
		Fibers: []snapshot.Fiber{
			{ID: 1, Name: "main", Nursery: 1, Main: true, State: snapshot.StateWaiting, Since: ago(3 * time.Hour), Waits: 1,
				Wait: []snapshot.Wait{{Kind: snapshot.WaitJoin, Text: "for its 7 children", Nursery: 1}}},
			{ID: 2, Name: "worker[0]", Nursery: 1, State: snapshot.StateWaiting, Since: ago(12 * time.Second),
				Spawned: "shop/orders.go:31", Waits: 90,
				Wait: use("to lock stock", 11), At: "shop/orders.go:62"},
			{ID: 3, Name: "worker[1]", Nursery: 1, State: snapshot.StateWaiting, Since: ago(11500 * time.Millisecond),
				Spawned: "shop/orders.go:31", Waits: 88,
				Wait: use("to lock ledger", 12), At: "shop/orders.go:71"},
			{ID: 4, Name: "front", Nursery: 1, State: snapshot.StateWaiting, Since: ago(400 * time.Millisecond),
				Spawned: "shop/main.go:24", Waits: 7,
				Wait: []snapshot.Wait{{Kind: snapshot.WaitRecv, Text: "to receive from requests (empty)", Object: 14},
					{Kind: snapshot.WaitSleep, Text: "until a timer fires"}},
				Until: noon.Add(600 * time.Millisecond)},
			{ID: 5, Name: "feed", Nursery: 1, State: snapshot.StateWaiting, Since: ago(10 * time.Second),
				Spawned: "shop/main.go:26", Waits: 5000,
				Wait: []snapshot.Wait{{Kind: snapshot.WaitSend, Text: "to send to orders (full, 64 of 64)", Object: 13}}},
			{ID: 6, Name: "mail", Nursery: 1, State: snapshot.StateRunning, Spawned: "shop/main.go:28", Waits: 12},
			{ID: 7, Name: "report", Nursery: 1, State: snapshot.StateBlocking, Spawned: "shop/main.go:29", Waits: 1},
			{ID: 8, Name: "smtp", Nursery: 3, State: snapshot.StateWaiting, Since: ago(2 * time.Minute),
				Spawned: "shop/mail.go:14", Waits: 3,
				Wait: []snapshot.Wait{{Kind: snapshot.WaitEnd, Text: "for the end of report", Fiber: 7}}},
		},
		Objects: []snapshot.Object{
			{ID: 11, Kind: "mutex", Name: "stock", Holders: []uint64{3}, Ends: "unlock",
				Waiters: 1, Oldest: ago(12 * time.Second)},
			{ID: 12, Kind: "mutex", Name: "ledger", Holders: []uint64{2}, Ends: "unlock",
				Waiters: 101, Oldest: ago(11500 * time.Millisecond)},
			{ID: 13, Kind: "channel", Name: "orders", Len: 64, Cap: 64, High: 64,
				Sent: 5064, Received: 5000, Sender: 5, Receiver: 2,
				Senders: 1, Oldest: ago(10 * time.Second)},
			{ID: 14, Kind: "channel", Name: "requests", Cap: -1, Sent: 800, Received: 800,
				Receivers: 1, Oldest: ago(400 * time.Millisecond)},
		},
		Workers: []snapshot.Worker{{ID: 0, State: "running", Fiber: 6, Beats: 100},
			{ID: 1, State: "blocking", Fiber: 7, Beats: 7}, {ID: 2, State: "idle"}},
	}
	for i := range uint64(100) {
		s.Fibers = append(s.Fibers, snapshot.Fiber{
			ID: 100 + i, Name: fmt.Sprintf("order[%d]", i), Nursery: 2, State: snapshot.StateWaiting,
			Since:   ago(time.Duration(i+1) * 100 * time.Millisecond),
			Spawned: "shop/orders.go:52", Wait: use("to lock ledger", 12), Waits: 1,
		})
	}
	for i := range uint64(4) {
		s.Fibers = append(s.Fibers, snapshot.Fiber{
			ID: 300 + i, Name: fmt.Sprintf("retry[%d]", i), Nursery: 2, State: snapshot.StateWaiting, Since: ago(time.Second),
			Spawned: "shop/orders.go:58",
			Wait:    []snapshot.Wait{{Kind: snapshot.WaitSleep, Text: fmt.Sprintf("to sleep for %ds", i+1)}},
			Waits:   i + 1, Until: noon.Add(time.Duration(i) * time.Second),
		})
	}
	return s
}

// whyDeadlock explains what is wrong in deadlock.
func whyDeadlock() []snapshot.Explanation {
	return []snapshot.Explanation{
		{Kind: snapshot.ProblemDeadlock, Certain: true, Fibers: []uint64{2, 3}, Objects: []uint64{11, 12},
			Since: ago(11500 * time.Millisecond),
			Text: "worker[0] waits to lock stock (shop/orders.go:62), which worker[1] holds; " +
				"worker[1] waits to lock ledger (shop/orders.go:71), which worker[0] holds"},
		{Kind: snapshot.ProblemChannelFull, Fibers: []uint64{5}, Objects: []uint64{13}, Since: ago(10 * time.Second),
			Text: "orders is full, and worker[0], which received from it last, waits itself"},
	}
}

// many is a snapshot of n fibers in ten nurseries.
func many(n int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Taken: noon, Took: 9 * time.Millisecond,
		Process: snapshot.Process{PID: 1, Program: "many", Live: int64(n), Spawned: int64(n)}}
	states := []snapshot.State{
		snapshot.StateWaiting, snapshot.StateWaiting, snapshot.StateWaiting, snapshot.StateReady, snapshot.StateRunning,
	}
	for i := range 10 {
		s.Nurseries = append(s.Nurseries, snapshot.Nursery{ID: uint64(i + 1), Children: n / 10})
	}
	for i := range 200 {
		s.Objects = append(s.Objects, snapshot.Object{
			ID: uint64(i + 1), Kind: "channel", Name: fmt.Sprintf("queue[%d]", i), Len: i % 65, Cap: 64,
			Receivers: n / 200, Oldest: ago(time.Minute),
		})
	}
	for i := range n {
		f := snapshot.Fiber{
			ID: uint64(i + 1), Name: fmt.Sprintf("fiber[%d]", i), Nursery: uint64(i%10 + 1), State: states[i%len(states)],
			Spawned: fmt.Sprintf("many/main.go:%d", 40+i%7), Waits: uint64(i),
		}
		if f.State == snapshot.StateWaiting {
			f.Since = ago(time.Duration(i%977) * time.Millisecond)
			f.Wait = []snapshot.Wait{{Kind: snapshot.WaitRecv,
				Text: fmt.Sprintf("to receive from queue[%d] (empty)", i%200), Object: uint64(i%200 + 1)}}
		}
		s.Fibers = append(s.Fibers, f)
	}
	return s
}

// payments is a snapshot of a program in which one of many payments has waited for a long time; why explains that. Its
// main fiber waits for an upload that ignores a cancel.
func payments() (s *snapshot.Snapshot, why []snapshot.Explanation) {
	join := func(id uint64) []snapshot.Wait {
		return []snapshot.Wait{{Kind: snapshot.WaitJoin, Text: "for its children to end", Nursery: id}}
	}
	s = &snapshot.Snapshot{
		Taken:   noon,
		Process: snapshot.Process{PID: 1, Program: "payments", Live: 24, Spawned: 24},
		Nurseries: []snapshot.Nursery{
			{ID: 1, Owner: 1, Children: 21}, {ID: 2, Owner: 2, Parent: 1, Children: 2, Ended: true, Cause: "stop"},
		},
		Fibers: []snapshot.Fiber{
			{ID: 1, Name: "main", Nursery: 1, Main: true, State: snapshot.StateWaiting, Since: ago(time.Hour), Wait: join(1)},
			{ID: 2, Name: "sync", Nursery: 1, State: snapshot.StateWaiting, Since: ago(time.Minute), Wait: join(2)},
			{ID: 3, Name: "upload", Nursery: 2, State: snapshot.StateBlocking, Since: ago(time.Minute)},
			{ID: 4, Name: "tick", Nursery: 2, State: snapshot.StateWaiting, Since: ago(time.Second),
				Wait: []snapshot.Wait{{Kind: snapshot.WaitSleep, Text: "for time to pass"}}},
		},
	}
	for i := range uint64(20) {
		lasts := time.Duration(i+1) * 100 * time.Millisecond
		if i == 10 {
			lasts = 168 * time.Second
		}
		s.Fibers = append(s.Fibers, snapshot.Fiber{
			ID: i + 5, Name: fmt.Sprintf("pay[%d]", i), Nursery: 1, State: snapshot.StateWaiting, Since: ago(lasts),
			Wait: []snapshot.Wait{{Kind: snapshot.WaitUse, Text: "for the answer of ticket payments", Object: i + 30}},
		})
	}
	return s, []snapshot.Explanation{
		{Kind: snapshot.ProblemCancelIgnored, Fibers: []uint64{3}, Since: ago(time.Minute),
			Text: "the nursery of sync was cancelled (stop), and 1 fiber has not ended: upload is in a call that blocks"},
		{Kind: snapshot.ProblemTicketOld, Fibers: []uint64{15}, Since: ago(168 * time.Second),
			Text: "pay[10] waits for the answer of ticket payments for 2m48s"},
	}
}
