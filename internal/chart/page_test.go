package chart

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// written writes a chart. It checks that a second Write gives the same page, and that the page loads no other file.
func written(t *testing.T, c *Chart) string {
	t.Helper()
	var b, again strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(&again); err != nil || again.String() != b.String() {
		t.Error("the same chart is written in another way", err)
	}
	if from := regexp.MustCompile(`https?:|src=|href=|@import|url\(`).FindString(b.String()); from != "" {
		t.Errorf("the page has %s in it", from)
	}
	return b.String()
}

// read returns the data of a page.
func read(t *testing.T, page string) (d pageData) {
	t.Helper()
	_, data, ok := strings.Cut(page, `<script type="application/json" id="data">`)
	data, after, closed := strings.Cut(data, "</script>")
	if !ok || !closed || strings.Count(after, "</script>") != 1 {
		t.Fatal("the data is not in a script element")
	}
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAPageHasAllOfAChart(t *testing.T) {
	c := &Chart{
		Title: "deadlock in schedule 1", Text: "who waits", Verdict: "all wait", Replay: "again", Notes: "a note", Actors: "goroutines", Before: 7,
		Of: []Actor{
			{Name: "main", Why: "waits to lock b", Since: 2}, {Name: "other", Title: "started at x.go:1", Since: -1}, {Name: "gone", Ended: true},
		},
		Objects: []Object{{Name: "c", Sort: "channel", Made: "made at x.go:2", Room: 3}, {Name: "b", Sort: "lock", Room: -1}},
		Steps: []Step{
			{Actor: 0, Number: 8, Text: "send c", Kind: Channel, Switch: "another gets the turn", Did: []Use{{Object: 0, What: Put}}},
			{Actor: 1, Number: 9, Text: "recv c", Kind: Channel, At: time.Hour, Title: "at x.go:7", Did: []Use{{Object: 0, What: Get, N: 2}, {Object: 9}}},
			{Actor: 0, Number: 10, Text: "lock b", Kind: Lock, Until: 3, Wants: []Use{{Object: 1, What: Hold}}},
		},
		Starts: []Start{{0, 1}},
		Arrows: []Arrow{{From: 2, To: 1, Kind: Wake, Guess: true}, {From: 0, To: 1, Text: "c"}},
		Cycle:  []int{0, 1},
	}
	page := written(t, c)
	for _, text := range []string{
		"<title>deadlock in schedule 1</title>", "<h1>all wait</h1>", ">who waits</pre>", `<code id="replay">again</code>`, ">a note<",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %s", text)
		}
	}
	d := read(t, page)
	word := func(n int) string { return d.Words[n] }
	r := d.Runs[0]
	if d.Before != 7 || d.Actors != "goroutines" || !slices.Equal(d.Cycle, []int{0, 1}) || len(d.Runs) != 1 || d.Split != nil {
		t.Errorf("the page has %+v, want Before 7, Actors goroutines, Cycle [0 1], 1 run, Split nil", d)
	}
	if a := r.Actors; word(a[0].Why) != "waits to lock b" || a[0].Since != 2 || word(a[1].Title) != "started at x.go:1" || !a[2].Ended {
		t.Errorf("actors %+v", a)
	}
	if o := r.Objects[0]; word(o.Name) != "c" || word(o.Sort) != "channel" || word(o.Made) != "made at x.go:2" || o.Room != 3 {
		t.Errorf("object %+v", o)
	}
	if s := r.Steps; word(int(s[0][3])) != "send c" || word(int(s[0][6])) != "another gets the turn" || word(int(s[1][4])) != "at x.go:7" ||
		s[1][5] != int64(time.Hour) || s[2][7] != 3 || s[2][1] != 10 || s[2][2] != int64(Lock) {
		t.Errorf("steps %v", s)
	}
	if got := fmt.Sprint(r.Did, r.Wants, r.Starts); got != "[[0 0 1 1] [1 0 2 2]] [[2 1 4]] [[0 1]]" {
		t.Error(got) // uses of an unknown object are left out
	}
	if got := r.Arrows; len(got) != 2 || got[0][0] != 0 || got[1] != [5]int{2, 1, int(Wake), 0, 1} {
		t.Errorf("arrows %v", got)
	}
}

// Names come from programs, so they are escaped.
func TestTextIsEscaped(t *testing.T) {
	bad := "</script><b>\x1b\x00\xff\u202e\u2028'\"&" + strings.Repeat("long ", 200)
	c := &Chart{
		Title: bad, Text: bad, Verdict: bad, Notes: bad, Replay: bad, Actors: bad,
		Of:      []Actor{{Name: bad, Title: bad, Why: bad}},
		Objects: []Object{{Name: bad, Sort: bad, Made: bad}},
		Steps:   []Step{{Text: bad, Title: bad, Switch: bad}},
		Arrows:  []Arrow{{Text: bad}},
		Twin:    &Twin{Chart: new(Chart), Why: bad, Ends: bad},
	}
	page := written(t, c)
	head, _, _ := strings.Cut(page, `id="data">`)
	d := read(t, page)
	if d.Words[d.Runs[0].Actors[0].Name] != strings.Map(printable, bad) {
		t.Errorf("the name is %q", d.Words[d.Runs[0].Actors[0].Name])
	}
	for _, text := range []string{"<b>", "\x1b", "\x00", "\xff", "\u202e", "\u2028"} {
		if strings.Contains(head, text) {
			t.Errorf("the page has %q", text)
		}
		if all := fmt.Sprintf("%v", d); text != "<b>" && strings.Contains(all, text) {
			t.Errorf("the data has %q", text)
		}
	}
}

// In a long trace, steps that repeat are folded, and no step is left out.
func TestManyStepsAreFolded(t *testing.T) {
	c := &Chart{Actors: "fibers", Of: []Actor{{Name: "a"}, {Name: "b"}}}
	for i := range 900 {
		c.Steps = append(c.Steps, Step{Actor: i / 3 % 2, Number: i + 1, Text: fmt.Sprint("step ", i%3)})
	}
	c.Steps = append(c.Steps, Step{Number: 901, Text: "twice"}, Step{Number: 902, Text: "twice"})
	d := read(t, written(t, c))
	r := d.Runs[0]
	if len(r.Folds) != 1 || r.Folds[0].Again != 149 || r.Folds[0].Last != 899 || len(r.Folds[0].Steps) != 6 {
		t.Errorf("r.Folds = %+v, want one with Again 149, Last 899, 6 steps", r.Folds) // a fold of one step would save no row
	}
	if len(r.Steps) != 902 || r.Steps[5][8] != -1 || r.Steps[6][8] != 0 || r.Steps[899][8] != 0 || r.Steps[901][8] != -1 {
		t.Error(len(r.Steps))
	}
}

// The common steps of both runs are folded in the same way.
func TestTheTwinIsFoldedAlike(t *testing.T) {
	for _, n := range []int{20, 300, 5000} {
		c := sample(n, 4+n/52)
		d := read(t, written(t, c))
		if len(d.Runs) != 2 || d.Split == nil || d.Split.At != [2]int{c.Twin.Here, c.Twin.There} || d.Split.Why == "" {
			t.Fatalf("d.Split = %+v, want one of two runs, at the steps of the twin, with a reason", d.Split)
		}
		a, b := d.Runs[0], d.Runs[1]
		if !slices.Equal(a.Steps[:c.Twin.Here], b.Steps[:c.Twin.There]) {
			t.Errorf("%d: the steps in common differ", n)
		}
		for i, f := range a.Folds {
			if f.Last < c.Twin.Here && (f.Again != b.Folds[i].Again || f.Last != b.Folds[i].Last) {
				t.Errorf("%d: fold %d is %v, and %v in the twin", n, i, f, b.Folds[i])
			}
		}
	}
}

func TestAnEmptyChart(t *testing.T) {
	written(t, &Chart{Title: "nothing", Actors: "fibers"})
	written(t, &Chart{Of: []Actor{{Name: "a", Why: "waits", Since: -1}}})
}
