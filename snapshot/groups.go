package snapshot

import (
	"strconv"
	"strings"
)

// Groups tells which fibers of a snapshot do the same, for lists that show such fibers as one line.
type Groups struct {
	told map[uint64]string // the explanations that name a fiber
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
	g := &Groups{told: map[uint64]string{}}
	known := map[step]string{} // fibers with the same explanations share a text
	for i := range why {
		e := &why[i]
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
// same state on the same line, wait for the same, and have the same name apart from the index; see [Stem]. The key is
// the same in later snapshots, as long as all of that is.
func (g *Groups) AppendKey(b []byte, f *Fiber) []byte {
	stem, _ := Stem(f.Name)
	for _, part := range [...]string{stem, string(f.State), f.Spawned, f.At} {
		b = append(append(b, part...), 0)
	}
	for i := range f.Wait {
		b = append(append(b, f.Wait[i].Text...), 0)
	}
	if told := g.told[f.ID]; told != "" {
		b = append(append(b, 0), told...)
	}
	return b
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
