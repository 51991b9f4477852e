package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// grouped returns the numbers of fibers by the keys of their groups. Groups are in the order of their first fibers.
func grouped(fibers []Fiber, why []Explanation) (groups [][]uint64) {
	g, at := NewGroups(why), map[string]int{}
	for i := range fibers {
		key := string(g.AppendKey(nil, &fibers[i]))
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], fibers[i].ID)
	}
	return groups
}

func TestAnExplanationDividesGroups(t *testing.T) {
	var pay []Fiber
	for id := range uint64(6) {
		pay = append(pay, Fiber{ID: id, Name: fmt.Sprintf("pay[%d]", id), State: StateWaiting, Wait: []Wait{{Text: "for x"}}})
	}
	about := func(ids ...uint64) Explanation { return Explanation{Kind: ProblemTicketOld, Fibers: ids} }
	crowd := make([]uint64, mostTold)
	for i := range crowd {
		crowd[i] = uint64(i + 3)
	}
	for _, test := range []struct {
		name string
		why  []Explanation
		want [][]uint64
	}{
		{"none", nil, [][]uint64{{0, 1, 2, 3, 4, 5}}},
		{"one fiber", []Explanation{about(2)}, [][]uint64{{0, 1, 3, 4, 5}, {2}}},
		{"several", []Explanation{about(2, 4)}, [][]uint64{{0, 1, 3, 5}, {2, 4}}},
		{"two explanations", []Explanation{about(1, 2), about(2, 4)}, [][]uint64{{0, 3, 5}, {1}, {2}, {4}}},
		{"a crowd", []Explanation{about(crowd...)}, [][]uint64{{0, 1, 2, 3, 4, 5}}},
	} {
		if got := grouped(pay, test.why); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: the groups are %v, not %v", test.name, got, test.want)
		}
	}
	pay[1].Name, pay[2].State, pay[3].At, pay[4].Spawned, pay[5].Wait = "paid[1]", StateReady, "a.go:1", "b.go:1", nil
	if got := grouped(pay, nil); len(got) != len(pay) {
		t.Errorf("fibers that differ have the groups %v", got)
	}
}

// A list that is updated again and again keeps its position by the key.
func TestKeysOfGroupsStay(t *testing.T) {
	f := Fiber{ID: 7, Name: "pay[7]"}
	key := func(why ...Explanation) string { return string(NewGroups(why).AppendKey(nil, &f)) }
	old := Explanation{Kind: ProblemTicketOld, Fibers: []uint64{7, 8}}
	if a, b := key(old), key(Explanation{Kind: ProblemStarved, Fibers: []uint64{9}}, old); a != b {
		t.Errorf("the key %q is %q when there is another explanation", a, b)
	}
}

func TestKeysOfGroupsDoNotAllocate(t *testing.T) {
	g := NewGroups([]Explanation{{Kind: ProblemTicketOld, Fibers: []uint64{7}}})
	f, b := Fiber{ID: 7, Name: "pay[7]", Wait: []Wait{{Text: "for x"}}}, make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { b = g.AppendKey(b[:0], &f) }); n > 0 {
		t.Errorf("a key allocates %v times", n)
	}
}

// Objects without names that were made on one line are one, unless something is to be said of one of them. So are the
// fibers that wait for them.
func TestObjectsWithoutNamesAreOne(t *testing.T) {
	var s Snapshot
	for id := range uint64(8) {
		s.Objects = append(s.Objects, Object{ID: id + 1, Kind: "promise", Waiters: 1, Oldest: ago(time.Duration(id) * time.Second)})
		s.Fibers = append(s.Fibers, Fiber{ID: id, Name: "handler", State: StateWaiting, Wait: []Wait{
			{Kind: WaitUse, Text: fmt.Sprintf("for the promise #%d", id+1), Object: id + 1}}})
	}
	s.Objects[2].Name, s.Fibers[2].Wait[0].Text = "answer", "for the promise answer"
	s.Objects[4].Trouble = "bad"
	s.Objects[7].Made = "a.go:7"
	why := []Explanation{{Kind: ProblemAllWaiting, Objects: []uint64{6}}}
	groups := NewGroups(why).Objects(s.Objects)
	var got []string
	for i := range groups {
		g := &groups[i]
		got = append(got, fmt.Sprintf("%d %d of %d %s", g.ID, g.N, g.Waiters, g.Key))
		if g.N > 1 && (g.Title() != "4 promises without a name" || !g.Oldest.Equal(ago(6*time.Second))) {
			t.Errorf("the group is %q, and its oldest wait began at %v", g.Title(), g.Oldest)
		}
	}
	if want := []string{"1 4 of 4 promise\x00", "3 1 of 1 ", "5 1 of 1 ", "6 1 of 1 ", "8 1 of 1 "}; !slices.Equal(got, want) {
		t.Errorf("the objects are %q, not %q", got, want)
	}
	if got := grouped(s.Fibers, nil); len(got) != 2 || len(got[0]) != 7 {
		t.Errorf("the groups of fibers are %v", got)
	}
}
