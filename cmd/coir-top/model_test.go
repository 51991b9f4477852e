package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// The screens of a program, in a small and in a large terminal.
func TestScreens(t *testing.T) {
	for name, keys := range map[string][]string{
		"fibers":    nil,
		"by-name":   {"s"},
		"by-object": {"s", "s", "s"},
		"single":    {"g"},
		"search":    {"/", "o", "r", "d", "e", "r", "enter"},
		"group":     {"s", "s", "s", "s", "s", "enter", "down", "down"},
		"fiber":     {"down", "down", "enter"},
		"nurseries": {"2"},
		"folded":    {"2", "down", "down", "down", "down", "down", "left"},
		"objects":   {"3"},
		"channel":   {"3", "s", "s", "s", "s", "enter"},
		"lock":      {"3", "down", "enter"},
		"full":      {"3", "down", "down", "enter"},
		"follow":    {"3", "s", "s", "s", "s", "f", "1"},
		"workers":   {"4"},
		"wrong":     {"e"},
		"keys":      {"?"},
	} {
		for _, window := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 120, Height: 40}} {
			name := fmt.Sprintf("%s-%dx%d", name, window.Width, window.Height)
			t.Run(name, func(t *testing.T) {
				m := showing(t, shop())
				for i := range 10 {
					m.take(newData(step(i+1).of(shop())), nil)
				}
				m.Update(window)
				m.press(keys...)
				fits(t, m)
				golden(t, name+".txt", m.text())
			})
		}
	}
}

// The explanations take at most a third of the terminal. The first one is shown, and the others are counted.
func TestManyExplanations(t *testing.T) {
	dump := shop()
	for range 5 {
		dump.Explanations = append(dump.Explanations, dump.Explanations[1])
	}
	m := showing(t, dump)
	has(t, m.text(), "certain: [deadlock] worker[0]", "\n         the oldest for 3h\n", "likely:  [channel-full] feed", "\nand 5 more: e shows them\n\n[1 fibers]")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 16})
	has(t, m.text(), "certain: [deadlock] worker[0]", "\nand 6 more: e shows them\n\n[1 fibers]")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 10})
	has(t, m.text(), "certain: [deadlock] worker[0]", "a deadlock, for 11s; spawned …\nand 6 more: e shows them\n[1 fibers]")
	m.press("e", "end") // their view shows all of them
	has(t, m.text(), ">  likely:  [channel-full] feed")
	dump.Explanations = dump.Explanations[:1]
	m.Update(answer{data: newData(dump)})
	m.press("1")
	has(t, m.text(), "a deadlock, for 11s; spawned\n         at shop/orders.go:31; order[0..99], feed, front, main wait")
}

// fits checks that the drawn screen has the size of the terminal.
func fits(t *testing.T, m *model) {
	t.Helper()
	lines := m.draw()
	if len(lines) != m.height {
		t.Errorf("%d lines are drawn in a terminal of %d", len(lines), m.height)
	}
	for i, line := range lines {
		if w := ansi.StringWidthWc(line); w > m.width {
			t.Errorf("line %d has %d columns in a terminal of %d: %q", i, w, m.width, line)
		}
		if strings.ContainsAny(line, "\n\r\t") {
			t.Errorf("line %d has control characters: %q", i, line)
		}
	}
}

// Every screen fits in every terminal, however small.
func TestEverySize(t *testing.T) {
	for _, keys := range [][]string{
		nil, {"g"}, {"enter"}, {"down", "down", "enter"}, {"2"}, {"3", "f"}, {"3", "enter"}, {"4"}, {"5"}, {"?"},
		{"/", "x", "y", "z"}, {"3", "down", "down", "f", "enter"},
	} {
		m := showing(t, shop())
		for i := range 3 {
			m.take(newData(step(i+1).of(shop())), nil)
		}
		m.press(keys...)
		for _, lost := range []bool{false, true} {
			if lost {
				m.take(nil, &problem{"nothing listens at localhost", "is the program running?"})
			}
			for h := 1; h < 50; h += 1 + h/4 {
				for w := 1; w < 140; w += 1 + w/5 {
					m.Update(tea.WindowSizeMsg{Width: w, Height: h})
					fits(t, m)
					m.press("down")
					if t.Failed() {
						t.Fatalf("after the keys %q, in %dx%d", keys, w, h)
					}
				}
			}
		}
	}
}

// has checks that a text contains parts, in this order.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	rest := text
	for _, want := range wanted {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("there is no %q in\n%s", want, text)
			return
		}
		rest = after
	}
}

// lacks checks that a text contains none of some parts.
func lacks(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, part := range unwanted {
		if strings.Contains(text, part) {
			t.Errorf("there is a %q in\n%s", part, text)
		}
	}
}

// cursorRow returns the row with the cursor.
func (m *model) cursorRow() string {
	for line := range strings.Lines(m.text()) {
		if strings.HasPrefix(line, ">") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestKeysMoveTheCursor(t *testing.T) {
	m := showing(t, shop())
	m.press("g", "s") // each fiber, by name: feed, front, mail, main, order[0], ...
	for _, step := range []struct{ key, want string }{
		{"", "feed #5"}, {"down", "front #4"}, {"j", "mail #6"}, {"up", "front #4"}, {"k", "feed #5"}, {"up", "feed #5"},
		{"end", "worker[1] #3"}, {"down", "worker[1] #3"}, {"home", "feed #5"}, {"pgdown", "order[8]"}, {"pgup", "feed #5"},
		{"G", "worker[1] #3"}, {"ctrl+b", "order[91]"}, {"ctrl+f", "worker[1] #3"},
	} {
		if step.key != "" {
			m.press(step.key)
		}
		if row := m.cursorRow(); !strings.Contains(row, step.want) {
			t.Errorf("after %q the cursor is at %q, want %q", step.key, row, step.want)
		}
	}
}

// When rows come and go, the cursor stays on its row, unless it was never moved.
func TestTheCursorStaysOnItsRow(t *testing.T) {
	m := showing(t, shop())
	m.press("s")
	for range 3 {
		m.press("down")
	}
	has(t, m.cursorRow(), "main #1")
	without := shop()
	without.Snapshot.Fibers = without.Snapshot.Fibers[:4] // main, worker[0], worker[1], front
	m.take(newData(without), nil)
	has(t, m.cursorRow(), "main #1")
	m.take(newData(shop()), nil)
	has(t, m.cursorRow(), "main #1")
	m.press("home")
	less := shop()
	less.Snapshot.Fibers = append(less.Snapshot.Fibers[:4:4], less.Snapshot.Fibers[5:]...) // without feed, the first
	m.take(newData(less), nil)
	has(t, m.cursorRow(), "front #4")
	m.take(newData(shop()), nil)
	has(t, m.cursorRow(), "feed #5")
}

func TestKeysSelectViews(t *testing.T) {
	m := showing(t, shop())
	for _, step := range []struct{ key, want string }{
		{"2", "[2 nurseries]"}, {"3", "[3 objects]"}, {"4", "[4 workers]"}, {"5", "[5 wrong (2)]"}, {"1", "[1 fibers]"},
		{"tab", "[2 nurseries]"}, {"shift+tab", "[1 fibers]"}, {"shift+tab", "[5 wrong (2)]"}, {"tab", "[1 fibers]"},
		{"e", "[5 wrong (2)]"}, {"?", "what is wrong > keys"}, {"?", "what is wrong > keys"}, {"esc", "[5 wrong (2)]"},
	} {
		m.press(step.key)
		has(t, m.text(), step.want)
	}
}

func TestKeysSort(t *testing.T) {
	m := showing(t, shop())
	has(t, m.text(), "by problem")
	for _, want := range []string{"by name", "by state", "by object", "by age", "by count", "by problem", "by name",
		"by state", "by object", "by age"} {
		m.press("s")
		has(t, m.text(), want)
	}
	has(t, m.cursorRow(), "main #1") // the oldest
	m.press("S")
	has(t, m.text(), "by age backward")
	has(t, m.cursorRow(), "mail #6") // mail does not wait
	m.press("s")
	has(t, m.cursorRow(), "100  order[...]")
	m.press("s", "s", "s")
	has(t, m.cursorRow(), "blocking")
	m.press("s", "s", "s")
	m.press("g") // single fibers have no order by count
	lacks(t, m.text(), "by count")

	m.press("3", "s", "s", "s")
	has(t, m.text(), "by waiting", "mutex ledger")
	m.press("4", "s", "s")
	has(t, m.text(), "by queue", "running")
	m.press("2", "s")
	has(t, m.text(), "this has only one order")
	m.press("down")
	lacks(t, m.text(), "this has only one order")
}

// First come fibers with problems, then those that wait for what others have, then the oldest waits.
func TestWhatIsUrgentComesFirst(t *testing.T) {
	dump := shop()
	dump.Explanations = dump.Explanations[1:] // the full channel
	m := showing(t, dump)
	var rows []string
	for _, line := range strings.Split(m.text(), "\n") {
		for _, name := range []string{"feed #5", "main #1", "worker[0] #2"} {
			if strings.Contains(line, name+" ") && strings.Contains(line, " wait") {
				rows = append(rows, name)
			}
		}
	}
	if got := strings.Join(rows, ", "); !strings.Contains(got, "feed #5, worker[0] #2, main #1") {
		t.Errorf("the rows are in the order %s", got)
	}
	m.press("3")
	if text := m.text(); strings.Index(text, "channel orders") > strings.Index(text, "mutex ledger") ||
		strings.Index(text, "mutex ledger") > strings.Index(text, "channel requests") {
		t.Errorf("the objects are\n%s", text)
	}
}

// Without a problem, the oldest wait is named.
func TestNoProblemIsSaid(t *testing.T) {
	dump := shop()
	dump.Explanations = nil
	m := showing(t, dump)
	has(t, m.text(), "No problem found. The oldest wait: ")
	m.press("e")
	has(t, m.text(), "No problem found. The oldest wait: ")
}

// The words for a pool say how many values are lent, and to whom. In 80 columns the name of what a fiber waits for is
// cut, not the name of the holder.
func TestPoolsHaveTheirOwnWords(t *testing.T) {
	dump := shop()
	s := dump.Snapshot
	s.Fibers[1].Wait = []snapshot.Wait{{Kind: snapshot.WaitRecv, Object: 99, Text: "for a value of the connections to the database"}}
	s.Objects = append(s.Objects, snapshot.Object{ID: 99, Kind: "pool", Name: "conns", Len: 2, Cap: 2, Receivers: 3,
		Holders: []uint64{3}, Oldest: s.Taken.Add(-time.Minute)})
	m := showing(t, dump)
	has(t, m.text(), "waits ", "…, lent to worker[1] #3\n")
	m.press("3")
	has(t, m.text(), "2 of 2 lent to worker[1] #3, 3 wait for a value")
}

// If the columns cut the selected row, all of it is below the rows. The page of an object says since when it is held.
func TestTheSelectedRowIsShownWhole(t *testing.T) {
	dump := shop()
	s := dump.Snapshot
	s.Objects = append(s.Objects, snapshot.Object{ID: 99, Kind: "pool", Name: "conns", Len: 5, Cap: 5, Receivers: 3,
		Holders: []uint64{3, 2, 5, 4, 1}, HeldSince: []time.Time{s.Taken.Add(-time.Minute), {}, s.Taken.Add(-time.Hour), {}, {}},
		Oldest: s.Taken.Add(-time.Minute)})
	m := showing(t, dump)
	m.press("3")
	const whole = "   1m pool conns #99 5 of 5 lent to worker[1] #3, worker[0] #2, feed #5, front\n   #4, main #1, 3 wait for " +
		"a value\n"
	lacks(t, m.text(), whole)
	for range len(m.data.objects) {
		if !strings.Contains(m.cursorRow(), "conns") {
			m.press("down")
		}
	}
	has(t, m.text(), "lent to worker[1] #3, worker[0] #2, fee…", whole)
	m.press("enter")
	has(t, m.text(), "in each snapshot by feed #5 for 1h, by worker[1] #3 for 1m")
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"waits to lock a, held by b #2", 40, "waits to lock a, held by b #2"},
		{"waits to lock the cache, held by b #2", 30, "waits to lock t…, held by b #2"},
		{"waits for a value of it, lent to b #2", 30, "waits for a val…, lent to b #2"},
		{"waits to lock a, held by " + strings.Repeat("b", 80), 30, "waits to lo…, held by bbbbbbb…"},
		{"waits to send to orders", 10, "waits to …"},
	} {
		if got := fit(c.s, c.n); columns(got) > c.n || got != c.want {
			t.Errorf("fit(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func TestSearch(t *testing.T) {
	m := showing(t, shop())
	m.press("/")
	if c := m.View().Cursor; c == nil || c.X != 1 || c.Y != 23 {
		t.Errorf("the cursor of the terminal is at %v", c)
	}
	m.press("L", "e", "d", "q") // while searching, q does not quit
	has(t, m.text(), "nothing matches the search", "\n/Ledq\n")
	m.press("backspace")
	has(t, m.text(), "worker[1] #3", "order[...]", "\n/Led\n")
	lacks(t, m.text(), "feed #5")
	m.press("enter")
	has(t, m.text(), "/Led")
	if m.View().Cursor != nil {
		t.Error("the cursor of the terminal is shown")
	}
	m.press("s") // a key again
	has(t, m.text(), "by name")
	m.press("esc")
	has(t, m.text(), "feed #5")
	m.press("/", "x", "esc")
	has(t, m.text(), "feed #5")
	m.press("/")
	m.Update(tea.PasteMsg{Content: "feed\x1b[31m\n"})
	has(t, m.text(), `/feed\x1b[31m\n`)
	m.press("ctrl+u", "f", "e", "e", "down")
	has(t, m.text(), "/fee")
	m.press("/", "d", "ctrl+c")
	if !m.typing {
		t.Error("ctrl+c ends the search and does not quit")
	}
	m.press("esc", "2", "/", "s", "m", "t", "p", "enter") // the rows above it in the tree stay
	has(t, m.text(), "- run 1", "mail #6: running", "- nursery 3", "smtp #8: waits")
	lacks(t, m.text(), "feed #5")
	m.press("3", "/", "l", "e", "d", "g", "enter")
	has(t, m.text(), "mutex ledger")
	lacks(t, m.text(), "mutex stock")
	m.press("4", "/", "i", "d", "l", "e", "enter")
	lacks(t, m.text(), "report #7")
	m.press("e", "/", "f", "u", "l", "l", "enter")
	has(t, m.text(), "likely:")
	lacks(t, m.text(), "certain:")
	m.press("?", "/")
	has(t, m.text(), "there is nothing to search here")
}

// The user goes from a group to its fibers, to one of them, to the object that it waits for, to the fiber that holds
// the object, and back.
func TestDrillDown(t *testing.T) {
	m := showing(t, shop())
	m.press("s", "s", "s", "s", "s")
	has(t, m.cursorRow(), "100  order[...]")
	m.press("enter")
	has(t, m.text(), "fibers > 100 x order[...]", "order[99] #199")
	m.press("enter")
	has(t, m.text(), "fibers > 100 x order[...] > order[99] #199",
		"waits     to lock ledger, held by worker[0] #2, for 10s",
		"nursery   run 1, 7 fibers", "nursery 2, 104 fibers of at most 200, ends in 1m30s, opened by fr",
		"spawned   shop/orders.go:52")
	m.press("enter")
	has(t, m.text(), "> mutex ledger #12", "held by worker[0] #2, 101 wait, the oldest for 11s",
		"worker[0] #2", "holds it, waits …, held by worker[1] #3")
	for i := 0; i < 200 && !strings.Contains(m.cursorRow(), "worker[0]"); i++ {
		m.press("down")
	}
	m.press("enter")
	has(t, m.text(), "> worker[0] #2", "certain: [deadlock] worker[0] waits to lock stock")
	for range 4 {
		m.press("esc")
	}
	has(t, m.text(), "[1 fibers]")
	m.press("esc")
	has(t, m.text(), "[1 fibers]")

	m.press("e", "enter") // the fibers of an explanation
	has(t, m.text(), "fibers of explanation 1", "worker[0] #2", "worker[1] #3")
	lacks(t, m.text(), "feed #5")
	m.press("4", "enter") // the fiber of a worker
	has(t, m.text(), "workers > mail #6", "state     running")
	m.press("enter")
	has(t, m.text(), "there is nothing to open here")
	m.press("esc", "end", "enter")
	has(t, m.text(), "there is nothing to open here")
}

func TestTheTreeFolds(t *testing.T) {
	m := showing(t, shop())
	m.press("2")
	has(t, m.text(), "- run 1", "100 x order[...]: wait to lock ledger")
	m.press("enter")
	has(t, m.text(), "+ run 1")
	lacks(t, m.text(), "main #1:", "order[...]:")
	m.press("right")
	has(t, m.text(), "- run 1", "main #1")
	m.press("down", "left") // to the nursery of the fiber
	has(t, m.cursorRow(), "- run 1")
	m.press("left")
	has(t, m.text(), "+ run 1")
	m.press("enter", "down", "down", "down", "down", "down", "down", "enter")
	has(t, m.text(), "nurseries > 100 x order[...]", "order[99] #199")
}

func TestFollow(t *testing.T) {
	m := showing(t, shop())
	m.press("s", "f") // feed waits for orders
	m.take(newData(step(1).of(shop())), nil)
	has(t, m.text(), "follows channel orders #13: 64/64, sent 0/s, received 0/s  ██")
	m.press("f")
	lacks(t, m.text(), "follows")
	m.press("3", "end", "f")
	m.take(newData(step(2).of(shop())), nil)
	has(t, m.text(), "follows channel requests #14: 2/any, sent 30/s, received 30/s  ▁▅█")
	m.press("2") // also in other views
	has(t, m.text(), "follows channel requests #14")
	without := step(3).of(shop())
	without.Snapshot.Objects = without.Snapshot.Objects[:3]
	m.take(newData(without), nil)
	has(t, m.text(), "follows channel requests #14: no fiber waits for it now, last 2/any")
	for i := range mostPoints {
		without := step(4 + i).of(shop())
		without.Snapshot.Objects = without.Snapshot.Objects[:3]
		m.take(newData(without), nil)
	}
	has(t, m.text(), "follows object #14, which has not been seen for a long time")
	m.press("4", "f")
	has(t, m.text(), "there is nothing here to follow")
}

// The rates of a restarted program do not depend on the old process.
func TestRatesBeginAgain(t *testing.T) {
	m := showing(t, shop())
	m.take(newData(step(1).of(shop())), nil)
	m.press("3")
	has(t, m.text(), "30      30")
	again := step(2).of(shop())
	again.Snapshot.Process.PID++
	m.take(newData(again), nil)
	lacks(t, m.text(), "30      30")
}

func TestPause(t *testing.T) {
	m := showing(t, shop())
	if cmd := m.press("space"); cmd != nil {
		t.Error("a pause begins with a request")
	}
	has(t, m.text(), "PAUSED at 12:00:00", "space resume")
	m.asking = true
	if _, cmd := m.Update(answer{data: newData(step(5).of(shop()))}); cmd != nil {
		t.Error("a request follows in a pause")
	}
	has(t, m.text(), "PAUSED at 12:00:00") // a late answer changes nothing
	if _, cmd := m.Update(due{m.timers}); cmd != nil {
		t.Error("a request follows in a pause")
	}
	if cmd := m.press("r"); cmd == nil {
		t.Error("r makes no request in a pause")
	}
	if _, cmd := m.Update(answer{data: newData(step(3).of(shop()))}); cmd != nil {
		t.Error("a request follows in a pause")
	}
	has(t, m.text(), "PAUSED at 12:00:03")
	if cmd := m.press("p"); cmd == nil {
		t.Error("no request follows a pause")
	}
	if cmd := m.press("r"); cmd != nil {
		t.Error("two requests at the same time")
	}
	old := due{m.timers}
	_, cmd := m.Update(answer{data: newData(step(5).of(shop()))})
	if cmd == nil {
		t.Fatal("no timer follows an answer")
	}
	has(t, m.text(), "live 12:00:05")
	if _, cmd := m.Update(old); cmd != nil {
		t.Error("a timer from before the pause counts")
	}
	if _, cmd := m.Update(due{m.timers}); cmd == nil {
		t.Error("the newest timer does not count")
	}
}

func TestQuit(t *testing.T) {
	for _, key := range []string{"q", "ctrl+c"} {
		cmd := showing(t, shop()).press(key)
		if cmd == nil {
			t.Fatalf("%s does not quit", key)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", key)
		}
	}
	if cmd := showing(t, shop()).press("ctrl+z"); cmd == nil {
		t.Error("ctrl+z does not suspend")
	}
}

// Each key can be pressed before there is any data.
func TestKeysBeforeTheFirstAnswer(t *testing.T) {
	at, _ := newPage("http://localhost:7117/")
	for _, key := range []string{
		"1", "2", "3", "4", "5", "tab", "shift+tab", "e", "?", "esc", "backspace", "down", "up", "pgdown", "pgup", "home",
		"end", "s", "S", "/", "r", "enter", "g", "f", "left", "right", "x", "space", "p",
	} {
		m := newModel(t.Context(), at, time.Second)
		m.press(key)
		fits(t, m)
		if key == "?" {
			has(t, m.text(), "1 2 3 4 5    fibers, nurseries")
		}
	}
}

// Without colours and styles no information is lost, because the marks and the cursor are characters.
func TestStylesOnlyRepeat(t *testing.T) {
	m := showing(t, shop())
	m.press("g", "/", "w", "o", "r", "k", "e", "r", "enter")
	has(t, m.text(), "certain: [deadlock] worker[0] waits", ">!    12s  worker[0] #2", " !    11s  worker[1] #3")
}

// A snapshot can be wrong: nurseries in a cycle, or very deep; numbers that belong to nothing; fibers without a
// nursery.
func TestWrongSnapshots(t *testing.T) {
	wrong := shop()
	s := wrong.Snapshot
	s.Nurseries[1].Parent, s.Nurseries[1].Owner = 2, 100 // it is a member of itself
	s.Fibers[5].Nursery = 99
	s.Objects[0].Holders = []uint64{12345}
	s.Workers[0].Fiber = 12345
	wrong.Explanations[0].Fibers = []uint64{12345}
	for i := range uint64(3 * mostDeep) {
		s.Nurseries = append(s.Nurseries, deep(i))
		s.Fibers = append(s.Fibers, member(i))
	}
	m := showing(t, wrong)
	for _, keys := range []string{"1", "2", "2 end", "3", "3 enter", "4", "4 enter", "5", "5 enter"} {
		m.press(strings.Fields(keys)...)
		fits(t, m)
	}
	m.press("2", "/", "9", "9", "9", "enter")
	fits(t, m)
	empty := showing(t, &inspect.Dump{Snapshot: new(snapshotOf)})
	for _, key := range []string{"1", "2", "3", "4", "5"} {
		empty.press(key, "enter", "f", "down", "left", "s")
		fits(t, empty)
	}
}

// A fiber that an explanation names has its own row, and a group shows the age of its youngest wait.
func TestNamedFibersAreNotGrouped(t *testing.T) {
	dump := shop()
	dump.Explanations = append(dump.Explanations, snapshot.Explanation{
		Kind: snapshot.ProblemTicketOld, Fibers: []uint64{199}, Text: "order[99] waits",
	})
	m := showing(t, dump)
	has(t, m.text(), "\n>!            12s          worker[0] #2", "\n ?            10s          order[99] #199  wait",
		"\n      100ms..9.9s      99  order[...]      wait")
	m.press("2")
	has(t, m.text(), "100ms..9.9s        99 x order[...]: wait to lock", "10s        order[99] #199: waits to lock")
	m.press("1", "s", "s", "s", "s", "s", "enter") // the group has only the others
	if text := m.text(); strings.Contains(text, "order[99]") || !strings.Contains(text, "order[98]") {
		t.Errorf("the group is\n%s", text)
	}
}

// The page of a fiber offers to open the object, fiber or nursery that the fiber waits for, if there is one.
func TestEnterOpensWhatAFiberWaitsFor(t *testing.T) {
	for _, test := range []struct {
		fiber  uint64
		offers string
		opens  string // the title
	}{
		{1, "\nenter its children  r", " > main #1 > fibers of nursery 1"},
		{2, "\nenter its object  r", " > worker[0] #2 > mutex stock #11"},
		{8, "\nenter that fiber  r", " > smtp #8 > report #7"},
	} {
		m := showing(t, shop())
		m.open(&fiberScreen{number: test.fiber})
		has(t, m.text(), test.offers)
		m.press("enter")
		has(t, m.text(), test.opens)
		if n := m.shown().len(); test.fiber == 1 && n != 6 {
			t.Errorf("%d rows are there, not those of 6 children", n)
		}
	}
	m := showing(t, shop())
	m.open(&fiberScreen{number: 6}) // it runs
	has(t, m.text(), "\nr read again  ")
	m.press("enter")
	has(t, m.text(), "there is nothing to open here")
}

// The page of a fiber in a call that blocks says what the call waits for.
func TestThePageOfABlockingCall(t *testing.T) {
	m := showing(t, shop())
	m.open(&fiberScreen{number: 7})
	m.Update(opened{id: 7, fiber: &snapshot.Fiber{
		ID: 7, State: snapshot.StateBlocking, At: "shop/report.go:5", Stack: "goroutine 9 [chan receive]:\nmain.report()",
	}})
	has(t, m.text(), "is at     shop/report.go:5, in chan receive")
}

// Goroutines that are not fibers have rows like fibers, a part of the tree, and a count of their own.
func TestGoroutines(t *testing.T) {
	dump := shop()
	for n := range uint64(2) {
		dump.Snapshot.Fibers = append(dump.Snapshot.Fibers, snapshot.Fiber{
			ID: snapshot.FirstGoroutine + 34 + n, Name: fmt.Sprintf("handler=/pay[%d]", 34+n), State: snapshot.StateGoroutine,
			Since: ago(time.Second), Waits: 3, Wait: []snapshot.Wait{{Kind: snapshot.WaitSend, Text: "to send to pay", Object: 13}},
		})
	}
	dump.Snapshot.Objects[0].Holders = []uint64{snapshot.FirstGoroutine + 34, snapshot.FirstGoroutine + 50}
	m := showing(t, dump)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	has(t, m.text(), "108 fibers: ", "; 2 waiting goroutines; 3 workers")
	m.press("g", "/", "h", "a", "n", "d", "l", "e", "r", "enter")
	has(t, m.text(), " handler=/pay[34]  waits to send to pay")
	m = showing(t, dump)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	m.press("2", "end")
	has(t, m.text(), "other goroutines that wait", "2 x handler=/pay[...]: wait to send to pay")
	m.press("3")
	has(t, m.text(), "held by handler=/pay[34], goroutine[50]")
}

// Objects without names are one row, which can be opened, and so are the fibers that wait for them.
func TestObjectsWithoutNames(t *testing.T) {
	s := &snapshot.Snapshot{Taken: noon, Process: snapshot.Process{Live: 31}}
	for id := range uint64(31) {
		s.Fibers = append(s.Fibers, snapshot.Fiber{ID: id + 1, Name: "handler", Nursery: 1, State: snapshot.StateWaiting,
			Since: ago(time.Duration(id) * time.Second), Waits: 1, Wait: []snapshot.Wait{
				{Kind: snapshot.WaitUse, Object: 1000 + id, Text: fmt.Sprintf("for the promise #%d", 1000+id)}}})
		s.Objects = append(s.Objects, snapshot.Object{ID: 1000 + id, Kind: "promise", Waiters: 1,
			Oldest: ago(time.Duration(id) * time.Second)})
	}
	s.Fibers = append(s.Fibers, snapshot.Fiber{ID: 999, Name: "reader", Nursery: 1, State: snapshot.StateBlocking, Call: "IO wait"})
	why := []snapshot.Explanation{{Kind: snapshot.ProblemAllWaiting, Text: "they wait", Fibers: []uint64{7}, Objects: []uint64{1006}}}
	m := showing(t, &inspect.Dump{Snapshot: s, Explanations: why})
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 50})
	has(t, m.text(), "30  handler", "wait for the promise #1000 or others without a name", "blocking in IO wait")
	m.press("3")
	has(t, m.text(), "promise #1006", "30 promises without a name", "30 wait")
	if strings.Contains(m.text(), "#1000") {
		t.Errorf("the screen is\n%s", m.text())
	}
	m.press("down", "enter")
	has(t, m.text(), "promise #1030", "promise #1005", "promise #1000")
	m.press("enter")
	has(t, m.text(), "handler")
}
