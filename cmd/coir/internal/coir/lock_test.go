package coir

import (
	"slices"
	"strings"
	"testing"
)

// The goroutines that must unlock a lock are known from the operations on it. Each operation below is a letter and the
// number of a goroutine; a star means that it waits at the end.
func TestLocks(t *testing.T) {
	letters := map[byte]int{
		'L': OpLock, 'T': OpTryLock, 'U': OpUnlock, 'R': OpRLock, 'r': OpRUnlock, 'W': OpWLock, 'w': OpWUnlock,
	}
	for _, c := range []struct {
		steps   string
		read    bool // a reader asks
		by      []uint32
		queued  bool
		certain bool
	}{
		{steps: "L1 U1", certain: true},
		{steps: "L1 L2*", by: []uint32{1}, certain: true},
		{steps: "L1 L2 U1", by: []uint32{2}, certain: true}, // 2 got it, or is about to
		{steps: "L1 L2", by: []uint32{1, 2}},
		{steps: "T1 L2*"},
		{steps: "L1 U2"},
		{steps: "U1 L2", by: []uint32{2}}, // 1 locked it earlier
		{steps: "R1 R2 W3*", by: []uint32{1, 2}, certain: true},
		{steps: "R1 R2 r1 W3*", by: []uint32{2}, certain: true},
		{steps: "W1 R2*", read: true, by: []uint32{1}, certain: true},
		{steps: "R1 W2* R3*", read: true, by: []uint32{2}, queued: true, certain: true},
		{steps: "W1 w1 R2 W3*", by: []uint32{2}, certain: true},
		{steps: "R1 W2", by: []uint32{2}},
	} {
		var l Lock
		for i, s := range strings.Fields(c.steps) {
			l.Do(letters[s[0]], Hold{G: uint32(s[1] - '0'), Step: i}, strings.HasSuffix(s, "*"))
		}
		holds, queued := l.Blocking(c.read)
		var by []uint32
		for _, h := range holds {
			by = append(by, h.G)
		}
		if !slices.Equal(by, c.by) || queued != c.queued || l.Certain() != c.certain {
			t.Errorf("%s: blocked by %v, queued %v, certain %v", c.steps, by, queued, l.Certain())
		}
	}
}
