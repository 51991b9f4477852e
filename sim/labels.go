package sim

import (
	"fmt"

	"github.com/coir-go/coir/internal/report"
)

// This file makes the labels of fibers: their names, with a number if several fibers of the failing schedule or of its
// twin have the name. In the twin, fibers may begin in another order. A reader assumes that fibers with the same label
// are the same, so a label stands for the same fiber in both schedules: see report.Births.

// births returns the births of the fibers, each as a number that it has in all schedules; 0 if it is not known.
func (r *findings) births(known report.Births) []int {
	all, add := make([]int, len(r.fibers)), known.Schedule()
	all[0] = -1
	for _, s := range r.starts() { // a parent comes before its children
		if parent := all[r.trace[s.Step].fiber]; parent != 0 {
			all[s.Actor] = add(parent, r.names[s.Actor]+"\n"+r.fibers[s.Actor].f.SpawnSite())
		}
	}
	return all
}

// same returns for each fiber of a twin the index of the same fiber of the schedule, or -1. Fibers whose births are not
// known are the same if they have the same index and name.
func (r *findings) same(twin *findings) []int {
	known := report.Births{}
	of, all := map[int]int{}, make([]int, len(twin.fibers))
	here, there := r.births(known), twin.births(known)
	for i, n := range here {
		of[n] = i
	}
	taken := make([]bool, len(r.fibers))
	for i, n := range there {
		k, ok := of[n]
		if all[i] = -1; ok && n != 0 {
			all[i], taken[k] = k, true
		}
	}
	for i := range all {
		if all[i] < 0 && i < len(here) && here[i]*there[i] == 0 && !taken[i] && r.names[i] == twin.names[i] {
			all[i], taken[i] = i, true
		}
	}
	return all
}

// label sets the labels. failing is the schedule whose twin this one is, or nil.
func (r *findings) label(failing *findings) {
	count := map[string]int{}
	add := func(f *Failure) {
		n := map[string]int{}
		for _, c := range f.fibers {
			name := c.f.Name()
			n[name]++
			count[name] = max(count[name], n[name])
		}
	}
	add(r.Failure)
	var of []int
	next := 0 // the number of the next fiber that only the twin has
	if failing != nil {
		add(failing.Failure)
		of, next = failing.same(r), len(failing.fibers)
	} else if r.twin != nil && r.twin.passed != nil {
		add(r.twin.passed)
	}
	for i, name := range r.names {
		number := i
		if of != nil {
			if number = of[i]; number < 0 {
				number, next = next, next+1
			}
		}
		if r.labels[i] = shown(name); count[name] > 1 || name == "" {
			r.labels[i] = fmt.Sprintf("%s#%d", shown(name), number)
		}
	}
}
