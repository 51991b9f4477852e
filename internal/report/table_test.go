package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
)

// numbers returns the numbers of the rows of a table, and its lines about omitted steps.
func numbers(t *Trace) string {
	var b strings.Builder
	t.Table(&b)
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^ *[=>]*([0-9]+) \||^\.\.\. (.*)$`).FindAllStringSubmatch(b.String(), -1) {
		all = append(all, m[1]+m[2])
	}
	return strings.Join(all, " ")
}

// A switch far from the end is shown with the steps around it.
func TestTheSwitchIsInSight(t *testing.T) {
	c := &chart.Chart{Actors: "goroutines", Of: []chart.Actor{{Name: "g"}}}
	for i := range 200 {
		c.Steps = append(c.Steps, chart.Step{Number: i + 1, Text: fmt.Sprint("lock mutex#", i+1)})
	}
	c.Steps[50].Switches, c.Steps[53].Switches = 1, 1
	got := numbers(&Trace{Chart: c, Total: 200, FailedAt: 200})
	if !strings.Contains(got, " 49 50 51 52 53 54 55 56 steps 57 to 185 left out 186 ") ||
		!strings.HasSuffix(got, " 199 200") {
		t.Error(got)
	}
}

// Of many actors, only those that matter have a column: one that fails, and another of the same name that has not
// ended, but not those that only wait.
func TestColumnsOfTheGuilty(t *testing.T) {
	c := &chart.Chart{Actors: "fibers"}
	for i := range 30 {
		c.Of = append(c.Of, chart.Actor{Name: fmt.Sprint("idle", i), Why: "waits for time to pass"})
	}
	c.Of[20].Name, c.Of[25].Name = "led#20", "led#25"
	c.Of[24].Name, c.Of[24].Why = "led#24", ""
	for i := range 30 {
		c.Steps = append(c.Steps, chart.Step{Number: i + 1, Actor: i, Text: "sleep", Timed: true})
	}
	all := (&Trace{Chart: c, Total: 30, FailedAt: 26, Failing: []int{25}}).columns(c.Steps, -1, nil, mostColumns, nil)
	text := " " + strings.Trim(fmt.Sprint(all), "[]") + " "
	if !strings.Contains(text, " 20 ") || !strings.Contains(text, " 25 ") || strings.Contains(text, " 24 ") ||
		len(all) != fewColumns {
		t.Error(all)
	}
}

// An actor with a step that was cut short has a column, in which that step and its last one are shown.
func TestColumnOfAStepThatWasCutShort(t *testing.T) {
	c := &chart.Chart{Actors: "fibers"}
	for i := range 12 {
		c.Of = append(c.Of, chart.Actor{Name: fmt.Sprint("fiber", i)})
	}
	for i := range 400 {
		c.Steps = append(c.Steps, chart.Step{Number: i + 1, Actor: 1 + i%11, Text: fmt.Sprint("send c", i)})
	}
	for i := 60; i < 400; i++ {
		if s := &c.Steps[i]; s.Actor == 2 {
			s.Actor = 3
		}
	}
	c.Steps[399].Actor = 0
	tr := &Trace{Chart: c, Total: 400, FailedAt: 400, Failing: []int{0}, Broken: []int{12}}
	var b strings.Builder
	tr.Table(&b)
	for _, text := range []string{"| fiber2 ", "   13 | ", "   57 | "} { // its last step is 57
		if !strings.Contains(b.String(), text) {
			t.Errorf("no %q in\n%s", text, b.String())
		}
	}
}

// If the numbers of steps do not follow each other, although no step is left out, a line above the table says why.
func TestMissingNumbersAreExplained(t *testing.T) {
	const text = "numbers that are missing are steps of a library\n"
	of := []chart.Actor{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		inside string
		steps  []chart.Step
		want   bool
	}{
		{"steps of a library", []chart.Step{{Number: 1, Text: "go"}, {Number: 3, Text: "end"}}, true},
		{"steps of a library", []chart.Step{{Number: 1, Text: "go"}, {Text: "log: x"}, {Number: 3, Text: "end"}}, true},
		{"steps of a library", []chart.Step{{Number: 1, Text: "go"}, {Text: "log: x"}, {Number: 2, Text: "end"}}, false},
		{"", []chart.Step{{Number: 1, Text: "go"}, {Number: 3, Text: "end"}}, false},
	} {
		var b strings.Builder
		(&Trace{Chart: &chart.Chart{Actors: "fibers", Of: of, Steps: c.steps}, Total: 3, Inside: c.inside}).Table(&b)
		if strings.Contains(b.String(), text) != c.want {
			t.Errorf("of %v:\n%s", c.steps, b.String())
		}
	}
}

// The marks of switches say what the schedule did instead, and whether before or after the step.
func TestWordsOfSwitches(t *testing.T) {
	c := &chart.Chart{Actors: "fibers", Of: []chart.Actor{{Name: "a"}}, Steps: []chart.Step{
		{Number: 1, Text: "go", Switches: 1}, {Number: 2, Text: "select", Switches: 2, Takes: true},
		{Number: 3, Text: "sleep", Switches: 1, Passes: true},
	}}
	for done, then := range map[bool]string{false: "before this is done", true: "after this"} {
		var b strings.Builder
		(&Trace{Chart: c, Total: 3, Done: done}).Table(&b)
		for _, want := range []string{
			"marks: > leaves the plain order: another fiber gets the turn " + then +
				"; > leaves the plain order: another case would come first" +
				"; > leaves the plain order: time passes after this, although a fiber could run\n",
			"   >1 | go ", "  >>2 | select ", "   >3 | sleep ",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	}
}

// If an actor only starts others in the first rows, they become one line, unless the schedule leaves the plain order
// there.
func TestTheStartIsOneLine(t *testing.T) {
	for _, switches := range []int{0, 1} {
		c := &chart.Chart{Actors: "goroutines", Of: []chart.Actor{{Name: "TestX"}, {Name: "a.go:1"}, {Name: "a.go:2"}}}
		c.Steps = []chart.Step{
			{Number: 3, Text: "add wg", Starts: true}, {Number: 4, Text: "go", Starts: true},
			{Number: 5, Text: "go", Starts: true, Switches: switches},
			{Number: 6, Text: "wait wg", Waits: true}, {Number: 7, Actor: 1, Text: "go", Starts: true},
			{Number: 8, Actor: 2, Text: "lock mu", Waits: true},
		}
		c.Starts = []chart.Start{{Step: 1, Actor: 1}, {Step: 2, Actor: 2}}
		want := "steps 3 to 5: TestX starts 2 goroutines 6 7 8"
		if switches > 0 {
			want = "3 4 5 6 7 8"
		}
		if got := numbers(&Trace{Chart: c, Total: 8, FailedAt: 8}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A table is never wider than its limit. To fit, columns that do not matter are left out, and cells of the others are
// broken, as a last resort within words.
func TestTablesFitTheWidth(t *testing.T) {
	for failing, width := range map[int]int{2: 80, 8: 120} {
		c := &chart.Chart{Actors: "goroutines"}
		for i := range 8 {
			c.Of = append(c.Of, chart.Actor{Name: fmt.Sprintf("handler /a/%d", i), Why: "waits"})
		}
		tr := &Trace{Chart: c, Total: 40, FailedAt: 40, Width: width}
		for i := range 40 {
			c.Steps = append(c.Steps, chart.Step{
				Number: i + 1, Actor: i % 8, Text: "lock customer.account.mutex (mutex#1)", Title: "at customers_test.go:1117",
			})
		}
		for i := range failing {
			tr.Failing = append(tr.Failing, 7-i)
		}
		var b strings.Builder
		tr.Table(&b)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d letters: %s", n, line)
			}
		}
		for i := range failing {
			if want := fmt.Sprintf("/a/%d ", 7-i); !strings.Contains(b.String(), want) {
				t.Errorf("no column %s in\n%.600s", want, b.String())
			}
		}
		if failing == 2 && !strings.Contains(b.String(), "customer.account.mutex") {
			t.Errorf("a word is broken in\n%.600s", b.String())
		}
	}
}

// diverging returns a schedule of n workers that diverges from its twin at a lock. The last of them use another lock.
func diverging(n, others int) *Trace {
	c := &chart.Chart{Actors: "goroutines"}
	for i := range n {
		name, on := fmt.Sprintf("w#%d", i), "mu"
		if i >= n-others {
			on = "nu"
		}
		c.Of = append(c.Of, chart.Actor{Name: name})
		c.Steps = append(c.Steps, chart.Step{Number: i + 1, Actor: i, Text: "lock " + on, On: []string{on}})
	}
	twin := &chart.Chart{Actors: "goroutines", Of: c.Of, Steps: slices.Clone(c.Steps)}
	slices.Reverse(twin.Steps[:n-others])
	c.Twin = &chart.Twin{Chart: twin}
	return &Trace{Chart: c, Total: n, FailedAt: n, Failing: []int{n - 1}, Width: 120}
}

// Each actor that uses what the two schedules use where they diverge has a column. If there is no room for all, the
// table names the others.
func TestColumnsOfTheRivals(t *testing.T) {
	var b strings.Builder
	diverging(9, 4).Table(&b)
	for i := range 5 {
		if !strings.Contains(b.String(), fmt.Sprintf("| w#%d ", i)) {
			t.Errorf("w#%d has no column in\n%s", i, b.String())
		}
	}
	b.Reset()
	diverging(12, 1).Table(&b)
	if want := " without a column (w#6..9 also use mu)\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("there is no %q in\n%s", want, b.String())
	}
}

// The last texts that the program logged are shown in the columns of the actors that logged them, even in a long table.
func TestLogsHaveAColumn(t *testing.T) {
	c := &chart.Chart{Actors: "fibers"}
	for i := range 12 {
		c.Of = append(c.Of, chart.Actor{Name: fmt.Sprint("fiber", i)})
	}
	for i := range 400 {
		if i == 100 {
			c.Steps = append(c.Steps, chart.Step{Actor: 3, Text: "log: n is 7", Logged: true})
		}
		c.Steps = append(c.Steps, chart.Step{Number: i + 1, Actor: 4 + i%8, Text: fmt.Sprint("send c", i)})
	}
	c.Steps[50].Actor = 3
	var b strings.Builder
	(&Trace{Chart: c, Total: 400, FailedAt: 400, Failing: []int{4}}).Table(&b)
	lines := strings.Split(b.String(), "\n")
	at := -1
	for _, line := range lines {
		switch {
		case strings.Contains(line, " step |"):
			at = strings.Index(line, "fiber3 ")
		case strings.Contains(line, "log: n is 7") && strings.Index(line, "log: n is 7") == at:
			return
		}
	}
	t.Errorf("the text is not in the column of fiber3:\n%s", b.String())
}

// A step that decides is in the table even if its actor has no column. If there are too many of them, the gap in which
// the others are names them. A step inside of a library is left out, unless it decides.
func TestWhatDecidesIsShown(t *testing.T) {
	c := &chart.Chart{Actors: "goroutines"}
	for i := range 12 {
		c.Of = append(c.Of, chart.Actor{Name: fmt.Sprint("g", i)})
	}
	for i := range 200 {
		c.Steps = append(c.Steps, chart.Step{Number: i + 1, Actor: i % 2, Text: fmt.Sprint("lock mutex#", i+1)})
	}
	for i := range 14 {
		c.Steps[20+10*i].Switches = 1
	}
	c.Steps[70].Actor, c.Steps[71].Aside, c.Steps[150].Aside = 9, true, true
	c.Steps[2].Missed, c.Steps[2].Actor = true, 8
	var b strings.Builder
	(&Trace{Chart: c, Total: 200, FailedAt: 200, Width: 60}).Table(&b)
	for _, want := range []string{
		"    3 | g8 lock mutex#3\n", "... steps 8 to 40 left out, with >21 >31\n", ">41 |", ">71 |", ">151 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "   72 | ") {
		t.Errorf("a step inside of a library is shown:\n%s", b.String())
	}
}
