package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// data is a snapshot with indexes. It is not changed after newData returns it, except for fiber.find.
type data struct {
	*snapshot.Snapshot
	why     []snapshot.Explanation
	fine    string // what is shown if there is no explanation
	summary string // the numbers of fibers in each state, and of workers
	alike   *snapshot.Groups

	all       []fiber // the fibers in the order of the snapshot
	fibers    map[uint64]*fiber
	objects   map[uint64]*snapshot.Object
	nurseries map[uint64]*snapshot.Nursery
	members   map[uint64][]*fiber            // by nursery, ordered by number
	owned     map[uint64][]*snapshot.Nursery // by the fiber that opened them
	told      map[uint64]string              // the marks of objects that explanations mention
}

// fiber is a fiber with data for sorting and searching.
type fiber struct {
	*snapshot.Fiber
	named  string // its name and its number
	stem   string // its name without the index
	index  uint64
	object *snapshot.Object // the first object that it waits for, or nil
	told   string           // the mark of the fiber
	urgent int              // its place in the order by problem: see urgency
	find   string           // the text that a search looks at, in lower case; empty until it is needed
}

// The marks of fibers and objects that an explanation mentions.
const (
	certain = "!"
	likely  = "?"
)

// newData cleans a dump, and indexes it.
func newData(dump *inspect.Dump) *data {
	cleanDump(dump)
	s := dump.Snapshot
	d := &data{
		Snapshot: s, why: dump.Explanations, alike: snapshot.NewGroups(dump.Explanations),
		all:       make([]fiber, len(s.Fibers)),
		fibers:    make(map[uint64]*fiber, len(s.Fibers)),
		objects:   make(map[uint64]*snapshot.Object, len(s.Objects)),
		nurseries: make(map[uint64]*snapshot.Nursery, len(s.Nurseries)),
		members:   map[uint64][]*fiber{},
		owned:     map[uint64][]*snapshot.Nursery{},
		told:      map[uint64]string{},
	}
	for i := range s.Objects {
		d.objects[s.Objects[i].ID] = &s.Objects[i]
	}
	for i := range s.Fibers {
		f := &d.all[i]
		f.Fiber = &s.Fibers[i]
		if f.named = f.Name; f.State != snapshot.StateGoroutine { // the name of a goroutine has its number
			f.named = strings.TrimSpace(f.Name + " " + number(f.ID))
		}
		f.stem, f.index = snapshot.Stem(f.Name)
		for k := 0; k < len(f.Wait) && f.object == nil; k++ {
			f.object = d.objects[f.Wait[k].Object]
		}
		d.fibers[f.ID] = f
		d.members[f.Nursery] = append(d.members[f.Nursery], f)
	}
	for _, of := range d.members {
		slices.SortFunc(of, func(a, b *fiber) int { return cmp.Compare(a.ID, b.ID) })
	}
	for i := range s.Nurseries {
		n := &s.Nurseries[i]
		d.nurseries[n.ID] = n
		d.owned[n.Owner] = append(d.owned[n.Owner], n)
	}
	for i := len(d.why) - 1; i >= 0; i-- { // certain explanations come first, and their marks take precedence
		mark := likely
		if d.why[i].Certain {
			mark = certain
		}
		for _, id := range d.why[i].Fibers {
			if f := d.fibers[id]; f != nil {
				f.told = mark
			}
		}
		for _, id := range d.why[i].Objects {
			d.told[id] = mark
		}
	}
	for i := range d.all {
		f := &d.all[i]
		f.urgent = urgency(f.told, f.object)
	}
	d.summary, d.fine = d.counts(), snapshot.NoProblem(s)
	return d
}

// urgency returns a number that is lower for what people should see first: certain problems, likely ones, and waits for
// what others have.
func urgency(mark string, o *snapshot.Object) int {
	switch {
	case mark == certain:
		return 0
	case mark == likely:
		return 1
	case o != nil && o.Contended():
		return 2
	}
	return 3
}

// since returns the time from t until the snapshot was taken, as text, or "" if t is unknown.
func (d *data) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return age(d.Taken.Sub(t))
}

// named returns the name and the number of a fiber.
func (d *data) named(id uint64) string {
	if f := d.fibers[id]; f != nil {
		return f.named
	}
	return number(id)
}

// number returns the number of a fiber or a goroutine.
func number(id uint64) string {
	if id >= snapshot.FirstGoroutine {
		return "goroutine[" + strconv.FormatUint(id-snapshot.FirstGoroutine, 10) + "]"
	}
	return "#" + strconv.FormatUint(id, 10)
}

// matches reports whether the text shown for a fiber contains a query, which must be in lower case.
func (d *data) matches(f *fiber, query string) bool {
	if f.find == "" {
		f.find = strings.ToLower(f.named + " " + d.doing(f, false) + " " + f.Spawned + " " + f.At)
	}
	return strings.Contains(f.find, query)
}

// list returns the names of fibers as text.
func (d *data) list(ids []uint64) string {
	const most = 10
	var names []string
	for _, id := range ids[:min(len(ids), most)] {
		names = append(names, d.named(id))
	}
	if more := len(ids) - most; more > 0 {
		names = append(names, "and "+grouped(more)+" more")
	}
	return strings.Join(names, ", ")
}

// doing describes what a fiber does. If many is set, the text is for several fibers that do the same.
func (d *data) doing(f *fiber, many bool) string {
	if len(f.Wait) == 0 {
		if in := f.Blocked(); in != "" {
			return string(f.State) + " in " + in
		}
		return string(f.State)
	}
	text := "waits "
	if many {
		text = "wait "
	}
	const most = 4
	for i := range f.Wait[:min(len(f.Wait), most)] {
		if i > 0 {
			text += ", or "
		}
		text += d.waitText(&f.Wait[i])
	}
	if more := len(f.Wait) + f.More - most; more > 0 {
		text += fmt.Sprintf(", or %s others", grouped(more))
	}
	return text
}

// waitText describes a wait in words that can follow "waits".
func (d *data) waitText(w *snapshot.Wait) string {
	if o := d.objects[w.Object]; o != nil && len(o.Holders) > 0 {
		return w.Text + d.heldBy(o)
	}
	return w.Text
}

// pool is the kind of pools.
const pool = snapshot.KindPool

// The words between an object and its holders.
const (
	heldBy = ", held by "
	lentTo = ", lent to "
)

// heldBy says who holds an object that has holders, in words that follow others.
func (d *data) heldBy(o *snapshot.Object) string {
	if o.Kind == pool {
		return lentTo + d.list(o.Holders)
	}
	return heldBy + d.list(o.Holders)
}

func objectName(o *snapshot.Object) string {
	return strings.TrimSpace(strings.TrimSpace(o.Kind+" "+o.Name) + " #" + strconv.FormatUint(o.ID, 10))
}

// waiting returns the number of fibers that wait for an object.
func waiting(o *snapshot.Object) int { return o.Senders + o.Receivers + o.Waiters }

// held describes which fibers hold an object and how many wait for it.
func (d *data) held(o *snapshot.Object) string {
	var parts []string
	if o.Closed {
		parts = append(parts, "closed")
	}
	if len(o.Holders) > 0 && o.Kind != pool {
		parts = append(parts, strings.TrimPrefix(d.heldBy(o), ", "))
	}
	if o.Kind == pool {
		text := grouped(o.Len) + " of " + grouped(o.Cap) + " lent"
		if len(o.Holders) > 0 {
			text += " to " + d.list(o.Holders)
		}
		parts = append(parts, text)
	}
	receive := " to receive"
	if o.Kind == pool {
		receive = " for a value"
	}
	for _, w := range []struct {
		n    int
		what string
	}{{o.Senders, " to send"}, {o.Receivers, receive}, {o.Waiters, ""}} {
		switch {
		case w.n == 1:
			parts = append(parts, "1 waits"+w.what)
		case w.n > 1:
			parts = append(parts, grouped(w.n)+" wait"+w.what)
		}
	}
	return strings.Join(parts, ", ")
}

// isChannel reports whether an object holds values that are sent and received.
func isChannel(o *snapshot.Object) bool { return o.Kind == "channel" || o.Kind == "remote channel" }

// fill returns the length and the capacity of a channel.
func fill(o *snapshot.Object) string {
	switch {
	case !isChannel(o):
		return ""
	case o.Cap < 0:
		return grouped(o.Len) + "/any"
	}
	return grouped(o.Len) + "/" + grouped(o.Cap)
}

// nurseryText describes a nursery.
func (d *data) nurseryText(n *snapshot.Nursery) string {
	text := "nursery "
	if n.Parent == 0 {
		text = "run "
	}
	text += strconv.FormatUint(n.ID, 10) + ", " + count(n.Children, "fiber")
	if n.Limit > 0 {
		text += " of at most " + grouped(n.Limit)
	}
	if !n.Deadline.IsZero() {
		if left := n.Deadline.Sub(d.Taken); left >= 0 {
			text += ", ends in " + age(left)
		} else {
			text += ", should have ended " + age(-left) + " ago"
		}
	}
	if n.Ended {
		text += ", cancelled: " + cmp.Or(n.Cause, "cause not known")
	}
	return text
}

// counts returns the summary.
func (d *data) counts() string {
	states := map[snapshot.State]int{}
	for i := range d.Fibers {
		states[d.Fibers[i].State]++
	}
	var parts []string
	for _, s := range []snapshot.State{
		snapshot.StateWaiting, snapshot.StateReady, snapshot.StateRunning, snapshot.StateBlocking,
		snapshot.StateOutside, snapshot.StatePending,
	} {
		if states[s] > 0 {
			parts = append(parts, grouped(states[s])+" "+string(s))
		}
	}
	goroutines := states[snapshot.StateGoroutine]
	text := count(len(d.Fibers)-goroutines+d.Omitted, "fiber") + ": " + cmp.Or(strings.Join(parts, ", "), "none to show")
	if d.Omitted > 0 {
		text += ", " + grouped(d.Omitted) + " not shown"
	}
	if goroutines > 0 {
		text += "; " + count(goroutines, "waiting goroutine")
	}
	if len(d.Workers) == 0 {
		return text
	}
	idle := 0
	for i := range d.Workers {
		if d.Workers[i].State == snapshot.WorkerStateIdle {
			idle++
		}
	}
	return text + "; " + count(len(d.Workers), "worker") + ", " + grouped(idle) + " idle"
}

// group is one fiber, or several that do the same.
type group struct {
	*fiber          // the first fiber
	n        int    // the number of fibers
	oldest   *fiber // the fiber that has waited longest
	youngest *fiber // the fiber that has waited for the shortest time
	key      string // the key of the group; empty for a fiber that is not grouped
	mark     string // the mark, if an explanation mentions one of the fibers
	urgent   int    // the place of the first of the fibers in the order by problem
	various  bool   // they wait for different objects, which have no names
}

func single(f *fiber) group {
	return group{fiber: f, n: 1, oldest: f, youngest: f, mark: f.told, urgent: f.urgent}
}

// name returns the name of the fiber, or the common part of the names of several.
func (g *group) name() string {
	switch {
	case g.n == 1:
		return g.named
	case g.stem != g.Name:
		return g.stem + "[...]"
	}
	return g.Name
}

// spread reports whether the oldest wait is long, and the youngest is much shorter.
func (d *data) spread(g *group) bool {
	lasts := d.Taken.Sub(g.oldest.Since)
	return !g.oldest.Since.IsZero() && lasts >= time.Second && d.Taken.Sub(g.youngest.Since) < lasts/2
}

// lasts returns the age of the oldest wait of a group, and if the ages differ much, also of the youngest.
func (d *data) lasts(g *group) string {
	if d.spread(g) {
		return d.since(g.youngest.Since) + ".." + d.since(g.oldest.Since)
	}
	return d.since(g.oldest.Since)
}

// The widths of a column with one age, and of a column with two: those of the youngest and the oldest wait.
const (
	ageWidth  = 6
	agesWidth = 2*ageWidth + len("..")
)

// groups groups the fibers that do the same. Groups are in the order of their first fibers. A fiber for which alone
// returns true is not grouped.
func (d *data) groups(fibers []*fiber, alone func(*fiber) bool) []group {
	var all []group
	at := map[string]int{}
	var key []byte
	for _, f := range fibers {
		if alone(f) {
			all = append(all, single(f))
			continue
		}
		key = d.alike.AppendKey(key[:0], f.Fiber)
		i, ok := at[string(key)]
		if !ok {
			one := single(f)
			one.key = string(key)
			at[one.key] = len(all)
			all = append(all, one)
			continue
		}
		all[i].add(f)
	}
	return all
}

// add adds a fiber to a group.
func (g *group) add(f *fiber) {
	g.n++
	if older(f.Since, g.oldest.Since) < 0 {
		g.oldest = f
	}
	if f.Since.After(g.youngest.Since) { // an unknown time is zero
		g.youngest = f
	}
	if g.mark != certain && f.told != "" {
		g.mark = f.told
	}
	g.urgent = min(g.urgent, f.urgent)
	g.various = g.various || f.object != g.object && f.object.Name == ""
}
