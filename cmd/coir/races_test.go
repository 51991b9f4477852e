package main

import (
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

const raceReport = `WARNING: DATA RACE
Read at 0x00c00001e250 by goroutine 37:
  example.com/u.worker()
      /u/u_test.go:148 +0x8e

Previous write at 0x00c00001e250 by goroutine 36:
  sync/atomic.Store()
      /go/src/sync/atomic/doc.go:9 +0x1
  example.com/u.worker()
      /u/u_test.go:151 +0xb7

Goroutine 37 (running) created at:
  example.com/u.TestRace()
      /u/u_test.go:140 +0x7e

Goroutine 36 (finished) created at:
  example.com/u.TestRace()
      /u/u_test.go:140 +0x7e
`

// The goroutines in a report of the race detector have the names of other reports, if these are certain.
func TestNamesInReportsOfRaces(t *testing.T) {
	for n, want := range map[int][]string{
		2: {"by goroutine 37 [u_test.go:140 (2)]:", "by goroutine 36 [u_test.go:140 (1)]:",
			"Goroutine 37 [u_test.go:140 (2)] (running)"},
		3: {"by goroutine 37 [one of 3 at u_test.go:140]:"},
	} {
		of := &tested{goroot: "/go", modulePath: "example.com/u", moduleDir: "/u"}
		r := &record{tested: of, failure: &failure{kind: coir.KindRace}, shown: raceReport, actors: map[int]*actor{}}
		for i := range n {
			r.actors[i+3] = &actor{id: i + 3, parent: 2, made: place{"/u/u_test.go", 140, "example.com/u.TestRace"}}
		}
		got := r.withRaceNames(raceReport)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%d goroutines: there is no %q in\n%s", n, text, got)
			}
		}
		if got := r.raced(); got != "read at u_test.go:148, write at u_test.go:151" {
			t.Errorf("the accesses are %q", got)
		}
	}
}
