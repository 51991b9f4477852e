package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chart"
)

// traceOf returns a complete trace with fibers a, b, c and so on.
func traceOf(n int) *Trace {
	c := &chart.Chart{Actors: "fibers"}
	for i := range n {
		c.Of = append(c.Of, chart.Actor{Name: string(rune('a' + i))})
	}
	return &Trace{Chart: c, Complete: true}
}

// channel is the number of the only channel.
const channel = 7

// did adds an operation of an actor on the channel that has succeeded.
func (t *Trace) did(actor int, what chart.Effect) {
	use := []chart.Use{{Object: channel, What: what, N: 1}}
	t.Events = append(t.Events, Event{Actor: actor, Step: len(t.Events) + 1, Uses: use, Out: Done})
}

// sends and receives add an actor that waits to send to the channel, or to receive from it.
func (t *Trace) sends(actor int) {
	x := Wish{Text: "to send to ch7", Name: "ch7", Ends: "receive from"}
	x.Use = chart.Use{Object: channel, What: chart.Put}
	t.Waiting = append(t.Waiting, Wait{Actor: actor, Does: "waits", Wishes: []Wish{x}})
}

func (t *Trace) receives(actor int) {
	x := Wish{Text: "to receive from ch7", Name: "ch7", Ends: "send to"}
	x.Use = chart.Use{Object: channel, What: chart.Get}
	t.Waiting = append(t.Waiting, Wait{Actor: actor, Does: "waits", Wishes: []Wish{x}})
}

// joins adds an actor that waits for the end of others.
func (t *Trace) joins(actor int, of ...int) {
	x := Wish{Text: "for " + t.List(of), Of: of}
	t.Waiting = append(t.Waiting, Wait{Actor: actor, Does: "waits", Wishes: []Wish{x}})
}

// locks adds an actor that waits for a lock that others hold.
func (t *Trace) locks(actor int, of ...int) {
	x := Wish{Text: "to lock mu", Name: "mu", How: "held by", Any: true}
	for _, i := range of {
		x.By = append(x.By, Hold{Actor: i})
	}
	t.Waiting = append(t.Waiting, Wait{Actor: actor, Does: "waits", Wishes: []Wish{x}})
}

// Arrows of the graph, and what the report says about them. Fiber a is 0, b is 1, and so on.
func TestWaitForGraph(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *Trace)
		want string
	}{
		{"a join and a lock", func(t *Trace) {
			t.joins(0, 1)
			t.locks(1, 0)
		}, "cycle:\n  a waits for b\n  b waits for a\n"},
		{"one of two holders may unlock", func(t *Trace) {
			t.joins(0, 1)
			t.locks(1, 0, 2)
		}, "likely cycle:\n  a waits for b\n  b waits for a\n"},
		{"an actor that has ended ends no wait", func(t *Trace) {
			t.Of[1].Ended = true
			t.joins(0, 1)
		}, ""},
		{"an actor does not wait for itself", func(t *Trace) { t.locks(0, 0) }, ""},
		{"the only remaining user of the other side", func(t *Trace) {
			t.did(1, chart.Get)
			t.sends(0)
			t.joins(1, 0)
		}, "cycle:\n  a waits to send to ch7, which only b of the remaining fibers has also used\n  b waits for a\n"},
		{"another actor could use the other side where the trace does not show it", func(t *Trace) {
			t.did(1, chart.Get)
			t.Hidden = []bool{false, false, true}
			t.sends(0)
			t.joins(1, 0)
		}, ""},
		{"a trace without its beginning", func(t *Trace) {
			t.did(1, chart.Get)
			t.Complete = false
			t.sends(0)
			t.joins(1, 0)
		}, ""},
		{"the only receiver now sends", func(t *Trace) {
			t.did(0, chart.Get)
			t.sends(0)
		}, "cycle:\n  a waits to send to ch7, from which only this fiber received, and now waits to send to it\n"},
		{"the only receivers now send", func(t *Trace) {
			t.did(0, chart.Get)
			t.did(1, chart.Get)
			t.sends(0)
			t.sends(1)
		}, "cycle:\n  a waits to send to ch7, from which only a, b received, and now wait to send to it\n" +
			"  b waits to send to ch7, from which only a, b received, and now wait to send to it\n"},
		{"a channel used as a lock", func(t *Trace) {
			t.did(2, chart.Put)
			t.did(1, chart.Get)
			t.Of[2].Ended = true
			t.Hidden = []bool{false, false, false, true}
			t.receives(0)
			t.joins(1, 0)
		}, "likely cycle:\n  a waits to receive from ch7, from which b has taken a value at step 2\n  b waits for a\n"},
		{"each of two could receive, and one of them can", func(t *Trace) {
			t.did(1, chart.Get)
			t.did(2, chart.Get)
			t.sends(0)
			t.joins(1, 0)
			t.joins(2, 3)
		}, ""},
		{"no other fiber has used it", func(t *Trace) { t.receives(0) }, "no other fiber has used ch7 so far\n"},
		{"those that used it have ended", func(t *Trace) {
			t.did(1, chart.Put)
			t.Of[1].Ended = true
			t.receives(0)
		}, "no other remaining fiber has used ch7 so far: b used it, and ended\n"},
		{"all others have ended", func(t *Trace) {
			for i := 1; i < 4; i++ {
				t.Of[i].Ended = true
			}
			t.receives(0)
		}, "no fiber is left to send to ch7\n"},
		{"all others wait for it", func(t *Trace) {
			t.receives(0)
			t.receives(1)
			t.joins(2, 1)
			t.joins(3, 2)
		}, "no fiber is left to send to ch7\n"},
		{"a goroutine from outside could help", func(t *Trace) {
			t.Outside = true
			t.receives(0)
		}, ""},
	} {
		tr := traceOf(4)
		c.make(tr)
		var b strings.Builder
		tr.SayCauses(&b)
		if b.String() != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, b.String(), c.want)
		}
	}
}

// Of several cycles, the graph has the shortest. An arrow to one of several actors counts only if each of them waits in
// the end for the actor that it comes from.
func TestShortestCycle(t *testing.T) {
	for _, c := range []struct {
		graph [][]Edge
		want  []int
	}{
		{nil, nil},
		{[][]Edge{{{To: 1}}, {{To: 2}}, {}}, nil},
		{[][]Edge{{{To: 1}}, {{To: 2}}, {{To: 0}, {To: 1}}}, []int{1, 2}},
		{[][]Edge{{{To: 0}}}, []int{0}},
		{[][]Edge{{{To: 1, OneOf: []int{1, 2}}, {To: 2, OneOf: []int{1, 2}}}, {{To: 0}}, {}}, nil},
		{[][]Edge{{{To: 1, OneOf: []int{1, 2}}, {To: 2, OneOf: []int{1, 2}}}, {{To: 0}}, {{To: 1}}}, []int{0, 1}},
		{[][]Edge{{{To: 1, OneOf: []int{1, 2}}}, {{To: 0}}, {{To: 1, Likely: true}}}, nil},
	} {
		if got, way := cycle(c.graph); !slices.Equal(got, c.want) || len(way) != len(got) {
			t.Errorf("got %v, over %d arrows, want %v", got, len(way), c.want)
		}
	}
}

// An actor is abandoned if no moving actor has used the other side of what it waits for. A wait for time is not.
func TestAbandoned(t *testing.T) {
	tr := traceOf(3)
	tr.did(1, chart.Put)
	tr.receives(0)
	if tr.Abandoned([]bool{false, true, false}) {
		t.Error("b moves, and has sent to the channel")
	}
	if !tr.Abandoned([]bool{false, false, true}) {
		t.Error("b does not move, and no other fiber has used the channel")
	}
	tr.Waiting[0].Wishes = append(tr.Waiting[0].Wishes, Wish{Timed: true})
	if tr.Abandoned([]bool{false, false, true}) {
		t.Error("the wait ends in time")
	}
}
