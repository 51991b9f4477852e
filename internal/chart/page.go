package chart

import (
	"bufio"
	_ "embed" // for the parts of the page
	"encoding/json"
	"html"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The page consists of three files and the data, which is JSON in a script element. The head is plain HTML, so that the
// failure can be read without scripts. page.js draws the rest. The data has each text once, in a list, because the
// texts of a long trace repeat.

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// foldFrom is the number of steps from which on repetitions are folded.
const foldFrom = 100

// Write writes the page.
func (c *Chart) Write(w io.Writer) error {
	data, err := json.Marshal(c.data()) // it escapes < and >, so that no text ends the script element
	if err != nil {
		return err
	}
	parts := map[string]string{
		"title": escaped(c.Title), "verdict": escaped(c.Verdict), "text": escaped(c.Text), "notes": escaped(c.Notes),
		"replay": escaped(c.Replay), "style": pageCSS, "script": pageJS, "data": string(data),
	}
	out := bufio.NewWriter(w)
	rest := pageHTML
	for {
		before, after, ok := strings.Cut(rest, "{{")
		_, _ = out.WriteString(before) // an error stays with the writer until Flush
		if !ok {
			return out.Flush()
		}
		name, after, _ := strings.Cut(after, "}}")
		_, _ = out.WriteString(parts[name])
		rest = after
	}
}

// escaped returns text for HTML, without control characters.
func escaped(text string) string { return html.EscapeString(strings.Map(printable, text)) }

func printable(c rune) rune {
	if c == '\n' || c == '\t' || unicode.IsPrint(c) {
		return c
	}
	return utf8.RuneError
}

// pageData is the data of a page. Texts are numbers of words, where 0 is the empty text.
type pageData struct {
	Actors string
	Before int
	Cycle  []int
	Words  []string
	Runs   []pageRun // the failure, and its twin if there is one
	Split  *pageSplit
}

// pageSplit is where the runs diverge: the index of the first step that differs, in each.
type pageSplit struct {
	At        [2]int
	Why, Ends string
}

// pageRun is a schedule.
type pageRun struct {
	Actors  []pageActor
	Objects []pageObject
	Steps   [][9]int64 // actor, number, kind, text, title, time in ns, switch, until, fold or -1
	Did     [][4]int   // step, object, effect, amount
	Wants   [][3]int   // step, object, effect
	Starts  [][2]int   // step, actor
	Arrows  [][5]int   // from, to, kind, text, guess
	Folds   []pageFold
}

type pageActor struct {
	Name, Title, Why int
	Ended            bool
	Since            int
}

type pageObject struct {
	Name, Sort, Made int
	Room             int
}

// pageFold is a repetition: Steps occur Again more times. Last is the last step of the last time.
type pageFold struct {
	Steps []int
	Again int
	Last  int
}

// words numbers texts.
type words struct {
	all    []string
	number map[string]int
}

func (w *words) of(text string) int {
	n, ok := w.number[text]
	if !ok {
		n = len(w.all)
		w.number[text], w.all = n, append(w.all, strings.Map(printable, text))
	}
	return n
}

// data returns the data of the page.
func (c *Chart) data() *pageData {
	w := &words{number: map[string]int{}}
	w.of("")
	d := &pageData{Actors: strings.Map(printable, c.Actors), Before: c.Before, Cycle: c.Cycle}
	since := map[int]bool{}
	for i := range c.Of {
		if c.Of[i].Why != "" {
			since[c.Of[i].Since] = true
		}
	}
	// The common steps of both runs are folded in the same way, so that they can be shown side by side.
	few := len(c.Steps) < foldFrom
	t := c.Twin
	split := len(c.Steps)
	if t != nil {
		split = t.Here
	}
	d.Runs = append(d.Runs, run(w, c.Of, c.Objects, c.Steps, c.Starts, c.Arrows, split,
		func(i int) bool { return few || c.Steps[i].Kind == Said || since[i] }))
	if t != nil {
		d.Runs = append(d.Runs, run(w, t.Of, t.Objects, t.Steps, t.Starts, t.Arrows, t.There,
			func(i int) bool { return few || t.Steps[i].Kind == Said || i < t.There && since[i] }))
		d.Split = &pageSplit{At: [2]int{t.Here, t.There}, Why: strings.Map(printable, t.Why),
			Ends: strings.Map(printable, t.Ends)}
	}
	d.Words = w.all
	return d
}

// run returns the data of a schedule. No fold has steps from both sides of the split.
func run(w *words, of []Actor, objects []Object, steps []Step, starts []Start, arrows []Arrow, split int,
	pinned func(i int) bool) (r pageRun) {
	for _, a := range of {
		r.Actors = append(r.Actors, pageActor{w.of(a.Name), w.of(a.Title), w.of(a.Why), a.Ended, a.Since})
	}
	for _, o := range objects {
		r.Objects = append(r.Objects, pageObject{w.of(o.Name), w.of(o.Sort), w.of(o.Made), o.Room})
	}
	split = min(max(split, 0), len(steps))
	rows, in := Rows(steps, pinned, split)
	folds := make([]int64, len(rows)) // the index of each fold; -1 for other rows
	for k, row := range rows {
		if folds[k] = -1; row.count() > 1 { // a fold of one step would save no row
			folds[k] = int64(len(r.Folds))
			r.Folds = append(r.Folds, pageFold{Steps: row.Steps, Again: row.Again, Last: row.Last})
		}
	}
	known := func(u Use) bool { return u.Object >= 0 && u.Object < len(objects) }
	for i := range steps {
		s := &steps[i]
		fold := int64(-1)
		if in[i] >= 0 {
			fold = folds[in[i]]
		}
		r.Steps = append(r.Steps, [9]int64{
			int64(s.Actor), int64(s.Number), int64(s.Kind), int64(w.of(s.Text)), int64(w.of(s.Title)), int64(s.At),
			int64(w.of(s.Switch)), int64(s.Until), fold,
		})
		for _, u := range s.Did {
			if known(u) {
				r.Did = append(r.Did, [4]int{i, u.Object, int(u.What), max(u.N, 1)})
			}
		}
		for _, u := range s.Wants {
			if known(u) {
				r.Wants = append(r.Wants, [3]int{i, u.Object, int(u.What)})
			}
		}
	}
	for _, s := range starts {
		r.Starts = append(r.Starts, [2]int{s.Step, s.Actor})
	}
	for _, a := range arrows {
		guess := 0
		if a.Guess {
			guess = 1
		}
		r.Arrows = append(r.Arrows, [5]int{a.From, a.To, int(a.Kind), w.of(a.Text), guess})
	}
	slices.SortStableFunc(r.Arrows, func(a, b [5]int) int { return a[0] - b[0] })
	return r
}
