package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The model of contention. A place is something that workers write and that only one core can have at a time: a word,
// or a lock and what it guards. Cores are customers, and places are servers with a line of waiting cores. An operation
// visits some places, and works by itself for the rest of its time. Mean value analysis solves such a network exactly
// if the times at a place are random (exponential). Regular times make shorter lines, so the model overestimates the
// waits near the point where a place is full. The throughput of a full place, one core after the other, does not depend
// on this.
//
// The model leaves out what costs more than waiting: a goroutine that waits long for a lock goes to sleep, and waking
// it takes some microseconds. It also leaves out memory, caches and the collector.

// A place has the number of visits of one operation, the cache lines that move with each visit, and how long a core
// holds the place if no other core wants it, in nanoseconds.
type place struct {
	name                string
	visits, lines, hold float64
}

// demand is how long an operation occupies the place: the lines come from another core, unless the same core was the
// last visitor.
func (p place) demand(cores int, line float64) float64 {
	return p.visits * (p.hold + p.lines*line*float64(cores-1)/float64(cores))
}

// cycle returns the time of an operation on each of the cores. alone is its time on one core.
func cycle(cores int, alone, line float64, places []place) float64 {
	own := alone
	for _, p := range places {
		own -= p.visits * p.hold
	}
	waiting := make([]float64, len(places)) // cores at the place, on average
	there := make([]float64, len(places))   // the time of an operation there
	var all float64
	for n := 1; n <= cores; n++ {
		all = max(0, own)
		for i, p := range places {
			there[i] = p.demand(cores, line) * (1 + waiting[i])
			all += there[i]
		}
		for i := range places {
			waiting[i] = float64(n) * there[i] / all
		}
	}
	return all
}

// fullest returns the place that is full first, and how many operations per second it lets through.
func fullest(cores int, line float64, places []place) (at place, most float64) {
	for _, p := range places {
		if d := p.demand(cores, line); most == 0 || 1e9/d < most {
			at, most = p, 1e9/d
		}
	}
	return at, most
}

// An operation of design/0012, with the places that all workers write.
type operation struct {
	name   string
	places []place
}

// counted reads the operations from the table of words in design/0012. Words of one struct are one place, because they
// are on one cache line or next to it. A lock occupies the place for hold, and moves a line that it guards; a changed
// word needs one line, and is occupied for add. A worker must also take a fiber that is woken from outside from the
// global queue, which it locks as the waker does.
func counted(text string, hold, add float64) ([]operation, error) {
	var ops []operation
	for line := range strings.Lines(text) {
		cell := strings.Split(line, " | ")
		if len(cell) != 6 || strings.HasPrefix(line, "| operation") {
			continue
		}
		name := strings.TrimPrefix(cell[0], "| ")
		if len(ops) == 0 || ops[len(ops)-1].name != name {
			ops = append(ops, operation{name: name})
		}
		if cell[2] != "all workers" {
			continue
		}
		var n [3]float64 // locks, changes, stores
		for i := range n {
			var err error
			if n[i], err = strconv.ParseFloat(strings.Trim(cell[3+i], " |\n"), 64); err != nil {
				return nil, fmt.Errorf("a row of words: %s: %w", strings.TrimSpace(line), err)
			}
		}
		op := &ops[len(ops)-1]
		op.visit(cell[1][:strings.LastIndex(cell[1], ".")], n[0], 2, hold)
		op.visit(cell[1][:strings.LastIndex(cell[1], ".")], n[1]+n[2], 1, add)
	}
	for i := range ops {
		if op := &ops[i]; strings.HasPrefix(op.name, "wake from outside") { // the table lists only what the waker writes
			op.visit("sched.list", 1, 2, hold)
			op.visit("sched.list", 1, 1, add)
		}
	}
	if len(ops) == 0 {
		return nil, fmt.Errorf("no row of the table of words was found in design/0012")
	}
	return ops, nil
}

// visit adds visits to a place. They count as one visit that is as long as all of them.
func (op *operation) visit(name string, visits, lines, hold float64) {
	for i := range op.places {
		if p := &op.places[i]; p.name == name {
			p.lines += visits * lines
			p.hold += visits * hold
			return
		}
	}
	if visits > 0 {
		op.places = append(op.places, place{name, 1, visits * lines, visits * hold})
	}
}
