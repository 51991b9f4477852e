package snapshot

import (
	"strconv"
	"strings"
)

// Groups tells which fibers of a snapshot do the same, and which objects are alike, for lists that show such fibers or
// objects as one line.
type Groups struct {
	told  map[uint64]string // the explanations that name a fiber
	about map[uint64]bool   // the objects that an explanation names
}

// mostTold is the least number of fibers of an explanation that does not divide groups. None of so many fibers is
// special, and the JSON of package inspect has only the first of them.
const mostTold = 100

// NewGroups returns the groups of a snapshot. why lists what is wrong in the snapshot. An explanation with fewer than
// 100 fibers divides groups: no group has both fibers of the explanation and other fibers.
func NewGroups(why []Explanation) *Groups {
	type step struct {
		from string
		by   int
	}
	g := &Groups{told: map[uint64]string{}, about: map[uint64]bool{}}
	known := map[step]string{} // fibers with the same explanations share a text
	for i := range why {
		e := &why[i]
		for _, id := range e.Objects {
			g.about[id] = true
		}
		if len(e.Fibers) >= mostTold {
			continue
		}
		for _, id := range e.Fibers {
			s := step{g.told[id], i}
			text, ok := known[s]
			if !ok { // the text is the same in the next snapshot
				text = s.from + string(e.Kind) + "#" + strconv.FormatUint(e.Fibers[0], 10) + "\x00"
				known[s] = text
			}
			g.told[id] = text
		}
	}
	return g
}

// AppendKey appends the key of the group of a fiber to b. The fibers of a group were spawned on one line, are in the
// same state on the same line, wait for the same (of coir or of Go), and have the same name apart from the index; see
// [Stem]. Objects without a name count as the same. The key is the same in later snapshots, as long as all of that is.
func (g *Groups) AppendKey(b []byte, f *Fiber) []byte {
	stem, _ := Stem(f.Name)
	for _, part := range [...]string{stem, string(f.State), f.Spawned, f.At, f.Blocked()} {
		b = append(append(b, part...), 0)
	}
	for i := range f.Wait {
		text, rest := f.Wait[i].split()
		b = append(append(append(b, text...), rest...), 0)
	}
	if told := g.told[f.ID]; told != "" {
		b = append(append(b, 0), told...)
	}
	return b
}

// split returns the text of a wait in two parts. If the text has the number of the object in place of a name, neither
// part has the number.
func (w *Wait) split() (text, rest string) {
	if w.Object == 0 {
		return w.Text, ""
	}
	var digits [24]byte
	number := strconv.AppendUint(append(digits[:0], '#'), w.Object, 10)
	i := strings.Index(w.Text, string(number))
	end := i + len(number)
	if i < 0 || end < len(w.Text) && w.Text[end] != ' ' {
		return w.Text, ""
	}
	return w.Text[:i+1], w.Text[end:]
}

// ObjectGroup is an object, or several objects without names that lists show as one line.
type ObjectGroup struct {
	Object        // if there are several, the first one, with the sums of the numbers of all, and the oldest wait
	N      int    // how many there are
	Key    string // if there are several, the same in later snapshots; otherwise empty
}

// leastAlike is the least number of objects of a group.
const leastAlike = 3

// Objects groups the objects of a snapshot that have no name, are of one kind, and were made on one line, if that is
// known. No group has an object that an explanation is about, that has trouble, or that shows its tickets. The groups
// are in the order of their first objects.
func (g *Groups) Objects(all []Object) []ObjectGroup {
	n := map[string]int{}
	for i := range all {
		if k := g.ObjectKey(&all[i]); k != "" {
			n[k]++
		}
	}
	groups := make([]ObjectGroup, 0, len(all))
	at := map[string]int{}
	for i := range all {
		o := &all[i]
		k := g.ObjectKey(o)
		if n[k] < leastAlike {
			groups = append(groups, ObjectGroup{Object: *o, N: 1})
			continue
		}
		p, ok := at[k]
		if !ok {
			at[k] = len(groups)
			one := *o
			one.Holders, one.Note = nil, ""
			groups = append(groups, ObjectGroup{Object: one, N: 1, Key: k})
			continue
		}
		groups[p].add(o)
	}
	return groups
}

// ObjectKey returns the key of the group of an object, or "" if it is in none. The group may have too few objects to be
// shown as one line.
func (g *Groups) ObjectKey(o *Object) string {
	if o.Name != "" || g.about[o.ID] || o.Trouble != "" || len(o.Tickets) > 0 {
		return ""
	}
	return o.Kind + "\x00" + o.Made
}

// add adds an object to a group.
func (g *ObjectGroup) add(o *Object) {
	g.N++
	g.Len, g.Cap, g.Closed = g.Len+o.Len, g.Cap+o.Cap, g.Closed && o.Closed
	g.Sent, g.Received, g.Dropped = g.Sent+o.Sent, g.Received+o.Received, g.Dropped+o.Dropped
	g.Senders, g.Receivers, g.Waiters = g.Senders+o.Senders, g.Receivers+o.Receivers, g.Waiters+o.Waiters
	g.Oldest = first(g.Oldest, o.Oldest)
}

// Title returns words for a group of several objects: 312 promises without a name.
func (g *ObjectGroup) Title() string {
	kind := g.Kind
	switch {
	case kind == "":
		kind = "objects"
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"), strings.HasSuffix(kind, "ch"):
		kind += "es"
	default:
		kind += "s"
	}
	return strconv.Itoa(g.N) + " " + kind + " without a name"
}

// Stem returns the name of a fiber without its index, and the index: worker and 3 for worker[3]. A name without an
// index is its own stem.
func Stem(name string) (stem string, index uint64) {
	if i := strings.LastIndexByte(name, '['); i > 0 && strings.HasSuffix(name, "]") {
		if n, err := strconv.ParseUint(name[i+1:len(name)-1], 10, 64); err == nil {
			return name[:i], n
		}
	}
	return name, 0
}
