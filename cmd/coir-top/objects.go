package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/snapshot"
)

// objectsScreen lists the objects that fibers wait for, such as channels and locks.
type objectsScreen struct {
	list
	rows   []*snapshot.ObjectGroup
	widest int    // the width of the widest name
	of     string // the key of the group that is shown, or empty
}

func (s *objectsScreen) title(*model) string {
	if s.of != "" {
		return "objects without a name"
	}
	return "objects"
}
func (s *objectsScreen) orders() []string {
	return []string{"problem", "name", "kind", "waiting", "rate", "age"}
}
func (s *objectsScreen) searches() bool             { return true }
func (s *objectsScreen) keys() string               { return "enter open  s sort  / search  f follow" }
func (s *objectsScreen) intro(*model, int) []string { return nil }
func (s *objectsScreen) len() int                   { return len(s.rows) }

func (s *objectsScreen) id(i int) rowID {
	if o := s.rows[i]; o.N > 1 {
		return rowID{'o', 0, o.Key}
	}
	return rowID{'o', s.rows[i].ID, ""}
}

func (s *objectsScreen) build(m *model) {
	d := m.data
	query := s.wanted()
	s.rows, s.widest = s.rows[:0], 0
	for _, o := range s.shown(d, query != "") {
		if query == "" || match(query, groupName(o), d.held(&o.Object)) {
			s.rows = append(s.rows, o)
			s.widest = max(s.widest, columns(groupName(o)))
		}
	}
	compare := []func(a, b *snapshot.ObjectGroup) int{
		func(a, b *snapshot.ObjectGroup) int {
			return cmp.Or(cmp.Compare(urgency(d.told[a.ID], &a.Object), urgency(d.told[b.ID], &b.Object)),
				older(a.Oldest, b.Oldest))
		},
		func(a, b *snapshot.ObjectGroup) int { return strings.Compare(a.Name, b.Name) },
		func(a, b *snapshot.ObjectGroup) int { return strings.Compare(a.Kind, b.Kind) },
		func(a, b *snapshot.ObjectGroup) int { return cmp.Compare(waiting(&b.Object), waiting(&a.Object)) },
		func(a, b *snapshot.ObjectGroup) int { return cmp.Compare(m.past.busy(b.ID), m.past.busy(a.ID)) },
		func(a, b *snapshot.ObjectGroup) int { return older(a.Oldest, b.Oldest) },
	}[s.order]
	slices.SortFunc(s.rows, func(a, b *snapshot.ObjectGroup) int {
		return cmp.Or(s.direction(compare(a, b)), cmp.Compare(a.ID, b.ID))
	})
}

// shown returns the objects to show: those of the group of the screen, or all, in groups unless each is wanted.
func (s *objectsScreen) shown(d *data, each bool) (rows []*snapshot.ObjectGroup) {
	groups := d.alike.Objects(d.Objects)
	if s.of == "" && !each {
		for i := range groups {
			rows = append(rows, &groups[i])
		}
		return rows
	}
	for i := range d.Objects {
		o := &d.Objects[i]
		if s.of == "" || d.alike.ObjectKey(o) == s.of {
			rows = append(rows, &snapshot.ObjectGroup{Object: *o, N: 1})
		}
	}
	return rows
}

// groupName returns the name of an object, or words for several.
func groupName(o *snapshot.ObjectGroup) string {
	if o.N > 1 {
		return o.Title()
	}
	return objectName(&o.Object)
}

// busy returns the number of values sent to and received from an object per second. It is negative if unknown.
func (p *past) busy(id uint64) float64 {
	if t := p.objects[id]; t != nil {
		return t.sent.per + t.received.per
	}
	return -2
}

func (s *objectsScreen) head(_ *model, width int) string {
	return s.line(width, "AGE", "OBJECT", "WHO WAITS", right("LEN/CAP", 9)+right("SENT/S", 8)+right("RECV/S", 8))
}

// line joins columns. Objects other than channels have no numbers, which leaves more room for the column WHO WAITS.
func (s *objectsScreen) line(width int, age, name, who, numbers string) string {
	text := right(age, 6) + "  " + left(name, min(max(s.widest, 6), max(12, width*3/10))) + "  "
	if numbers != "" {
		numbers = "  " + numbers
	}
	return text + left(who, width-columns(text)-columns(numbers)) + numbers
}

func (s *objectsScreen) row(m *model, i, width int) []string {
	o := s.rows[i]
	numbers := ""
	if t := m.past.objects[o.ID]; t != nil && isChannel(&o.Object) && o.N == 1 {
		numbers = right(fill(&o.Object), 9) + right(rate(t.sent.per), 8) + right(rate(t.received.per), 8)
	}
	return []string{s.line(width, m.data.since(o.Oldest), groupName(o), m.data.held(&o.Object), numbers)}
}

func (s *objectsScreen) mark(m *model, i int) string { return m.data.told[s.rows[i].ID] }

func (s *objectsScreen) enter(_ *model, i int) screen {
	if o := s.rows[i]; o.N > 1 {
		return &objectsScreen{of: o.Key}
	}
	return &fibersScreen{grouped: true, number: s.rows[i].ID}
}

func (s *objectsScreen) object(_ *model, i int) *snapshot.Object {
	if s.rows[i].N > 1 {
		return nil
	}
	return &s.rows[i].Object
}

// objectAt returns an object of the snapshot, or its last known state if the snapshot does not contain it.
func (m *model) objectAt(id uint64) *snapshot.Object {
	if o := m.data.objects[id]; o != nil {
		return o
	}
	if t := m.past.objects[id]; t != nil {
		return &t.object
	}
	return nil
}

// objectText describes an object in a few lines.
func objectText(m *model, id uint64, width int) []string {
	d := m.data
	o := m.objectAt(id)
	if o == nil {
		return []string{cut("  No fiber waits for it, so the snapshot does not have it.", width)}
	}
	var lines []string
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, hang(label(name), text, width)...)
		}
	}
	if d.objects[id] == nil {
		add("", "No fiber waits for it now, so the snapshot does not have it. This is what was seen last.")
	}
	add("state", d.held(o)+oldest(d, o))
	add("held", d.heldSince(o))
	if isChannel(o) {
		add("has", channelText(d, o))
	}
	add("note", o.Note)
	add("made at", o.Made)
	if o.Trouble != "" {
		add("trouble", o.Trouble+", for "+d.since(o.TroubleSince))
	}
	t := m.past.objects[id]
	if t == nil || len(t.points) < 2 {
		return lines
	}
	curve := func(name string, values []float64, most float64, scale string) {
		head := label(name)
		lines = append(lines, head+spark(values, most, width-columns(head)-columns(scale)-2)+"  "+scale)
	}
	values, most := t.curve(func(p point) float64 { return p.level })
	switch {
	case !isChannel(o) || o.Cap == 0:
		curve("waiting", values, most, "at most "+grouped(int(most)))
	case o.Cap > 0:
		curve("length", values, float64(o.Cap), "of "+grouped(o.Cap))
	default:
		curve("length", values, most, "at most "+grouped(int(most)))
	}
	if isChannel(o) {
		values, most := t.curve(func(p point) float64 { return p.sent })
		curve("sent", values, most, "at most "+rate(most)+"/s")
		values, most = t.curve(func(p point) float64 { return p.received })
		curve("received", values, most, "at most "+rate(most)+"/s")
	}
	return lines
}

// heldSince says for how long the object has had its holders in each snapshot, the longest first, if that is known.
func (d *data) heldSince(o *snapshot.Object) string {
	var all []int
	for i, t := range o.HeldSince[:min(len(o.HeldSince), len(o.Holders))] {
		if !t.IsZero() {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return o.HeldSince[a].Compare(o.HeldSince[b]) })
	var texts []string
	for _, i := range all[:min(len(all), 4)] {
		texts = append(texts, fmt.Sprintf("by %s for %s", d.named(o.Holders[i]), d.since(o.HeldSince[i])))
	}
	if len(texts) == 0 {
		return ""
	}
	return "in each snapshot " + strings.Join(texts, ", ")
}

// oldest describes the age of the oldest wait for an object.
func oldest(d *data, o *snapshot.Object) string {
	if o.Oldest.IsZero() {
		return ""
	}
	return ", the oldest for " + d.since(o.Oldest)
}

// channelText describes the contents of a channel, and the fibers that last used it.
func channelText(d *data, o *snapshot.Object) string {
	text := grouped(o.Len) + " of " + grouped(o.Cap)
	switch {
	case o.Cap < 0:
		text = grouped(o.Len) + ", no limit"
	case o.Cap == 0:
		text = "no buffer"
	}
	if o.Cap != 0 {
		text += ", at most " + grouped(o.High) + " so far"
	}
	var counted []string
	for _, c := range o.Counters() {
		if c.Main || c.Value > 0 {
			counted = append(counted, grouped(c.Value)+" "+c.Words)
		}
	}
	text += "; " + strings.Join(counted, ", ")
	if o.Sender != 0 {
		text += "; last sent by " + d.user(o.Sender)
	}
	if o.Receiver != 0 {
		text += "; last received by " + d.user(o.Receiver)
	}
	return text
}

// user returns the name of a fiber that has used a channel.
func (d *data) user(id uint64) string {
	if d.fibers[id] == nil {
		return d.named(id) + ", which has ended"
	}
	return d.named(id)
}

// following returns the line about the object that is followed.
func (m *model) following(width int) string {
	o := m.objectAt(m.follow)
	t := m.past.objects[m.follow]
	if o == nil || t == nil {
		return cut(fmt.Sprintf("follows object #%d, which has not been seen for a long time", m.follow), width)
	}
	values, most := t.curve(func(p point) float64 { return p.level })
	text := "follows " + cut(objectName(o), width/3) + ": "
	if t.unseen > 0 {
		text += "no fiber waits for it now, last "
	}
	if isChannel(o) && o.Cap != 0 {
		text += fill(o)
		most = max(most, float64(o.Cap))
	} else {
		text += grouped(waiting(o)) + " waiting"
	}
	if t.unseen == 0 && isChannel(o) {
		text += ", sent " + cmp.Or(rate(t.sent.per), "?") + "/s, received " + cmp.Or(rate(t.received.per), "?") + "/s"
	}
	text += "  "
	return cut(text+spark(values, most, width-columns(text)), width)
}
