package report

import (
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chart"
)

// The shortest cycle is told, with the lines; actors that could each end a wait are one if they wait for the same.
func TestCycle(t *testing.T) {
	of := []chart.Actor{{Name: "main"}, {Name: "w[0]"}, {Name: "w[1]"}, {Name: "w[2]"}}
	tr := &Trace{Chart: &chart.Chart{Actors: "fibers", Of: of}}
	for i := range 3 {
		tr.Waiting = append(tr.Waiting, Wait{Actor: i + 1, Need: "waits to lock mu", At: "a.go:2", Same: "mu"})
	}
	tr.Waiting = append(tr.Waiting, Wait{Actor: 0, Need: "waits to send to c", At: "a.go:1"})
	all := []int{1, 2, 3}
	graph := func(last ...Edge) [][]Edge {
		to := func(i int) Edge { return Edge{To: i, Why: "waits to send to c", OneOf: all} }
		held := []Edge{{To: 0, Why: "waits to lock mu"}}
		return [][]Edge{{to(1), to(2), to(3)}, held, held, last}
	}
	var b strings.Builder
	who, way := Cycle(graph(Edge{To: 0, Why: "waits to lock mu"}))
	tr.SayWaits(&b, func([]Wait) string { return "" })
	tr.SayCycle(&b, who, way)
	want := "w[0..2] wait to lock mu, at a.go:2\nmain waits to send to c, at a.go:1\n" +
		"cycle:\n  main waits to send to c, at a.go:1\n  w[0..2] wait to lock mu, at a.go:2\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if who, _ := Cycle(graph()); who != nil { // the last of them could help
		t.Errorf("a cycle of %v", who)
	}
}

// Of many actors the report says which one says that the schedule fails, and which other has its name.
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
