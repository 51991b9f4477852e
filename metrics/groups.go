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

// Objects with the same kind and the same name form a group, whose numbers are added up. Each group has series, and
// their number must be limited, because the program may make names from its input.
//
// A group keeps its place as long as possible, even if no fiber waits for its objects, so that its series do not come
// and go. The totals of a group include all of its objects, also those that no longer exist. They must not decrease
// when an object is not in a snapshot, and must not count anything twice when it is in a later one. So a group adds the
// difference since the object was last seen. It keeps the last counts of at most mostCounted objects. For a forgotten
// object it counts too little rather than twice: see groups.since.

const (
	mostSeries  = 1000             // in a scrape
	fixedSeries = 100              // those without a name; TestSeriesAreCounted checks that there are no more
	mostLabel   = 128              // bytes in a label
	mostCounted = 10_000           // objects whose counts are kept
	placeKept   = 10 * time.Minute // how long an unseen group keeps its place when places are needed
)

// The series of a group of each kind.
var (
	channelSeries = rowsOf("coir_channel_")
	remoteSeries  = rowsOf("coir_remote_")
	objectSeries  = rowsOf("coir_object_")

	// Objects of these kinds also have the series of other objects.
	ownSeries = map[string]int{
		poolKind: rowsOf("coir_pool_"), deskKind: rowsOf("coir_desk_"), supervisorKind: rowsOf("coir_supervisor_"),
	}

	namedSeries = mostSeries - fixedSeries - channelSeries - remoteSeries - objectSeries // without the groups called other
)

// rowsOf returns the number of metrics that begin with prefix.
func rowsOf(prefix string) (n int) {
	for i := range table {
		if strings.HasPrefix(table[i].Name, prefix) {
			n++
		}
	}
	return n
}

const (
	channelKind = "channel"
	remoteKind  = "remote channel" // of package remote
	poolKind    = snapshot.KindPool
	deskKind    = "desk"
	ticketKind  = "ticket"
	// Of package supervise.
	supervisorKind = "supervisor"

	unnamed = "unnamed"
	other   = "other"
)

// key has the labels that all objects of a group share.
type key struct{ kind, name string }

// group is a group of objects.
type group struct {
	key
	seen time.Time // when a fiber last waited for one of the objects

	// Totals since the first scrape that saw the group.
	totals

	gauges
}

// totals has what an object counts, in the order of snapshot.Object.Counters, which are no more than it has room for.
type totals [8]uint64

func totalsOf(o *snapshot.Object) (t totals) {
	for i, c := range o.Counters() {
		t[i] = c.Value
	}
	return t
}

// totalIndex returns the index of a counter in totals.
func totalIndex(name string) int {
	i := slices.IndexFunc(new(snapshot.Object).Counters(), func(c snapshot.Counter) bool { return c.Name == name })
	if i < 0 {
		panic("metrics: no counter of an object is called " + name)
	}
	return i
}

// gauges has the numbers of a group in one scrape.
type gauges struct {
	objects                     int
	length, capacity            int
	unbounded                   bool // it has no capacity
	senders, receivers, waiting int
	troubled                    int // objects with trouble
	oldest                      time.Time
}

// counts has the counts of an object when it was last seen.
type counts struct {
	totals
	scrape int64
}

// groups has the groups of all scrapes so far.
type groups struct {
	all     map[key]*group
	series  int  // of all groups except those called other
	refused bool // a group did not get a place

	counted   map[uint64]counts // by number of the object
	forgotten uint64            // the highest number of an object whose counts were dropped
	scrape    int64
}

func newGroups() groups { return groups{all: map[key]*group{}, counted: map[uint64]counts{}} }

// count counts the objects of a snapshot, and returns the groups in a fixed order.
func (gs *groups) count(objects []snapshot.Object, at time.Time) []*group {
	gs.scrape++
	if gs.refused {
		gs.refused = false
		maps.DeleteFunc(gs.all, func(k key, g *group) bool {
			idle := k != k.rest() && at.Sub(g.seen) >= placeKept
			if idle {
				gs.series -= k.series()
			}
			return idle
		})
	}
	for _, g := range gs.all {
		g.gauges = gauges{}
	}
	for i := range objects {
		o := &objects[i]
		g := gs.place(keyOf(o))
		g.seen = at
		g.add(o)
		if g.isChannel() || totalsOf(o) != (totals{}) { // most other objects count nothing
			for i, d := range gs.since(o) {
				g.totals[i] += d
			}
		}
	}
	if len(gs.counted) >= mostCounted {
		maps.DeleteFunc(gs.counted, func(id uint64, c counts) bool {
			gone := c.scrape != gs.scrape
			if gone {
				gs.forgotten = max(gs.forgotten, id)
			}
			return gone
		})
	}
	return slices.SortedFunc(maps.Values(gs.all), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// keyOf returns the key of an object's group. Tickets form one group, because a ticket is often named after what it is
// for, such as an order, and each name would be new series.
func keyOf(o *snapshot.Object) key {
	if o.Kind == ticketKind {
		return key{ticketKind, unnamed}
	}
	return key{label(o.Kind), label(o.Name)}
}

// place returns the group of a key, or the group of the rest if there is no place for it.
func (gs *groups) place(k key) *group {
	if g := gs.all[k]; g != nil {
		return g
	}
	if k != k.rest() {
		if gs.series+k.series() > namedSeries {
			gs.refused = true
			return gs.place(k.rest())
		}
		gs.series += k.series()
	}
	k.kind, k.name = strings.Clone(k.kind), strings.Clone(k.name) // they may be parts of long texts
	g := &group{key: k}
	gs.all[k] = g
	return g
}

// rest returns the key of the group for objects without a place.
func (k key) rest() key {
	if k.isChannel() {
		return key{k.kind, other}
	}
	return key{other, other}
}

// isChannel reports whether the objects with the key count what is sent and received.
func (k key) isChannel() bool { return k.kind == channelKind || k.kind == remoteKind }

// series returns the number of series of a group with the key.
func (k key) series() int {
	switch k.kind {
	case channelKind:
		return channelSeries
	case remoteKind:
		return remoteSeries
	}
	return objectSeries + ownSeries[k.kind]
}

// add adds an object to the group.
func (g *group) add(o *snapshot.Object) {
	g.objects++
	g.senders, g.receivers, g.waiting = g.senders+o.Senders, g.receivers+o.Receivers, g.waiting+o.Waiters
	g.oldest = earlier(g.oldest, o.Oldest)
	g.length += o.Len
	if o.Trouble != "" {
		g.troubled++
	}
	if o.Cap < 0 {
		g.unbounded = true
	} else {
		g.capacity += o.Cap
	}
}

// since returns what an object has counted since it was last seen, or since its creation if it is new. If its counts
// may have been forgotten, since returns 0.
func (gs *groups) since(o *snapshot.Object) (since totals) {
	now := counts{totalsOf(o), gs.scrape}
	was, known := gs.counted[o.ID]
	if !known && len(gs.counted) >= mostCounted {
		gs.forgotten = max(gs.forgotten, o.ID)
		return since
	}
	if !known && o.ID <= gs.forgotten {
		was = now
	}
	gs.counted[o.ID] = now
	for i := range since {
		since[i] = now.totals[i] - was.totals[i]
	}
	return since
}

// label converts a name of the program to a label: printable, valid UTF-8, and short. It reads only as much of a long
// name as it needs.
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
			text = strconv.Quote(text) // escaped, as in \n, \x00 or \u202e
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
