package chart

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	twinRows  = 6  // of each schedule, from where they part
	twinWidth = 62 // letters of each
)

// Listing is steps, and the names of their actors.
type Listing struct {
	Names []string
	Steps []Step
}

// Beside writes what a schedule that fails and its twin do from where they part, side by side, as text. Each line begins
// with indent, and end says how the schedule fails.
func Beside(w io.Writer, indent string, fails, passes Listing, end string) {
	left := append([]string{"fails"}, lines(fails.Steps, fails.Names, end)...)
	right := append([]string{"passes"}, lines(passes.Steps, passes.Names, "passes")...)
	width := 0
	for _, text := range left {
		width = max(width, utf8.RuneCountInString(text))
	}
	for i := range max(len(left), len(right)) {
		a, b := "", ""
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		text := a + strings.Repeat(" ", width-utf8.RuneCountInString(a)) + " | " + b
		fmt.Fprintf(w, "%s%s\n", indent, strings.TrimRight(text, " "))
	}
}

// lines returns the first of some steps, each with its number and actor, and at the end how the schedule ends. Steps
// that wait for time again and again are told once.
func lines(steps []Step, names []string, end string) (all []string) {
	add := func(number, text string) {
		for k, line := range Wrap(text, twinWidth) {
			if k > 0 {
				number, line = "", "  "+line
			}
			all = append(all, fmt.Sprintf("%6s  %s", number, line))
		}
	}
	rows, _ := Rows(steps, func(i int) bool { return steps[i].Kind == Said }, len(steps))
	shown := rows
	if len(rows) > twinRows+2 {
		shown = rows[:twinRows]
	}
	for k, r := range shown {
		s := &steps[r.Step]
		number := ""
		if s.Number > 0 {
			number = fmt.Sprint(s.Number)
		}
		if k == 0 {
			number = Mark + number
		}
		if r.Again > 0 {
			add("...", names[s.Actor]+" "+Texts(steps, r.Steps)+": "+Times(r.Again))
			continue
		}
		add(number, names[s.Actor]+" "+s.Text+placeIn(s.Title))
	}
	if left := len(rows) - len(shown); left > 0 {
		add("...", "")
	}
	if k := len(shown) - 1; k < 0 || k < len(rows)-1 || steps[shown[k].Step].Text != end {
		add("", end)
	}
	return all
}

// placeIn returns the place at the beginning of a title, without the directory, in words that follow others.
func placeIn(title string) string {
	place := Place(title)
	if place == "" {
		return ""
	}
	return ", at " + ShortPlace(place, "")
}

// Mark marks the step at which a schedule went another way than its twin.
const Mark = "=>"

// Times says that something comes again, and how often.
func Times(again int) string {
	switch again {
	case 1:
		return "once more"
	case 2:
		return "twice more"
	}
	return Grouped(again) + " times more"
}
