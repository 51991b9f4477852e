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
