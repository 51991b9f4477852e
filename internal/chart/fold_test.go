package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	same := func(a, b byte) bool { return a == b }
	for _, c := range []struct {
		text string
		want []Run
	}{
		{"", nil},
		{"abc", []Run{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}}},
		{"aab", []Run{{0, 1, 2}, {2, 1, 1}}},
		{"abab", []Run{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}}},
		{"xababab", []Run{{0, 1, 1}, {1, 2, 3}}},
		{"aaaa", []Run{{0, 1, 4}}},
		{"aabaabaabc", []Run{{0, 3, 3}, {9, 1, 1}}},
	} {
		if got := Fold([]byte(c.text), same); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.text, got, c.want)
		}
	}
}

// The repetitions of an actor that waits for time are folded, even with steps of others in between. Pinned steps are
// not folded.
func TestRowsFoldTickersFirst(t *testing.T) {
	var steps []Step
	add := func(actor int, text string, timed bool) {
		steps = append(steps, Step{Actor: actor, Number: len(steps) + 1, Text: text, Timed: timed})
	}
	for i := range 10 {
		add(0, "sleep", true)
		add(1, fmt.Sprint("work ", i), false)
		add(0, "try", false)
	}
	rows, in := Rows(steps, func(i int) bool { return i == 27 }, len(steps))
	var got []string
	for _, r := range rows {
		text := steps[r.Step].Text
		if r.Again > 0 {
			text = fmt.Sprintf("%s: %d until %d", Texts(steps, r.Steps), r.Again, steps[r.Last].Number)
		}
		got = append(got, text)
	}
	want := "sleep/work 0/try/work 1/work 2/work 3/work 4/work 5/work 6/work 7/work 8/sleep, try: 8 until 27/sleep/work 9/try"
	if strings.Join(got, "/") != want {
		t.Errorf("%s, want %s", strings.Join(got, "/"), want)
	}
	if in[0] != -1 || in[2] != -1 || in[24] != 11 || in[26] != 11 || in[27] != -1 || in[29] != -1 {
		t.Error(in)
	}
}

// Thin keeps the rows at the end, and those around the last step of each actor.
func TestRowsAreThinned(t *testing.T) {
	var steps []Step
	for i := range 1000 {
		actor := 0
		if i == 300 || i == 500 {
			actor = i
		}
		steps = append(steps, Step{Actor: actor, Number: i + 1, Text: fmt.Sprint(i)})
	}
	none := func(int) bool { return false }
	rows, _ := Rows(steps, none, len(steps))
	left, kept, there := 0, 0, map[int]bool{}
	for _, r := range Thin(steps, rows, none, none, 40) {
		if left += r.Left; r.Left == 0 {
			kept++
			there[r.Step] = true
		}
	}
	if kept != 40 || left != 960 {
		t.Errorf("%d rows are kept, %d steps are left out", kept, left)
	}
	for _, i := range []int{0, 299, 300, 301, 499, 500, 501, 999} {
		if !there[i] {
			t.Errorf("step %d is left out", i)
		}
	}
}

// No repetition crosses the split. So the steps before it are folded in the same way, whatever comes after.
func TestRowsDoNotFoldOverTheSplit(t *testing.T) {
	var steps []Step
	for i := range 20 {
		steps = append(steps, Step{Number: i + 1, Text: "yield"})
	}
	rows, in := Rows(steps, func(int) bool { return false }, 12)
	if len(rows) != 4 || rows[1].Again != 11 || rows[1].Last != 11 || rows[2].Step != 12 || rows[3].Again != 7 || in[11] != 1 || in[13] != 3 {
		t.Errorf("%+v %v", rows, in)
	}
}
