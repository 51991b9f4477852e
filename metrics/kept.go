package metrics

import (
	"strings"

	"github.com/coir-go/coir/snapshot"
)

const (
	mostKept      = 10_000 // fibers, and nurseries, of a snapshot that are kept
	mostKeptWaits = 2 * mostKept
	mostTroubled  = 1000 // objects that are kept although no kept fiber waits for them
	keptName      = 256  // bytes kept of a name
)

// kept is the part of a snapshot that is kept until the next scrape, for snapshot.Explain to compare. Apart from some
// objects with trouble, it has no more objects than waits, and only the beginning of long names, so its size does not
// depend on the program. The memory of its fibers is reused, because garbage of that size would start the garbage
// collector, which scans the stacks of all fibers.
type kept struct {
	s      *snapshot.Snapshot
	fibers []snapshot.Fiber
	waits  []snapshot.Wait // the waits of the fibers
}

// reset makes k empty. Its former contents must no longer be in use.
func (k *kept) reset() {
	clear(k.fibers)
	k.s, k.fibers, k.waits = nil, k.fibers[:0], k.waits[:0]
}

// add adds a fiber if there is room for it.
func (k *kept) add(f *snapshot.Fiber) {
	if len(k.fibers) == mostKept || len(k.waits)+len(f.Wait) > mostKeptWaits {
		return
	}
	from := len(k.waits)
	k.waits = append(k.waits, f.Wait...)
	one := *f
	if one.Wait = nil; len(f.Wait) > 0 {
		one.Wait = k.waits[from:len(k.waits):len(k.waits)]
	}
	for i := range one.Wait {
		one.Wait[i].Text = "" // contains a name, and is not compared
	}
	one.Name = cut(one.Name)
	k.fibers = append(k.fibers, one)
}

// keep adds the rest of the snapshot, which had the given number of fibers.
func (k *kept) keep(s *snapshot.Snapshot, fibers int) {
	one := *s
	one.Fibers, one.Omitted = k.fibers, fibers-len(k.fibers)
	nurseries, objects := map[uint64]bool{}, map[uint64]bool{}
	for i := range k.fibers {
		nurseries[k.fibers[i].Nursery] = true
	}
	for i := range k.waits {
		nurseries[k.waits[i].Nursery], objects[k.waits[i].Object] = true, true
	}
	one.Nurseries, one.Objects = nil, nil
	for _, n := range s.Nurseries {
		if nurseries[n.ID] {
			n.Cause = ""
			one.Nurseries = append(one.Nurseries, n)
		}
	}
	troubled := 0
	for _, o := range s.Objects {
		keep := objects[o.ID]
		if o.Trouble != "" && !keep && troubled < mostTroubled {
			troubled++
			keep = true
		}
		if keep {
			o.Name, o.Trouble, o.Note, o.Made, o.Tickets = cut(o.Name), cut(o.Trouble), "", "", nil
			one.Objects = append(one.Objects, o)
		}
	}
	k.s = &one
}

// cut returns the beginning of a long name, without keeping the rest in memory.
func cut(name string) string {
	if len(name) <= keptName {
		return name
	}
	return strings.ToValidUTF8(strings.Clone(name[:keptName]), "")
}
