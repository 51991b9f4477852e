package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coir-go/coir/snapshot"
)

// Objects with the same kind and the same name are a group, whose numbers are added up. Each group has series, so there
// must not be too many: the names come from the program, which may make them from its input.
//
// A group keeps its place while it can, also when no fiber waits for its objects, so that its series do not come and
// go. The totals of a channel are those of all its channels, dead ones too. They must not fall when a channel is not in
// a snapshot, and count nothing twice when it is back. So a group adds what a channel has counted since it was last
// seen, and keeps the last counts of channels, of mostChannels at most. For a forgotten channel it undercounts rather
// than counting twice: see names.since.

const (
	mostSeries    = 1000 // of a scrape
	fixedSeries   = 100  // of them, those that no name has; TestSeriesAreCounted checks that there are not more
	channelSeries = 8    // of a group of channels: the rows of table with one label, name
	objectSeries  = 2    // of a group of other objects: the rows with the labels kind and name

	namedSeries = mostSeries - fixedSeries - channelSeries - objectSeries // those of the groups other are set apart

	mostLabel    = 128              // bytes of a label
	mostChannels = 10_000           // channels whose counts are kept
	placeKept    = 10 * time.Minute // for how long a group that is not seen keeps its place, if places are missing
)

const (
	channelKind = "channel"
	unnamed     = "unnamed"
	other       = "other"
)

// key has the labels that the objects of a group have in common.
type key struct{ kind, name string }

// group is a group of objects.
type group struct {
	key
	seen time.Time // when a fiber last waited for one of them

	// Since the first scrape that saw it.
	sent, received, dropped uint64

	now
}

// now holds what one scrape has found of a group.
type now struct {
	objects                     int
	length, capacity            int
	unbounded                   bool // so it has no capacity
	senders, receivers, waiting int
	oldest                      time.Time
}

// counts are those of a channel when it was last seen.
type counts struct {
	sent, received, dropped uint64
	scrape                  int64
}

// names holds the groups.
type names struct {
	groups  map[key]*group
	series  int  // of the groups, but for the two called other
	refused bool // a group has found no place

	channels  map[uint64]counts // by the number of the channel
	forgotten uint64            // the highest number of a channel whose counts were not kept
	scrape    int64
}

func newNames() names { return names{groups: map[key]*group{}, channels: map[uint64]counts{}} }

// group counts the objects of a snapshot, and returns the groups in a fixed order.
func (n *names) group(objects []snapshot.Object, at time.Time) []*group {
	n.scrape++
	if n.refused {
		n.refused = false
		maps.DeleteFunc(n.groups, func(k key, g *group) bool {
			idle := k != k.rest() && at.Sub(g.seen) >= placeKept
			if idle {
				n.series -= k.series()
			}
			return idle
		})
	}
	for _, g := range n.groups {
		g.now = now{}
	}
	for i := range objects {
		o := &objects[i]
		g := n.place(key{label(o.Kind), label(o.Name)})
		g.seen = at
		g.add(o)
		if o.Kind == channelKind {
			d := n.since(o)
			g.sent, g.received, g.dropped = g.sent+d.sent, g.received+d.received, g.dropped+d.dropped
		}
	}
	if len(n.channels) >= mostChannels {
		maps.DeleteFunc(n.channels, func(id uint64, c counts) bool {
			gone := c.scrape != n.scrape
			if gone {
				n.forgotten = max(n.forgotten, id)
			}
			return gone
		})
	}
	return slices.SortedFunc(maps.Values(n.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// place returns the group of a key, or that of the rest if there is no place for it.
func (n *names) place(k key) *group {
	if g := n.groups[k]; g != nil {
		return g
	}
	if k != k.rest() {
		if n.series+k.series() > namedSeries {
			n.refused = true
			return n.place(k.rest())
		}
		n.series += k.series()
	}
	k.kind, k.name = strings.Clone(k.kind), strings.Clone(k.name) // they may be parts of long texts
	g := &group{key: k}
	n.groups[k] = g
	return g
}

// rest returns the key of the group that has the objects without a place.
func (k key) rest() key {
	if k.kind == channelKind {
		return key{channelKind, other}
	}
	return key{other, other}
}

// series returns how many series a group with the key has.
func (k key) series() int {
	if k.kind == channelKind {
		return channelSeries
	}
	return objectSeries
}

// add adds an object to the group.
func (g *group) add(o *snapshot.Object) {
	g.objects++
	g.senders, g.receivers, g.waiting = g.senders+o.Senders, g.receivers+o.Receivers, g.waiting+o.Waiters
	g.oldest = earlier(g.oldest, o.Oldest)
	g.length += o.Len
	if o.Cap < 0 {
		g.unbounded = true
	} else {
		g.capacity += o.Cap
	}
}

// since returns what a channel has counted since it was last seen, or since it was made if it is new. If it may have
// been forgotten, that is 0.
func (n *names) since(o *snapshot.Object) counts {
	now := counts{o.Sent, o.Received, o.Dropped, n.scrape}
	was, known := n.channels[o.ID]
	if !known && len(n.channels) >= mostChannels {
		n.forgotten = max(n.forgotten, o.ID)
		return counts{}
	}
	if !known && o.ID <= n.forgotten {
		was = now
	}
	n.channels[o.ID] = now
	return counts{sent: now.sent - was.sent, received: now.received - was.received, dropped: now.dropped - was.dropped}
}

// label returns a name of the program as a label: printable, valid UTF-8, and not long. It does not read more of a long
// name than it needs.
func label(name string) string {
	if name == "" {
		return unnamed
	}
	if len(name) <= mostLabel && !strings.ContainsFunc(name, unprintable) {
		return name
	}
	const more = "…"
	var b strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		text := name[:size]
		name = name[size:]
		if unprintable(r) {
			text = strconv.Quote(text) // as \n, \x00 or \u202e
			text = text[1 : len(text)-1]
		}
		if b.Len()+len(text) > mostLabel-len(more) {
			b.WriteString(more)
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
