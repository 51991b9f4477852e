package report

import (
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chart"
)

// The report describes a twin, and says so if a failure has none.
func TestTwinsInWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{found(&Divergence{Tried: 1200, Later: 3}), "of 1,200 schedules that were tried, this one passes and has the most in common"},
		{found(&Divergence{Tried: 7, Sure: true, Later: 3}), "no schedule that passes has more in common with this one"},
		{found(&Divergence{Tried: 7, Sure: true, Later: 1146}), "no schedule that passes has more in common with this one; " +
			"the failure comes 1,146 steps later, so the cause may be there, and not where the two diverge"},
		{found(&Divergence{Tried: 7, Sure: true, Later: 1146, Own: true}), "no schedule that passes has more in common with " +
			"this one; the failure comes 1,146 steps later"},
		{found(&Divergence{Tried: 7, Sure: true, Spared: true, Later: 3}),
			"no schedule without further faults that passes has more in common with this one"},
		{found(&Divergence{Tried: 7, Spared: true, Later: 3}),
			"of 7 schedules without further faults that were tried, this one passes and has the most in common"},
		{alone("test", 0, 0, true), "there was nothing to decide: the test fails in its only schedule"},
		{alone("test", 3, 7, true), "the test fails in all its 8 schedules"},
		{alone("test", 3, 1200, false), "the test also fails in 1,200 other schedules; none that passes was found"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// After the first steps, the steps side by side have the first use by each other actor of what both schedules use where
// they diverge.
func TestRivalsSideBySide(t *testing.T) {
	var of []chart.Actor
	var steps []chart.Step
	add := func(actor int, text, on string) {
		steps = append(steps, chart.Step{Actor: actor, Text: text, On: []string{on}})
	}
	for i := range 12 {
		of = append(of, chart.Actor{Name: "w" + string(rune('a'+i))})
	}
	for range 7 {
		add(0, "lock mu", "mu")
		add(0, "send c", "c")
	}
	add(1, "send c", "c")
	add(0, "lock mu", "mu")
	for i := 2; i < 10; i++ {
		add(i, "lock mu", "mu")
		add(i, "unlock mu", "mu")
	}
	var b strings.Builder
	beside(&b, "", &Divergence{Fails: Listing{of, steps}, Passes: Listing{of, steps[:1]}, Verdict: "panic"}, 60)
	for _, want := range []string{"wc lock mu", "wi lock mu", "... mu is also used by 1 more", "panic"} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "unlock mu") || strings.Contains(b.String(), "wj ") {
		t.Errorf("there are other steps in\n%s", b.String())
	}
}

// In a deadlock with a certain cycle, the report leaves the divergence out if it involves neither the actors of the
// cycle nor what they wait for.
func TestDivergenceApartFromTheCycle(t *testing.T) {
	for _, c := range []struct {
		name         string
		actor, other int
		on           string
		change       func(tr *Trace)
		want         bool
	}{
		{"other actors", 2, 3, "log", nil, true},
		{"an actor of the cycle", 1, 3, "log", nil, false},
		{"an actor of the cycle in the twin", 2, 1, "log", nil, false},
		{"an object of the cycle", 2, 3, "mu", nil, false},
		{"an error", 2, 3, "log", func(tr *Trace) { tr.Stuck = false }, false},
		{"no cycle", 2, 3, "log", func(tr *Trace) { tr.Waiting = tr.Waiting[:1] }, false},
		{"a likely cycle", 2, 3, "log", func(tr *Trace) {
			tr.Waiting[0].Wishes[0].By = append(tr.Waiting[0].Wishes[0].By, Hold{Actor: 3})
		}, false},
		{"no twin", 2, 3, "log", func(tr *Trace) { tr.Twin = nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := traceOf(4)
			tr.Stuck, tr.Total = true, 3
			tr.locks(0, 1)
			tr.locks(1, 0)
			tr.Steps = []chart.Step{{Number: 1, Actor: c.actor, Text: "lock " + c.on, On: []string{c.on}},
				{Number: 2, Actor: 0, Text: "lock mu", On: []string{"mu"}},
				{Number: 3, Actor: 1, Text: "lock mu", On: []string{"mu"}}}
			tr.Of[0].Since, tr.Of[1].Since = 1, 2
			tr.Twin = &chart.Twin{Chart: &chart.Chart{Of: tr.Of, Steps: []chart.Step{{Actor: c.other, Text: "lock log"}}}}
			if c.change != nil {
				c.change(tr)
			}
			if got := tr.Unrelated(); got != c.want {
				t.Fatalf("it is unrelated: %v", got)
			}
			if c.want {
				var b strings.Builder
				tr.Table(&b)
				tr.SayDivergence(&b, &Divergence{Why: "a ran"})
				if strings.Contains(b.String(), "diverges") || strings.Contains(b.String(), Mark) {
					t.Error(b.String())
				}
			}
		})
	}
}
