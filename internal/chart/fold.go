package chart

import "slices"

// A long trace is mostly repetition: a ticker ticks, a worker takes one job after the other. Rows folds each repetition
// into one row. It begins with actors that wait for time, because their steps come between those of the others, which
// otherwise would not repeat. If there are still too many rows for a text, Thin keeps those that a reader looks for:
// the faults, the end, the last steps of each actor, and the steps before them.

// Run is a part of a sequence that begins at From: Length elements, repeated Times times.
type Run struct{ From, Length, Times int }

const longestPeriod = 8

// Fold cuts a sequence into runs. It folds a single element that occurs at least twice in a row, and a longer sequence
// that occurs at least three times; fewer are not worth a fold. same compares an element with a later one.
func Fold[T any](all []T, same func(first, later T) bool) (runs []Run) {
	for at := 0; at < len(all); {
		best := Run{at, 1, 1}
		for length := 1; length <= longestPeriod && at+2*length <= len(all); length++ {
			n := length
			for at+n < len(all) && same(all[at+n%length], all[at+n]) {
				n++
			}
			times := n / length
			if times >= 2 && (length == 1 || times >= 3) && (times-1)*length > (best.Times-1)*best.Length {
				best = Run{at, length, times}
			}
		}
		runs = append(runs, best)
		at += best.Length * best.Times
	}
	return runs
}

// Row is a row of a report: a step, or a repetition of steps, or a gap, where steps are left out.
type Row struct {
	Step  int   // the step; the first one of a repetition or a gap
	Last  int   // the last step of a repetition or a gap
	Steps []int // the steps that a repetition repeats, in order
	Again int   // how often it repeats them
	Left  int   // the number of steps in a gap
}

// count returns the number of steps that a row stands for.
func (r *Row) count() int { return max(1, r.Again*len(r.Steps)) }

// Rows returns the rows of a report of steps, and for each step the row of the repetition that contains it, or -1. A
// pinned step is in no repetition, and no repetition crosses the split.
func Rows(steps []Step, pinned func(step int) bool, split int) (rows []Row, in []int) {
	same := func(a, b int) bool {
		x, y := &steps[a], &steps[b]
		return x.Actor == y.Actor && x.Text == y.Text && x.Title == y.Title && x.Kind == y.Kind &&
			y.Switch == "" && !pinned(a) && !pinned(b) && (a < split) == (b < split)
	}
	last := make([]int, len(steps)) // the last step of the repetition that contains each step, or -1
	for i := range last {
		last[i] = -1
	}
	items := foldTickers(steps, same, last)
	alike := func(a, b Row) bool { return a.Again == 0 && b.Again == 0 && same(a.Step, b.Step) }
	for _, run := range Fold(items, alike) {
		rows = append(rows, items[run.From:run.From+run.Length]...)
		if run.Times == 1 {
			continue
		}
		again := Row{Step: items[run.From].Step, Again: run.Times - 1}
		all := items[run.From : run.From+run.Length*run.Times]
		again.Last = all[len(all)-1].Step
		for i, item := range all {
			if i < run.Length {
				again.Steps = append(again.Steps, item.Step)
			} else {
				last[item.Step] = again.Last
			}
		}
		rows = append(rows, again)
	}
	at := map[int]int{} // rows of repetitions, by their last step
	for k, r := range rows {
		if r.Again > 0 {
			at[r.Last] = k
		}
	}
	for i := range last {
		if last[i] >= 0 {
			last[i] = at[last[i]]
		}
	}
	return rows, last
}

// foldTickers returns a row for each step, but folds the repetitions of an actor that waits for time. The row of a
// repetition is where it ends. foldTickers sets last for each step in a repetition.
func foldTickers(steps []Step, same func(a, b int) bool, last []int) (items []Row) {
	var own [][]int // the steps of each actor
	for i := range steps {
		for len(own) <= steps[i].Actor {
			own = append(own, nil)
		}
		own[steps[i].Actor] = append(own[steps[i].Actor], i)
	}
	ends := map[int]Row{} // by the last step
	for _, all := range own {
		for _, run := range Fold(all, same) {
			period := all[run.From : run.From+run.Length]
			if run.Times < 3 || !slices.ContainsFunc(period, func(i int) bool { return steps[i].Timed }) {
				continue
			}
			to := run.From + run.Length*run.Times
			for _, i := range all[run.From+run.Length : to] {
				last[i] = all[to-1]
			}
			ends[all[to-1]] = Row{Step: period[0], Last: all[to-1], Steps: period, Again: run.Times - 1}
		}
	}
	for i := range steps {
		if last[i] < 0 {
			items = append(items, Row{Step: i})
		} else if r, ok := ends[i]; ok {
			items = append(items, r)
		}
	}
	return items
}

// Thin leaves rows out until there are about most. It keeps, in this order, the steps that must be kept, the last of
// them first; the end; the pinned steps; the last step of each actor that does not wait for time, with a row before and
// after it; the beginning; and as many rows before the last pinned one as there is room for.
func Thin(steps []Step, rows []Row, must, pinned func(step int) bool, most int) (kept []Row) {
	if len(rows) <= most {
		return rows
	}
	keep, room := make([]bool, len(rows)), most
	mark := func(k int) {
		if k >= 0 && k < len(rows) && !keep[k] && room > 0 {
			keep[k] = true
			room--
		}
	}
	step := func(k int) (s *Step, once bool) { return &steps[rows[k].Step], rows[k].Again == 0 }
	for k := len(rows) - 1; k >= 0; k-- {
		if rows[k].Again == 0 && must(rows[k].Step) {
			mark(k)
		}
	}
	for k := range most / 4 {
		mark(len(rows) - 1 - k)
	}
	cause := 0
	for k := len(rows) - 1; k >= 0; k-- {
		if s, once := step(k); once && !s.Timed && pinned(rows[k].Step) {
			cause = max(cause, k)
			mark(k)
		}
	}
	seen, left := map[int]bool{}, most/2
	for k := len(rows) - 1; k >= 0; k-- {
		if s, once := step(k); once && !s.Timed && !seen[s.Actor] && left > 0 {
			seen[s.Actor] = true
			left -= 3
			mark(k)
			mark(k - 1)
			mark(k + 1)
		}
	}
	for k := range most / 8 {
		mark(k)
	}
	if cause == 0 {
		cause = len(rows) - 1
	}
	for k := cause; k >= 0 && room > 0; k-- {
		mark(k)
	}
	gap := Row{}
	for k := range rows {
		if !keep[k] && (k == 0 || keep[k-1]) && (k == len(rows)-1 || keep[k+1]) {
			keep[k] = true // a gap takes a line too
		}
		if !keep[k] {
			if gap.Left == 0 {
				gap.Step = rows[k].Step
			}
			gap.Left += rows[k].count()
			gap.Last = max(gap.Last, rows[k].Step, rows[k].Last)
			continue
		}
		if gap.Left > 0 {
			kept, gap = append(kept, gap), Row{}
		}
		kept = append(kept, rows[k])
	}
	if gap.Left > 0 {
		kept = append(kept, gap)
	}
	return kept
}
