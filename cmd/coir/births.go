package main

import (
	"cmp"
	"fmt"
)

// This file names goroutines. A report compares two schedules. Their goroutines may begin in different orders, and then
// have different numbers in the two records. A reader assumes that goroutines with the same name are the same, so a
// name must stand for the same goroutine in both schedules: see report.Births. The goroutine of a request is its own
// parent.

// births returns the births of the goroutines of a schedule, each as a number that it has in all schedules.
func (n *naming) births(r *record) map[int]int {
	births, add := map[int]int{}, n.known.Schedule()
	for _, id := range r.ids() { // a parent comes before its children
		if a := r.actors[id]; a.of == 0 {
			births[id] = add(births[a.parent], a.made.String()+" "+a.madeBy)
		}
	}
	for _, id := range r.ids() {
		if a := r.actors[id]; a.of != 0 {
			births[id] = add(births[a.of], a.role)
		}
	}
	return births
}

// nameGoroutines names the goroutines of some schedules. A goroutine has the same name in all of them.
func (n *naming) nameGoroutines(all ...*record) {
	type named struct {
		birth int
		base  string
	}
	same, of := map[string]map[named]int{}, map[*actor]named{} // the numbers of those with the same base
	for _, r := range all {
		births := n.births(r)
		for _, id := range r.ids() {
			a := r.actors[id]
			x := named{births[id], r.baseName(a)}
			if id == 1 && x.base == r.test {
				n.goroutines[a] = "harness"
				continue
			}
			if same[x.base] == nil {
				same[x.base] = map[named]int{}
			}
			if of[a] = x; same[x.base][x] == 0 {
				same[x.base][x] = len(same[x.base]) + 1
			}
		}
	}
	for a, x := range of {
		n.goroutines[a] = x.base
		if len(same[x.base]) > 1 {
			n.goroutines[a] = fmt.Sprintf("%s (%d)", x.base, same[x.base][x])
		}
	}
}

// baseName returns the name of a goroutine without a number.
func (r *record) baseName(a *actor) string {
	if name := cmp.Or(r.kindOfName(a), a.role); name != "" {
		return name
	}
	if o := r.origin(a); o.at.file != "" {
		return o.String()
	}
	return fmt.Sprint("goroutine ", a.id)
}
