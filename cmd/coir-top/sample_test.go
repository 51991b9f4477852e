package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

var updating = flag.Bool("update", false, "write the golden files, and the screen in the guide, instead of comparing")

// If asTop is in the environment, the test binary runs coir-top, for tests that start it in a terminal.
const asTop = "TEST_BINARY_IS_COIR_TOP"

func TestMain(m *testing.M) {
	if os.Getenv(asTop) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	time.Local = time.UTC
	var err error
	if scratch, err = os.MkdirTemp("", "coir-top"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// scratch is a directory for files that several tests use.
var scratch string

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updating {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(string(want), "\r\n", "\n"); text != got {
		t.Errorf("%s is not as it should be; if the change is meant, run the test with -update:\n%s", path, got)
	}
}

var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// shop is a dump of a program in which two workers wait for each other's lock, and many fibers wait for the workers.
func shop() *inspect.Dump {
	use := func(text string, object uint64) []snapshot.Wait {
		return []snapshot.Wait{{Kind: snapshot.WaitUse, Text: text, Object: object}}
	}
	waits := func(id uint64, name string, nursery uint64, lasts time.Duration, from string,
		wait ...snapshot.Wait) snapshot.Fiber {
		return snapshot.Fiber{
			ID: id, Name: name, Nursery: nursery, State: snapshot.StateWaiting, Since: ago(lasts), Spawned: from, Wait: wait,
			Waits: id,
		}
	}
	s := &snapshot.Snapshot{
		Taken: noon, Took: 1200 * time.Microsecond,
		Process: snapshot.Process{PID: 4711, Program: "shop", Go: "go1.26.8", Coir: "v0.1.0", Live: 112, Spawned: 40960},
		Nurseries: []snapshot.Nursery{
			{ID: 1, Owner: 1, Children: 7},
			{ID: 2, Owner: 4, Parent: 1, Children: 104, Limit: 200, Deadline: noon.Add(90 * time.Second)},
			{ID: 3, Owner: 6, Parent: 1, Children: 1, Ended: true, Cause: "mail: the server is gone"},
		},
		Fibers: []snapshot.Fiber{
			waits(1, "main", 1, 3*time.Hour, "",
				snapshot.Wait{Kind: snapshot.WaitJoin, Text: "for its children to end", Nursery: 1}),
			waits(2, "worker[0]", 1, 12*time.Second, "shop/orders.go:31", use("to lock stock", 11)...),
			waits(3, "worker[1]", 1, 11500*time.Millisecond, "shop/orders.go:31", use("to lock ledger", 12)...),
			waits(4, "front", 1, 400*time.Millisecond, "shop/main.go:24",
				snapshot.Wait{Kind: snapshot.WaitRecv, Text: "to receive from requests", Object: 14},
				snapshot.Wait{Kind: snapshot.WaitSleep, Text: "until a timer fires"}),
			waits(5, "feed", 1, 10*time.Second, "shop/main.go:26",
				snapshot.Wait{Kind: snapshot.WaitSend, Text: "to send to orders (full, 64 of 64)", Object: 13}),
			{ID: 6, Name: "mail", Nursery: 1, State: snapshot.StateRunning, Spawned: "shop/main.go:28", Waits: 12},
			{ID: 7, Name: "report", Nursery: 1, State: snapshot.StateBlocking, Spawned: "shop/main.go:29", Waits: 1},
			waits(8, "smtp", 3, 2*time.Minute, "shop/mail.go:14",
				snapshot.Wait{Kind: snapshot.WaitEnd, Text: "for report to end", Fiber: 7}),
		},
		Objects: []snapshot.Object{
			{ID: 11, Kind: "mutex", Name: "stock", Holders: []uint64{3}, Ends: "unlock", Waiters: 1,
				Oldest: ago(12 * time.Second)},
			{ID: 12, Kind: "mutex", Name: "ledger", Holders: []uint64{2}, Ends: "unlock", Waiters: 101,
				Oldest: ago(11500 * time.Millisecond)},
			{ID: 13, Kind: "channel", Name: "orders", Len: 64, Cap: 64, High: 64, Sent: 5064, Received: 5000, Sender: 5,
				Receiver: 2, Senders: 1, Oldest: ago(10 * time.Second)},
			{ID: 14, Kind: "channel", Name: "requests", Cap: -1, High: 3, Sent: 800, Received: 800, Receivers: 1,
				Oldest: ago(400 * time.Millisecond)},
		},
		Workers: []snapshot.Worker{
			{ID: 0, State: "running", Fiber: 6, Beats: 100, Queue: 2}, {ID: 1, State: "blocking", Fiber: 7, Beats: 7},
			{ID: 2, State: "idle"},
		},
	}
	for i := range uint64(100) {
		s.Fibers = append(s.Fibers, waits(100+i, fmt.Sprintf("order[%d]", i), 2, time.Duration(i+1)*100*time.Millisecond,
			"shop/orders.go:52", use("to lock ledger", 12)...))
	}
	return &inspect.Dump{Snapshot: s, Explanations: []snapshot.Explanation{
		{Kind: snapshot.ProblemDeadlock, Certain: true, Fibers: []uint64{2, 3}, Objects: []uint64{11, 12},
			Since: ago(11500 * time.Millisecond),
			Text: "worker[0] waits to lock stock, held by worker[1], which waits to lock ledger, held by worker[0]: a " +
				"deadlock, for 11s; spawned at shop/orders.go:31; order[0..99], feed, front, main wait for them, the " +
				"oldest for 3h"},
		{Kind: snapshot.ProblemChannelFull, Fibers: []uint64{5}, Objects: []uint64{13}, Since: ago(10 * time.Second),
			Text: "feed, spawned at shop/main.go:26, waits to send to orders (full, 64 of 64) for 10s; worker[0], which " +
				"was the last to receive from it, waits to lock stock"},
	}}
}

// step is a number of seconds.
type step int

// of returns the dump as it would be that much later: the waits continue, and a channel and a worker have made
// progress.
func (on step) of(dump *inspect.Dump) *inspect.Dump {
	s := dump.Snapshot
	n := uint64(on)
	s.Taken = s.Taken.Add(time.Duration(on) * time.Second)
	s.Process.Spawned += 12 * int64(on)
	s.Objects[3].Sent += 30 * n
	s.Objects[3].Received += 30 * n
	s.Objects[3].Len = int(n) % 3
	s.Workers[0].Beats += 250 * n
	return dump
}

// many returns a dump of n fibers in ten nurseries, which wait for 200 channels.
func many(n int) *inspect.Dump {
	s := &snapshot.Snapshot{Taken: noon}
	s.Process = snapshot.Process{PID: 1, Program: "many", Live: int64(n), Spawned: int64(n)}
	for i := range 10 {
		s.Nurseries = append(s.Nurseries, snapshot.Nursery{ID: uint64(i + 1), Children: n / 10})
	}
	for i := range 200 {
		s.Objects = append(s.Objects, snapshot.Object{
			ID: uint64(i + 1), Kind: "channel", Name: fmt.Sprintf("queue[%d]", i), Cap: 64, Receivers: n / 200,
			Oldest: ago(time.Minute),
		})
	}
	for i := range n {
		s.Fibers = append(s.Fibers, snapshot.Fiber{
			ID: uint64(i + 1), Name: fmt.Sprintf("fiber[%d]", i), Nursery: uint64(i%10 + 1), State: snapshot.StateWaiting,
			Spawned: fmt.Sprintf("many/main.go:%d", 40+i%7), Waits: 1, Since: ago(time.Duration(i%9973) * time.Millisecond),
			Wait: []snapshot.Wait{{Kind: snapshot.WaitRecv, Text: fmt.Sprintf("to receive from queue[%d]", i%200),
				Object: uint64(i%200 + 1)}},
		})
	}
	return &inspect.Dump{Snapshot: s}
}

// showing returns a model that shows a dump, as if it had just come from a program.
func showing(t testing.TB, dump *inspect.Dump) *model {
	t.Helper()
	at, err := newPage("http://localhost:7117/")
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t.Context(), at, time.Second)
	m.take(newData(dump), nil)
	return m
}

// pressed returns the message of a key.
func pressed(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"tab": tea.KeyTab, "backspace": tea.KeyBackspace,
	}
	switch rest, ctrl := strings.CutPrefix(name, "ctrl+"); {
	case ctrl:
		return tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModCtrl}
	case name == "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case name == "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	case special[name] != 0:
		return tea.KeyPressMsg{Code: special[name]}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// press presses keys one after another, and returns the command of the last one.
func (m *model) press(names ...string) (cmd tea.Cmd) {
	for _, name := range names {
		_, cmd = m.Update(pressed(name))
	}
	return cmd
}

type snapshotOf = snapshot.Snapshot

// deep and member are a nursery and its only fiber, which has opened the next one.
func deep(i uint64) snapshot.Nursery {
	return snapshot.Nursery{ID: 1000 + i, Parent: 999 + i, Owner: 99999 + i, Children: 1}
}

func member(i uint64) snapshot.Fiber {
	return snapshot.Fiber{ID: 100000 + i, Name: "deep", Nursery: 1000 + i, State: snapshot.StateReady}
}
