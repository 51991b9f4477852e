package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/cmd/coir/measure/internal/peers"
)

// page is the document with the tables, which are between the comments begin and end.
const (
	page  = "docs/guide/coir-test-services.md"
	begin = "<!-- services: go run ./cmd/coir/measure/services -update -->\n"
	end   = "<!-- end of services -->\n"
)

// kinds lists the kinds of failures that services expect.
var kinds = []string{"deadlock", "leak", "panic", "fail"}

// says describes, for each peer, the contents of an alarm.
var says = map[string]string{
	"go test":       "the message of the test, or the stack of the panic; all stacks of a hang, after `-timeout`",
	"go test -race": "as go test; the stacks of both accesses of a race",
	"goleak":        "as go test; the stacks of the goroutines that are left",
	"synctest":      "as go test; the stacks of the goroutines of a deadlock",
}

// tables returns the results as Markdown tables.
func tables(root string, all []*service) (string, error) {
	describe := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*")
	describe.Dir = root
	commit, err := describe.Output()
	if err != nil {
		return "", fmt.Errorf("git describe: %w", err)
	}
	var b strings.Builder
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	count := func(name string, is func(*service) bool, more ...string) {
		cells := []string{name, number(all, is)}
		for _, kind := range kinds {
			cells = append(cells, number(all, func(s *service) bool { return s.Kind == kind && is(s) }))
		}
		row(append(cells, more...)...)
	}
	fmt.Fprintf(&b, "%s, %s/%s, %d processors, %s, commit %s.\ncoir: at most %v a bug, %d schedules a twin. "+
		"Peers: %v each for a bug, and for a twin.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), *budget, *twins, *each)
	row("", "all", strings.Join(kinds, " | "), "replayed", "alarms in twins", "what an alarm says")
	row("---", "---:"+strings.Repeat(" | ---:", len(kinds)), "---:", "---:", "---")
	count("services", func(*service) bool { return true }, "", "", "")
	count("coir test", (*service).found, number(all, (*service).replayed),
		number(all, func(s *service) bool { return s.fixed.Action != "pass" }),
		"the goroutines, what they wait for or did, and the lines: in "+number(all, (*service).explained)+" reports")
	for _, peer := range peers.Names {
		count(peer, func(s *service) bool { return s.peers[peer].What != "" }, "",
			number(all, func(s *service) bool { return s.cannot[peer] != "" }), says[peer])
	}
	b.WriteString("\n")
	row(heads...)
	row("---", "---", "---", "---:", "---:", "---", "---", "---"+strings.Repeat(" | ---", len(peers.Names)-1))
	for _, s := range all {
		row(append([]string{s.String()}, s.cells()...)...)
	}
	return b.String(), nil
}

// number returns the number of services for which is returns true, as text.
func number(all []*service, is func(*service) bool) string {
	n := 0
	for _, s := range all {
		if is(s) {
			n++
		}
	}
	return fmt.Sprint(n)
}

// heads contains the column headings of the table of services. The method cells returns the cells of a service without
// its name.
var heads = append([]string{"service", "expected", "coir test", "schedule", "s", "replayed", "twin"}, peers.Names...)

func (s *service) cells() []string {
	expected := s.Kind
	if s.Faults {
		expected += ", with faults"
	}
	schedule, seconds, replayed := "", "", ""
	if f := s.bug.Failure; f != nil {
		schedule, seconds = fmt.Sprint(f.Schedule), fmt.Sprintf("%.1f", s.bug.Elapsed)
		if replayed = "no"; s.replayed() {
			replayed = "yes"
		}
	}
	twin := outcome(s.fixed)
	if s.fixed.Action == "pass" {
		twin = fmt.Sprintf("passes %d", s.fixed.Schedules)
	}
	if n := s.fixed.Uncontrolled; n > 0 {
		twin += fmt.Sprintf(", %d not controlled", n)
	}
	cells := []string{expected, outcome(s.bug), schedule, seconds, replayed, twin}
	for _, peer := range peers.Names {
		switch alarm := s.cannot[peer]; {
		case *each == 0:
			cells = append(cells, "")
		case alarm != "":
			cells = append(cells, "cannot: "+alarm)
		default:
			v := s.peers[peer]
			cells = append(cells, fmt.Sprintf("%s (%d)", v, v.Runs))
		}
	}
	return cells
}

// outcome returns the kind of a failure, or - for a test that passes.
func outcome(e events.Event) string {
	switch {
	case e.Failure != nil:
		return e.Failure.Kind
	case e.Action == "pass":
		return "-"
	case e.Action == "skip":
		return "not controlled"
	}
	return "died"
}
