package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coir-go/coir/snapshot"
)

// The terminal shows, from the top: the program; what is wrong; the views; the rows of the selected view; the keys. No
// information is only in a style or a colour. Red and magenta are readable on light and on dark backgrounds.
const (
	reset    = "\x1b[m"
	bold     = "\x1b[1m"
	reverse  = "\x1b[7m"
	alarming = "\x1b[1;31m" // red
	doubtful = "\x1b[1;35m" // magenta
)

// In a terminal that is narrower than this, the columns do not fit, and draw cuts the lines.
const narrow = 60

func styled(style, text string) string { return style + text + reset }

func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	if m.typing {
		v.Cursor = tea.NewCursor(min(1+columns(m.shown().state().query), m.width-1), m.height-1)
	}
	return v
}

// page returns the number of rows that PageUp and PageDown move.
func (m *model) page() int { return max(1, m.height/2) }

// draw returns the lines of the terminal.
func (m *model) draw() []string {
	lines := m.header()
	below := m.footer()
	if help, ok := m.shown().(*helpScreen); m.data == nil && ok {
		lines = append(append(lines, ""), help.text...)
	} else if m.data == nil {
		lines = append(lines, m.first()...)
	} else {
		lines = m.middle(lines, m.height-len(below))
	}
	for len(lines) < m.height-len(below) && !m.once {
		lines = append(lines, "")
	}
	lines = append(lines[:min(len(lines), max(0, m.height-len(below)))], below...)
	if m.width < narrow {
		for i := range lines {
			lines[i] = ansi.TruncateWc(lines[i], m.width, "")
		}
	}
	return lines
}

// header returns the lines about the program and the numbers of its fibers and workers.
func (m *model) header() []string {
	if m.data == nil {
		return []string{styled(reverse, ends("coir-top", m.from.name(), m.width))}
	}
	p := &m.data.Process
	state := "live " + clock(m.data.Taken)
	switch {
	case !m.from.live():
		state = "taken at " + m.data.Taken.Local().Format("2006-01-02 15:04:05")
	case m.paused:
		state = "PAUSED at " + clock(m.data.Taken)
	case m.problem != nil:
		state = "NO ANSWER since " + clock(m.data.Taken)
	}
	program := p.Program
	if program == "" {
		program = "a program"
	}
	return []string{
		styled(reverse, ends(fmt.Sprintf("%s, process %d", program, p.PID), m.from.name()+"  "+state, m.width)),
		cut(m.data.summary, m.width),
	}
}

// first returns the lines that are shown before the first snapshot.
func (m *model) first() []string {
	if m.problem == nil {
		return append([]string{""}, hang("  ", "waiting for the first answer of "+m.from.name(), m.width)...)
	}
	lines := append([]string{""}, hang("  ", sentence(m.problem.what)+".", m.width)...)
	lines = append(append(lines, ""), hang("  ", sentence(m.problem.do), m.width)...)
	if m.from.live() {
		lines = append(append(lines, ""), hang("  ", "Trying again every "+age(m.interval)+".", m.width)...)
	}
	return lines
}

// sentence returns a text with a capital letter at its beginning, unless it begins with an address or a name.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsAny(word, ":/.") || text == "" {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// middle adds the lines about what is wrong, and the screen.
func (m *model) middle(lines []string, height int) []string {
	s := m.shown()
	lines = append(lines, m.alarms(s, max(1, m.height/3))...)
	if m.height >= 16 {
		lines = append(lines, "")
	}
	at := len(lines) // the index of the line with the views
	lines = append(lines, "")
	intro := s.intro(m, m.width)
	lines = append(lines, intro[:min(len(intro), max(0, height-at-4))]...)
	if head := s.head(m, m.width-3); head != "" {
		lines = append(lines, styled(bold, "   "+head))
	}
	bottom := m.whole(s)
	if m.follow != 0 && !m.once {
		bottom = append(bottom, styled(bold, m.following(m.width)))
	}
	rows, shown := m.rows(s, height-len(bottom)-len(lines))
	lines = append(lines, rows...)
	if at < len(lines) {
		lines[at] = m.titles(s, shown)
	}
	if len(bottom) == 0 {
		return lines
	}
	for len(lines) < height-len(bottom) {
		lines = append(lines, "")
	}
	return append(lines[:max(0, height-len(bottom))], bottom...)
}

// whole returns the whole text of the selected row if its columns cut it, in a few lines.
func (m *model) whole(s screen) []string {
	const (
		most  = 3    // lines
		least = 16   // lines of a terminal that has room for them
		wide  = 4096 // columns in which nothing is cut
	)
	if _, why := s.(*whyScreen); why || m.once || isPlain(s) || s.len() == 0 || m.height < least {
		return nil
	}
	text := func(width int) string {
		row := s.row(m, min(s.state().cursor, s.len()-1), width)[0]
		return strings.Join(strings.Fields(row), " ")
	}
	short := text(max(1, m.width-3))
	if full := text(wide); strings.Contains(short, "…") && full != short {
		lines := hang("   ", full, m.width)
		if len(lines) > most {
			lines[most-1] = cut(lines[most-1]+" …", m.width)
		}
		return lines[:min(len(lines), most)]
	}
	return nil
}

// alarms returns the lines that say why there is no newer snapshot, and what is wrong, which takes at most most lines.
func (m *model) alarms(s screen, most int) []string {
	var lines []string
	if m.problem != nil {
		for i, line := range hang("no answer: ", m.problem.Error(), m.width) {
			if i == 0 {
				line = styled(alarming, "no answer:") + line[len("no answer:"):]
			}
			lines = append(lines, line)
		}
		lines = lines[:min(len(lines), 3)]
		most += len(lines)
	}
	if _, ok := s.(*whyScreen); ok || len(m.over) > 0 {
		return lines
	}
	if len(m.data.why) == 0 {
		text := hang("", m.data.fine, m.width)
		return append(lines, text[:min(len(text), most)]...)
	}
	for i := range m.data.why {
		e := &m.data.why[i]
		text := hang(whyHead(e), whyText(e), m.width)
		room, left := most-len(lines), len(m.data.why)-i
		if left > 1 {
			room-- // for the line that counts the others
		}
		if len(text) > room && i > 0 {
			return append(lines, cut("and "+grouped(left)+" more: e shows them", m.width))
		}
		if len(text) > room {
			text = text[:max(1, room)]
			text[len(text)-1] = cut(text[len(text)-1]+" …", m.width)
		}
		text[0] = colour(e, text[0])
		lines = append(lines, text...)
	}
	return lines
}

// colour colours the first word of an explanation.
func colour(e *snapshot.Explanation, line string) string {
	word, rest, _ := strings.Cut(line, ":")
	if e.Certain {
		return styled(alarming, word+":") + rest
	}
	return styled(doubtful, word+":") + rest
}

// titles returns the line with the views, or with the path to the screen.
func (m *model) titles(s screen, shown string) string {
	l := s.state()
	var info []string
	if all := s.orders(); len(all) > 0 {
		text := "by " + all[l.order]
		if l.backward {
			text += " backward"
		}
		info = append(info, text)
	}
	if l.query != "" && !m.typing {
		info = append(info, "/"+cut(l.query, 20))
	}
	if shown != "" {
		info = append(info, shown)
	}
	var text string
	if len(m.over) == 0 {
		for i, name := range []string{"fibers", "nurseries", "objects", "workers", "wrong"} {
			if i == len(m.views)-1 && len(m.data.why) > 0 {
				name += " (" + grouped(len(m.data.why)) + ")"
			}
			name = fmt.Sprintf("%d %s", i+1, name)
			if i == m.view {
				name = "[" + name + "]"
			} else {
				name = " " + name + " "
			}
			text += name
		}
	} else {
		text = " " + m.views[m.view].title(m)
		for _, o := range m.over {
			text += " > " + o.title(m)
		}
	}
	return styled(bold, ends(text, strings.Join(info, "  "), m.width))
}

// rows returns the visible rows. If not all rows are visible, shown says which ones are.
func (m *model) rows(s screen, height int) (lines []string, shown string) {
	if height <= 0 {
		return nil, ""
	}
	l := s.state()
	n := s.len()
	if n == 0 {
		if l.query != "" {
			return []string{cut("   nothing matches the search", m.width)}, ""
		}
		return nil, ""
	}
	width := max(1, m.width-3)
	_, why := s.(*whyScreen)
	tall := func(i int) int {
		if why {
			return len(s.row(m, i, width))
		}
		return 1
	}
	// The last rows fill the screen; the row of the cursor is visible.
	last := n
	for used := 0; last > 0; last-- {
		if used += tall(last - 1); used > height {
			break
		}
	}
	l.cursor = min(l.cursor, n-1)
	text := isPlain(s)
	if text {
		l.cursor = min(l.cursor, last)
		l.top = l.cursor
	} else {
		l.top = max(0, min(l.top, l.cursor, last))
		for i, used := l.cursor, 0; i >= l.top; i-- {
			if used += tall(i); used > height {
				l.top = min(i+1, l.cursor)
				break
			}
		}
	}
	i := l.top
	for ; i < n && len(lines) < height; i++ {
		row := s.row(m, i, width)
		if text {
			lines = append(lines, row...)
			continue
		}
		lines = append(lines, m.decorate(s, i, row)...)
	}
	if l.top > 0 || i < n {
		shown = fmt.Sprintf("%s-%s of %s", grouped(l.top+1), grouped(i), grouped(n))
	}
	return lines[:min(len(lines), height)], shown
}

func isPlain(s screen) bool {
	switch s.(type) {
	case *fiberScreen, *helpScreen:
		return true
	}
	return false
}

// decorate puts the cursor and the mark before a row.
func (m *model) decorate(s screen, i int, row []string) []string {
	mark := s.mark(m, i)
	here := i == s.state().cursor && !m.once
	first := row[0]
	for k, line := range row {
		row[k] = "   " + line
	}
	switch {
	case here && len(row) == 1:
		row[0] = styled(reverse, left(">"+left(mark, 1)+" "+first, m.width))
	case here:
		row[0] = styled(reverse, ">") + "  " + first
	case mark == certain:
		row[0] = " " + styled(alarming, mark) + " " + first
	case mark == likely:
		row[0] = " " + styled(doubtful, mark) + " " + first
	}
	return row
}

// footer returns the search while it is typed, a message about the last key, or the keys.
func (m *model) footer() []string {
	switch {
	case m.once:
		return nil
	case m.typing:
		return []string{cut("/"+m.shown().state().query, m.width)}
	case m.note != "":
		return []string{styled(bold, cut(m.note, m.width))}
	}
	text := "space pause"
	switch {
	case m.paused:
		text = "space resume"
	case !m.from.live():
		text = ""
	}
	if m.data != nil {
		text = strings.TrimSpace(m.shown().keys() + "  " + text)
	}
	return []string{ends(text, "? keys  q quit", m.width)}
}
