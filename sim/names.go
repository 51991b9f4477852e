package sim

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
)

// This file finds the names that a report uses for channels, locks and other objects. A channel without a name is named
// after the line that made it. If two objects have the same name, a number distinguishes them, and the report says
// where each was made.

// thing is an object that fibers use, and that is neither a fiber nor a nursery.
type thing struct {
	object  int32
	name    string
	label   string // its name in the report, which no other thing of its sort has
	channel bool
	made    site // where it was made, if known
	room    int  // how many values a channel holds; negative if unknown
	first   site // where it was first used, if known
	inside  bool // only functions of the library that perform more than one operation use it
}

// isThing reports whether the object of an operation is neither a fiber nor a nursery nor a selector.
func isThing(k policy.Kind) bool {
	return onChannel(k) || k == policy.Use || k == policy.Leave || k == policy.Clone
}

// nameThings finds all things of the trace, and their names.
func (r *findings) nameThings() {
	var order []int32
	meet := func(op policy.Op, object int32, at site) {
		if object < 0 || !isThing(op.Kind) {
			return
		}
		t := r.things[object]
		if t == nil {
			t = &thing{object: object, name: op.Name, channel: op.Kind != policy.Use, first: at, inside: true, room: -1}
			r.things[object], order = t, append(order, object)
		}
		t.inside = t.inside && (at.call != "" || at.file == "")
	}
	for s := range r.trace {
		e := &r.trace[s]
		meet(e.op, e.object, r.siteOf(s))
		cases, _ := r.casesOf(e.cases)
		for _, c := range cases {
			meet(c.op, c.object, r.siteOf(s))
		}
	}
	for _, m := range r.made {
		if t := r.things[m.object]; t != nil {
			t.made, t.room = m.at, m.room
		}
	}
	slices.Sort(order)
	count, at := map[string]int{}, map[string]int{}
	for _, object := range order {
		t := r.things[object]
		switch {
		case t.name != "":
			t.label = shown(t.name)
		case t.channel && t.made.file != "":
			t.label = fmt.Sprintf("chan@%s:%d", filepath.Base(t.made.file), t.made.line)
		default:
			t.label = fmt.Sprintf("#%d", object)
		}
		count[t.sort()]++
	}
	for _, object := range order {
		t := r.things[object]
		if sort := t.sort(); count[sort] > 1 {
			at[sort]++
			t.label = fmt.Sprintf("%s#%d", t.label, at[sort])
		}
	}
}

// sort returns the same text for two things that only their number can distinguish.
func (t *thing) sort() string { return fmt.Sprint(t.channel, t.label) }

// siteOf returns the place of an operation of the trace.
func (r *findings) siteOf(s int) site {
	if s >= 0 && s < len(r.sites) {
		return r.sites[s]
	}
	return site{}
}

// name returns the report's name for the object of an operation.
func (r *findings) name(op policy.Op, object int32) string {
	if t := r.things[object]; t != nil && isThing(op.Kind) {
		return t.label
	}
	if op.Name != "" {
		return shown(op.Name)
	}
	return fmt.Sprintf("#%d", object)
}

// capacity returns how many values each of n channels may hold, and for one channel also how many it holds at the end,
// in words that follow others.
func (r *findings) capacity(t *thing, n int) string {
	text := fmt.Sprintf(", capacity %d", t.room)
	switch {
	case t.room < 0:
		return ""
	case t.room == 0:
		return ", unbuffered"
	case t.room > mostKept:
		text = ", unbounded"
	}
	if in, ok := r.told.Left(int(t.object)); ok && n == 1 && in <= t.room {
		switch in {
		case 0:
			text += ", empty"
		case t.room:
			text += ", full"
		default:
			text += fmt.Sprintf(", holds %d", in)
		}
	}
	return text
}

// full returns words to append to the name of a channel that a fiber waits to send to, and which is full.
func (r *findings) full(object int32) string {
	if t := r.things[object]; t != nil && t.room > 0 && t.room <= mostKept {
		return fmt.Sprintf(" (capacity %d, full)", t.room)
	}
	return ""
}

const mostNames = 12

// legend returns where the things of a text were made, or first used, if their names do not show that: things without a
// name, or with one that others have too.
func (r *findings) legend(text string) string {
	var b strings.Builder
	var lines []string
	for _, g := range r.groups(func(t *thing) bool {
		return t.label != shown(t.name) && !strings.HasPrefix(t.label, "chan@") && strings.Contains(text, t.label)
	}) {
		t, was := g.first, " was"
		if g.n > 1 {
			was = " were"
		}
		switch {
		case t.made.file != "":
			lines = append(lines, g.labels+was+" made"+t.made.at())
		case t.first.file != "":
			lines = append(lines, g.labels+was+" first used"+t.first.at())
		}
	}
	for i, line := range lines {
		if i == mostNames {
			fmt.Fprintf(&b, "  ... and %s more\n", report.Count(len(lines)-mostNames, "name"))
			break
		}
		fmt.Fprintf(&b, "  %s\n", strings.Replace(line, ", at", " at", 1))
	}
	return b.String()
}

// group is the things that have one name and were made at one place.
type group struct {
	first  *thing
	labels string // the labels of all of them: tokens#1, tokens#2
	n      int
}

// groups returns the things for which of returns true. Things that differ only in their number form one group.
func (r *findings) groups(of func(*thing) bool) (all []group) {
	type key struct{ sort, made, first string }
	at := map[key]int{}
	for _, object := range slices.Sorted(maps.Keys(r.things)) {
		t := r.things[object]
		if !of(t) {
			continue
		}
		k := key{fmt.Sprint(t.channel, t.name), t.made.at(), ""}
		if t.made.file == "" {
			k.first = t.first.at()
		}
		i, ok := at[k]
		if !ok || t.name == "" {
			at[k] = len(all)
			all = append(all, group{t, t.label, 1})
			continue
		}
		all[i].n++
		all[i].labels += ", " + strings.TrimPrefix(t.label, shown(t.name))
	}
	return all
}
