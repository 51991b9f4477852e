package report

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chart"
)

// numbers returns the numbers of the rows of a table, and what it leaves out.
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

// Of many actors those have a column that matter: one that fails, and another of the same name that has not ended; and
// not those that only wait.
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
	all := (&Trace{Chart: c, Total: 30, FailedAt: 26, Failing: []int{25}}).columns(c.Steps, -1)
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
