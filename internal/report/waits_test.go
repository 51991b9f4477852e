package report

import (
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chart"
)

// The report contains the shortest cycle, and does not repeat the lines about waits. If several actors could each end a
// wait, they share a line if they wait for the same thing.
func TestCycle(t *testing.T) {
	of := []chart.Actor{{Name: "main"}, {Name: "w[0]"}, {Name: "w[1]"}, {Name: "w[2]"}}
	tr := &Trace{Chart: &chart.Chart{Actors: "fibers", Of: of}, Complete: true}
	for i := range 3 {
		mu := Wish{Use: chart.Use{Object: 1, What: chart.Hold}, Text: "to lock mu", How: "held by", By: []Hold{{0, 3, "a.go:7"}}}
		tr.Waiting = append(tr.Waiting, Wait{Actor: i + 1, Does: "waits", Wishes: []Wish{mu}, At: "a.go:2", Same: "mu"})
		tr.Events = append(tr.Events, Event{Actor: i + 1, Uses: []chart.Use{{Object: 2, What: chart.Get, N: 1}}})
	}
	c := Wish{Use: chart.Use{Object: 2, What: chart.Put}, Text: "to send to c", Name: "c", Ends: "receive from"}
	tr.Waiting = append(tr.Waiting, Wait{Actor: 0, Does: "waits", Wishes: []Wish{c}, At: "a.go:1"})
	var b strings.Builder
	tr.SayWaits(&b, func([]Wait) string { return "" })
	tr.SayCauses(&b)
	want := "w[0..2] wait to lock mu, held by main since step 3 (at a.go:7), at a.go:2\nmain waits to send to c, at a.go:1\n" +
		"cycle:\n  main waits to send to c, from which only w[0..2] of the remaining fibers received\n  w[0..2] wait for main\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if len(tr.FindCycle()) != 2 {
		t.Errorf("a cycle of %v", tr.FindCycle())
	}
	free := &Trace{Chart: &chart.Chart{Actors: "fibers", Of: of}, Events: tr.Events, Complete: true}
	free.Waiting = append(free.Waiting, tr.Waiting[:2]...)
	free.Waiting = append(free.Waiting, Wait{Actor: 3, Does: "waits", Wishes: []Wish{{Text: "for time to pass"}}}, tr.Waiting[3])
	if who := free.FindCycle(); who != nil { // the last of them could help
		t.Errorf("a cycle of %v", who)
	}
}

// A cycle of locks is also found among many actors.
func TestCycleAmongMany(t *testing.T) {
	tr := &Trace{Chart: &chart.Chart{Actors: "goroutines", Of: make([]chart.Actor, 300)}}
	for i := range tr.Of {
		x := Wish{Text: "to lock mu", How: "held by", By: []Hold{{Actor: 298 + (i+1)%2}}}
		tr.Waiting = append(tr.Waiting, Wait{Actor: i, Does: "waits", Wishes: []Wish{x}})
	}
	if who := tr.FindCycle(); len(who) != 2 || who[0]+who[1] != 298+299 {
		t.Errorf("a cycle of %v", who)
	}
}

// If there are many actors, the report names the one that reports the failure, and others of the same name.
func TestWhoSaysSo(t *testing.T) {
	c := &chart.Chart{Actors: "fibers", Of: make([]chart.Actor, 12)}
	for i, name := range []string{"main", "one", "two", "led#3", "led#4"} {
		c.Of[i].Name = name
	}
	c.Of[3].Why = "waits for time to pass, at a.go:9"
	c.Steps = []chart.Step{
		{Actor: 0, Number: 1}, {Actor: 0, Number: 2}, {Actor: 1, Number: 3}, {Actor: 2, Number: 4},
		{Actor: 4, Kind: chart.Said, Text: "error: 2 leaders", Title: "at a.go:7"},
	}
	c.Starts = []chart.Start{{Step: 0, Actor: 1}, {Step: 1, Actor: 2}, {Step: 2, Actor: 3}, {Step: 3, Actor: 4}}
	var b strings.Builder
	(&Trace{Chart: c, Failing: []int{4}}).SayWho(&b)
	if want := "led#4 of two says so, at a.go:7\n" +
		"led#3 of one has the same name, and waits for time to pass, at a.go:9\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
