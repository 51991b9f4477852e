package snapshot

import (
	"fmt"
	"slices"
	"testing"
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
