package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// A goroutine has one name in the failing schedule and in its twin, even if the goroutines begin in another order, or
// if the twin starts more of them.
func TestOneNameInBothSchedules(t *testing.T) {
	of := &tested{test: "TestX", modulePath: "example.com/m", path: "example.com/m"}
	schedule := func(actors ...actor) *record {
		r := &record{tested: of, actors: map[int]*actor{}, failure: &failure{}}
		for i := range actors {
			a := &actors[i]
			if a.id = i + 1; i > 1 {
				a.made = place{file: "example.com/m/" + a.made.file, line: 7}
			} else {
				a.made = place{function: "testing.tRunner"}
			}
			r.actors[a.id] = a
		}
		return r
	}
	at := func(file string, parent int) actor { return actor{parent: parent, made: place{file: file}} }
	// The test starts a and b, and each of them one of c. In the twin b is first, and a starts a second one.
	r := schedule(actor{}, actor{parent: 1}, at("a.go", 2), at("b.go", 2), at("c.go", 3), at("c.go", 4), at("d.go", 2))
	r.twin = &twin{record: schedule(actor{}, actor{parent: 1}, at("a.go", 2), at("b.go", 2), at("c.go", 4), at("c.go", 3),
		at("c.go", 3), at("d.go", 2), at("d.go", 2))}
	names := func(r *record) string {
		var all []string
		names := r.shortNames()
		for _, id := range slices.Sorted(maps.Keys(names)) {
			all = append(all, names[id])
		}
		return strings.Join(all, ", ")
	}
	want := "clock, harness, TestX, a.go:7, b.go:7, c.go:7 (1), c.go:7 (2), d.go:7 (1)"
	if got := names(r); got != want {
		t.Errorf("the names are %s, want %s", got, want)
	}
	want = "clock, harness, TestX, a.go:7, b.go:7, c.go:7 (2), c.go:7 (1), c.go:7 (3), d.go:7 (1), d.go:7 (2)"
	if got := names(r.twin.record); got != want {
		t.Errorf("in the twin the names are %s, want %s", got, want)
	}
}
