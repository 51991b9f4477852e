package main

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coir-go/coir/snapshot"
)

// model is the state of the program. All its methods run on one goroutine. An operation that waits is a tea.Cmd, whose
// result comes back as a message.
type model struct {
	ctx      context.Context // ends with the program
	from     source
	interval time.Duration

	width, height int
	once          bool // it draws once, without keys and cursor

	data    *data // the newest snapshot, or nil
	past    past
	problem *problem // why the last request failed, or nil
	asking  bool     // a request has not been answered
	timers  int      // the number of timers started; only the last one counts
	paused  bool
	wanted  bool // show the next answer even if paused

	views  []screen // the keys 1 to 5 select a view
	view   int
	over   []screen // screens opened above the view; the last one is shown
	typing bool     // the search is being typed
	follow uint64   // the object that is followed, or 0
	note   string   // a message about the last key
}

func newModel(ctx context.Context, from source, interval time.Duration) *model {
	return &model{
		ctx: ctx, from: from, interval: interval, width: 80, height: 24,
		views: []screen{
			&fibersScreen{grouped: true}, &treeScreen{shut: map[uint64]bool{}}, &objectsScreen{}, &workersScreen{},
			&whyScreen{},
		},
	}
}

// The messages.
type (
	// answer is the result of a request for a snapshot.
	answer struct {
		data *data
		err  error
		took time.Duration
	}
	// due says that it is time for the next request.
	due struct{ timer int }
	// opened is a fiber with its stack.
	opened struct {
		id    uint64
		fiber *snapshot.Fiber
		err   error
	}
)

func (m *model) Init() tea.Cmd { return m.ask() }

// ask requests a snapshot, unless a request is under way.
func (m *model) ask() tea.Cmd {
	if m.asking {
		return nil
	}
	m.asking = true
	ctx, from := m.ctx, m.from
	return func() tea.Msg {
		begin := time.Now()
		d, err := from.snapshot(ctx)
		return answer{d, err, time.Since(begin)}
	}
}

// later returns the time to wait before the next request. Requests begin an interval apart, but the pause between them
// is at least as long as the last request took.
func later(interval, took time.Duration) time.Duration { return max(interval-took, took) }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), max(1, msg.Height)
		m.build()
		return m, tea.ClearScreen // the terminal has moved the old text, and would keep parts of it
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.typing {
			m.search(m.shown().state().query + msg.Content)
		}
	case answer:
		m.asking = false
		if !m.paused || m.wanted {
			m.take(msg.data, msg.err)
		}
		m.wanted = false
		if m.paused || !m.from.live() {
			return m, nil
		}
		m.timers++
		next := due{m.timers}
		return m, tea.Tick(later(m.interval, msg.took), func(time.Time) tea.Msg { return next })
	case due:
		if msg.timer == m.timers && !m.paused {
			return m, m.ask()
		}
	case opened:
		for _, s := range m.over {
			if p, ok := s.(*fiberScreen); ok && p.number == msg.id {
				p.read(msg)
			}
		}
		m.build()
	}
	return m, nil
}

// take shows the snapshot d, or err if there is none.
func (m *model) take(d *data, err error) {
	if err != nil {
		p, ok := err.(*problem)
		if !ok {
			p = &problem{clean(err.Error(), textRunes), "it tries again"}
		}
		m.problem = p
		return
	}
	m.problem, m.data = nil, d
	m.past.see(d)
	m.build()
}

// shown returns the screen that is shown.
func (m *model) shown() screen {
	if n := len(m.over); n > 0 {
		return m.over[n-1]
	}
	return m.views[m.view]
}

// build makes the rows of the shown screen. If the user has moved the cursor, it stays on its row.
func (m *model) build() {
	s := m.shown()
	if _, ok := s.(*helpScreen); m.data == nil && !ok {
		return
	}
	s.build(m)
	l := s.state()
	if l.moved {
		for i := range s.len() {
			if s.id(i) == l.at {
				l.cursor = i
				break
			}
		}
	}
	l.cursor = max(0, min(l.cursor, s.len()-1))
}

// move moves the cursor.
func (m *model) move(by int) {
	s := m.shown()
	l := s.state()
	l.cursor = max(0, min(l.cursor+by, s.len()-1))
	l.moved = l.cursor > 0
	if l.moved {
		l.at = s.id(l.cursor)
	}
}

// open shows another screen above the one that is shown.
func (m *model) open(s screen) tea.Cmd {
	m.over = append(m.over, s)
	var cmd tea.Cmd
	if p, ok := s.(*fiberScreen); ok {
		cmd = p.ask(m)
	}
	m.build()
	return cmd
}

// goTo shows one of the views.
func (m *model) goTo(view int) {
	m.view, m.over = view, nil
	m.build()
}

// search sets the text to search for.
func (m *model) search(query string) {
	l := m.shown().state()
	l.query, l.cursor, l.top, l.moved = clean(query, nameRunes), 0, 0, false
	m.build()
}

// key performs the action of a key.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.note = ""
	name := msg.String()
	switch name {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	s := m.shown()
	l := s.state()
	if m.typing {
		m.typeKey(msg, l)
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "1", "2", "3", "4", "5":
		m.goTo(int(name[0] - '1'))
	case "tab":
		m.goTo((m.view + 1) % len(m.views))
	case "shift+tab":
		m.goTo((m.view + len(m.views) - 1) % len(m.views))
	case "e":
		m.goTo(len(m.views) - 1)
	case "?":
		if _, ok := s.(*helpScreen); !ok {
			return m.open(&helpScreen{})
		}
	case "esc", "backspace":
		m.back(l)
	case "down", "j":
		m.move(1)
	case "up", "k":
		m.move(-1)
	case "pgdown", "ctrl+f":
		m.move(m.page())
	case "pgup", "ctrl+b":
		m.move(-m.page())
	case "home":
		m.move(-s.len())
	case "end", "G":
		m.move(s.len())
	case "space", "p":
		return m.pause()
	case "s", "S":
		m.sort(s, l, name == "S")
	case "/":
		if m.data == nil || !s.searches() {
			m.note = "there is nothing to search here"
			break
		}
		m.typing = true
	case "r":
		if p, ok := s.(*fiberScreen); ok {
			return p.ask(m)
		}
		m.wanted = true
		return m.ask()
	case "enter", "g", "f", "left", "right":
		if m.data != nil {
			return m.act(name, s, l)
		}
	}
	return nil
}

// typeKey handles a key while the search is being typed.
func (m *model) typeKey(msg tea.KeyPressMsg, l *list) {
	switch name := msg.String(); {
	case name == "enter":
		m.typing = false
	case name == "esc":
		m.typing = false
		m.search("")
	case name == "backspace":
		if letters := []rune(l.query); len(letters) > 0 {
			m.search(string(letters[:len(letters)-1]))
		}
	case name == "ctrl+u":
		m.search("")
	case name == "down" || name == "up":
		m.typing = false
		m.key(msg)
	case msg.Text != "":
		m.search(l.query + msg.Text)
	}
}

// back ends the search, or closes the screen that was opened last.
func (m *model) back(l *list) {
	switch {
	case l.query != "":
		m.search("")
	case len(m.over) > 0:
		m.over = m.over[:len(m.over)-1]
		m.build()
	}
}

// pause stops or resumes the updates.
func (m *model) pause() tea.Cmd {
	if !m.from.live() {
		m.note = "this is a file: it does not change"
		return nil
	}
	if m.paused = !m.paused; m.paused {
		return nil
	}
	return m.ask()
}

// sort changes the order of the rows to the next one, or if turn is set, reverses it.
func (m *model) sort(s screen, l *list, turn bool) {
	all := s.orders()
	switch {
	case len(all) == 0:
		m.note = "this has only one order"
	case turn:
		l.backward = !l.backward
	default:
		l.order, l.backward = (l.order+1)%len(all), false
	}
	m.build()
}

// act performs the action of a key on the row with the cursor.
func (m *model) act(name string, s screen, l *list) tea.Cmd {
	switch name {
	case "g":
		f, ok := s.(*fibersScreen)
		if !ok {
			m.note = "only fibers are grouped"
			return nil
		}
		f.grouped = !f.grouped
		m.build()
		return nil
	case "left", "right":
		if t, ok := s.(*treeScreen); ok && s.len() > 0 {
			t.fold(m, l.cursor, name == "left")
		}
		return nil
	}
	if s.len() == 0 {
		return nil
	}
	if t, ok := s.(*treeScreen); ok && name == "enter" && t.rows[l.cursor].nursery != nil {
		t.fold(m, l.cursor, !t.shut[t.rows[l.cursor].nursery.ID])
		return nil
	}
	if name == "enter" {
		next := s.enter(m, l.cursor)
		if next == nil {
			m.note = "there is nothing to open here"
			return nil
		}
		return m.open(next)
	}
	switch o := s.object(m, l.cursor); {
	case o == nil:
		m.note = "there is nothing here to follow"
	case m.follow == o.ID:
		m.follow = 0
	default:
		m.follow = o.ID
	}
	return nil
}

// match reports whether one of the texts contains the query, which must be in lower case. It ignores the case of the
// texts.
func match(query string, texts ...string) bool {
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), query) {
			return true
		}
	}
	return false
}
