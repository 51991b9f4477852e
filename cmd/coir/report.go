package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/coir-go/coir/internal/chart"
)

// The report of a failure: what happened, which goroutine waits for what and which could end that, and the last steps
// with a column for each goroutine.

// ops are the names of operations, as package internal/coir of the overlay numbers them.
var ops = []string{
	"?", "go", "send", "recv", "close", "select", "lock", "try lock", "unlock", "rlock", "runlock", "lock", "unlock",
	"add", "wait", "cond wait", "signal", "broadcast", "once", "yield",
	"load", "store", "swap", "cas", "add", "and/or", "load", "store", "done",
	"try rlock", "try lock", "fail",
}

const (
	opGo, opSend, opRecv, opClose          = 1, 2, 3, 4
	opSelect                               = 5
	opLock, opTryLock, opUnlock            = 6, 7, 8
	opRLock, opRUnlock, opWLock, opWUnlock = 9, 10, 11, 12
	opAdd, opWait, opCondWait              = 13, 14, 15
	opSignal, opBroadcast, opOnce          = 16, 17, 18
	opDone, opTryRLock, opTryWLock         = 28, 29, 30
	opFail                                 = 31
)

// kindOf returns the sort of object that an operation is on.
func kindOf(op int) string {
	switch op {
	case opSend, opRecv, opClose:
		return "chan"
	case opLock, opTryLock, opUnlock:
		return "mutex"
	case opRLock, opRUnlock, opWLock, opWUnlock, opTryRLock, opTryWLock:
		return "rwmutex"
	case opAdd, opDone, opWait:
		return "waitgroup"
	case opCondWait, opSignal, opBroadcast:
		return "cond"
	case opOnce:
		return "once"
	case 20, 21, 22, 23, 24, 25:
		return "atomic"
	case 26, 27:
		return "map"
	}
	return ""
}

// object returns the name of an object: its sort and number.
func (r *result) object(op, id int) string {
	kind := kindOf(op)
	if kind == "" || id == 0 {
		return ""
	}
	if c, ok := r.made[id]; ok && kind == "chan" {
		switch {
		case c.timer && strings.Contains(c.via, "Tick"):
			kind = "ticker"
		case c.timer:
			kind = "timer"
		case strings.HasPrefix(c.via, "context."):
			kind = "ctx.Done"
		}
	}
	return fmt.Sprintf("%s#%d", kind, id)
}

// channel returns the name of a channel, and where it was made if that is useful: the channel of a context is made when
// Done is first called. full says that a goroutine waits to send to it.
func (r *result) channel(id int, dir string, full bool) string {
	name := r.object(opRecv, id)
	if c, ok := r.made[id]; ok && c.place.file != "" && !strings.HasPrefix(c.via, "context.") {
		name += fmt.Sprintf(" (made at %s:%d%s)", short(c.place.file, dir), c.place.line, c.capacity(full))
	}
	return name
}

// capacity returns how many values a channel holds, and that it is full if it is, in words that follow others. Channels
// of timers and those without a buffer need none.
func (c channel) capacity(full bool) string {
	switch {
	case c.timer || c.room == 0:
		return ""
	case full:
		return fmt.Sprintf(", capacity %d, full", c.room)
	}
	return fmt.Sprintf(", capacity %d", c.room)
}

// kinds describe the sorts of failures.
var kinds = map[string]string{
	"deadlock": "deadlock", "panic": "panic", "fail": "the test fails", "livelock": "livelock: it never ends",
	"leak": "a goroutine is left behind", "race": "data race",
}

// headline returns one line that says what happened.
func (r *result) headline() string {
	f := r.failure
	text := kinds[f.kind]
	if f.text != "" {
		text += ": " + oneLine(f.text) + ","
	}
	text += fmt.Sprintf(" in schedule %s (seed %d)", thousands(f.schedule), f.seed)
	n := thousands(f.switches) + " switches"
	if f.switches == 1 {
		n = "1 switch"
	}
	switch {
	case f.token == "":
		return text + ", with more than " + n
	case f.switches == 0:
		return text + ", in the plain order"
	case f.replayed:
		return text + ", with " + n
	}
	return text + ", shrunk to " + n
}

// oneLine returns a text without characters that would break the line or control the terminal.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '.'
		}
		return r
	}, text)
}

// report explains a failure. dir is the directory of the package.
func (r *result) report(dir string) string {
	names := r.names()
	return r.explain(names, r.waits(names, dir), dir) + r.parting(names, dir) + r.columns(names, dir)
}

// explain describes which goroutine waits for what.
func (r *result) explain(names map[int]string, waits []wait, dir string) string {
	var b strings.Builder
	f := r.failure
	switch {
	case f.outside > 0:
		fmt.Fprintf(&b, "%s came from outside (network, system calls, goroutines of other tests): a replay may differ\n",
			count(f.outside, "wake"))
	case !f.stable:
		b.WriteString("the same decisions did not lead to the same end: the test depends on something that lasts from " +
			"one schedule to the next\n")
	}
	if r.cut() {
		fmt.Fprintf(&b, "the schedule has %s steps; the last %s are known\n", thousands(f.steps),
			thousands(len(r.stepsOf)))
	}
	if f.token == "" {
		b.WriteString("it has more decisions than are kept, so there is no token to replay it\n")
	}
	if a := r.actors[f.panicked]; f.kind == "panic" && a != nil {
		at := ""
		if a.at.file != "" { // go wg.Done() has none
			at = fmt.Sprintf(", at %s:%d", short(a.at.file, dir), a.at.line)
		}
		fmt.Fprintf(&b, "%s panics%s\n", names[a.id], at)
	}
	if s := r.failStep(); s != nil && s.place.file != "" {
		fmt.Fprintf(&b, "%s calls %s, at %s:%d\n", names[s.g], r.words(*s), short(s.place.file, dir), s.place.line)
	}
	b.WriteString(r.waiters(waits, names, dir))
	if who := cycle(waits); len(who) > 1 {
		fmt.Fprintf(&b, "cycle: %s\n", strings.Join(r.around(who, names), " -> "))
	}
	return b.String()
}

const mostWaits = 20 // in a report

// waiters describes what goroutines wait for. Those that wait for the same, at the same line, are told together.
func (r *result) waiters(waits []wait, names map[int]string, dir string) string {
	var b strings.Builder
	left := len(waits)
	same := func(w wait) string {
		if w.at.file == "" || !strings.HasPrefix(w.what, "waits ") {
			return ""
		}
		return w.need(dir) + w.made.String()
	}
	for i, all := range chart.Crowds(waits, same) {
		if i == mostWaits {
			fmt.Fprintf(&b, "... and %s more\n", count(left, "goroutine"))
			break
		}
		left -= len(all)
		if len(all) == 1 {
			fmt.Fprintf(&b, "%s %s%s\n", names[all[0].id], all[0].need(dir), r.waitedFor(all))
			continue
		}
		var who []string
		for _, w := range all {
			who = append(who, names[w.id])
		}
		fmt.Fprintf(&b, "%s wait%s (%s)%s\n", chart.Names(who, 8), strings.TrimPrefix(all[0].need(dir), "waits"),
			count(len(all), "goroutine"), r.waitedFor(all))
	}
	return b.String()
}

// cut reports whether the beginning of the trace is missing.
func (r *result) cut() bool { return r.failure.steps > len(r.stepsOf) }

// around returns the names of a cycle, with the first again at the end.
func (r *result) around(who []int, names map[int]string) (all []string) {
	for _, id := range who {
		all = append(all, names[id])
	}
	if len(all) > 0 {
		all = append(all, all[0])
	}
	return all
}

func (r *result) ids() []int {
	ids := make([]int, 0, len(r.actors))
	for id := range r.actors {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// names returns the names of goroutines: that of the test, or where it was started, with a number if there are several.
func (r *result) names() map[int]string {
	names, same := map[int]string{0: "clock"}, map[string]int{}
	started := r.starters()
	base := func(a *actor) string {
		switch {
		case a.fiber != "":
			return "fiber " + a.fiber
		case strings.HasPrefix(a.made.function, "testing/synctest."):
			return r.test + " in a bubble"
		case strings.HasPrefix(a.made.function, "testing."):
			if a.id <= 2 {
				return r.test
			}
			return "subtest"
		case a.madeBy == "time.goFunc":
			return "time.AfterFunc"
		case r.standard(a.made) && started[a.id] != nil && started[a.id].place.file != "": // such as by WaitGroup.Go
			at := started[a.id].place
			return fmt.Sprintf("%s:%d", filepath.Base(at.file), at.line)
		case a.made.file == "":
			return fmt.Sprint("goroutine ", a.id)
		}
		return fmt.Sprintf("%s:%d", filepath.Base(a.made.file), a.made.line)
	}
	for _, id := range r.ids() {
		same[base(r.actors[id])]++
	}
	seen := map[string]int{}
	for _, id := range r.ids() {
		name := base(r.actors[id])
		if name == r.test && id == 1 {
			names[id] = "harness"
			same[name]--
			continue
		}
		seen[name]++
		if same[name] > 1 {
			names[id] = fmt.Sprintf("%s (%d)", name, seen[name])
			continue
		}
		names[id] = name
	}
	return names
}

// starters returns the step that started each goroutine: the n-th go statement of a goroutine started its n-th child.
func (r *result) starters() map[int]*step {
	children := map[int][]int{}
	for _, id := range r.ids() {
		children[r.actors[id].parent] = append(children[r.actors[id].parent], id)
	}
	by := map[int]*step{}
	if r.firstStep() > 1 {
		return by // the first is not known
	}
	for i := range r.stepsOf {
		s := &r.stepsOf[i]
		if all := children[s.g]; s.op == opGo && len(all) > 0 {
			by[all[0]] = s
			children[s.g] = all[1:]
		}
	}
	return by
}

const lines, mostColumns, most = 40, 5, 40 // lines of columns, how many, and letters of each

// columns returns the steps, with a column for each goroutine. Of many it tells repetitions once, and leaves out what is
// far from the end, from switches and from what each goroutine did last.
func (r *result) columns(names map[int]string, dir string) string {
	all := func(*step) bool { return true }
	rows, thinned := r.rows(all, names)
	who := actors(rows)
	if len(rows) == 0 {
		return ""
	}
	what := ""
	if thinned || len(who) > mostColumns {
		few, thin := r.rows(r.matters, names)
		if slices.ContainsFunc(who, r.stuck) && len(actors(few)) < len(who) {
			rows, thinned, what = few, thin, " of goroutines that do not end, and of switches"
		}
	}
	var b strings.Builder
	switch {
	case thinned:
		fmt.Fprintf(&b, "a part of %s steps%s:\n", thousands(r.failure.steps), what)
	case what != "":
		fmt.Fprintf(&b, "of %s steps those%s:\n", thousands(r.failure.steps), what)
	}
	who = actors(rows)
	common, cell := r.cells(rows)
	if len(who) > mostColumns {
		legend(&b, rows, "")
		return b.String() + r.list(rows, names, dir)
	}
	legend(&b, rows, common)
	width := 24 // as wide as its longest cell, if all of them fit
	for _, g := range who {
		width = max(width, len(names[g]))
	}
	for _, s := range rows {
		if s.note() == "" {
			text, at := cell(s)
			width = max(width, len(text)+len(at))
		}
	}
	width = max(min(width, 118/len(who)-2, most), 24)
	row := func(cells map[int]string) {
		var line strings.Builder
		for _, g := range who {
			fmt.Fprintf(&line, "%-*s", width+2, cells[g])
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	head := map[int]string{}
	for _, g := range who {
		head[g] = clipName(names[g], width)
	}
	row(head)
	for _, s := range rows {
		if note := s.note(); note != "" {
			fmt.Fprintf(&b, "%s\n", note)
			continue
		}
		text, at := cell(s)
		row(map[int]string{s.g: clip(text, max(width-len(at), 3)) + at})
	}
	return b.String()
}

// legend writes what the marks of rows mean. common is the file of lines without one.
func legend(b *strings.Builder, rows []row, common string) {
	var parts, turns, selects, waits bool
	for _, s := range rows {
		parts = parts || s.parts
		turns = turns || !s.parts && s.switches > 0 && s.kind != selected
		selects = selects || !s.parts && s.switches > 0 && s.kind == selected
		waits = waits || s.waits
	}
	turn := chart.Sign{Used: turns, Mark: ">", Meaning: "leaves the plain order: another goroutine gets the turn before this is done"}
	choice := chart.Sign{Used: selects, Mark: ">", Meaning: "leaves the plain order: another case would come first"}
	chart.Legend(b, "", common, turn, choice, chart.PartSign(parts), chart.WaitSign(waits))
}

// row is a line of the columns: a step, or a note that steps are repeated or left out.
type row struct {
	step
	times int    // how often it is done in a row
	text  string // of a note
	parts bool   // here the schedule went another way than its twin
	waits bool   // its goroutine waits in it at the end
}

// note returns the text of a row that is not a step.
func (s *row) note() string { return s.text }

// blockedIn reports whether the goroutine of a step waits in it at the end, and not in what has no step, such as a
// select without cases.
func (r *result) blockedIn(s *step) bool {
	switch s.op {
	case opSend, opRecv, opSelect, opLock, opRLock, opWLock, opWait, opCondWait, opOnce:
	default:
		if !coirs(s.via) {
			return false
		}
	}
	a := r.actors[s.g]
	return !r.happened(s) && s.g != r.failure.panicked && a.at.file == s.place.file && a.at.line == s.place.line
}

// stuck reports whether a goroutine waits at the end, or has panicked.
func (r *result) stuck(g int) bool {
	a := r.actors[g]
	return a != nil && (a.state == waiting || a.id == r.failure.panicked)
}

// matters reports whether a step is a switch, or of a goroutine that is stuck.
func (r *result) matters(s *step) bool { return s.switches > 0 || r.stuck(s.g) }

// actors returns the goroutines of rows.
func actors(rows []row) (who []int) {
	for _, s := range rows {
		if s.note() == "" && !slices.Contains(who, s.g) {
			who = append(who, s.g)
		}
	}
	slices.Sort(who)
	return who
}

// failStep returns the first step that failed the test, or nil.
func (r *result) failStep() *step {
	if i := slices.IndexFunc(r.stepsOf, func(s step) bool { return s.op == opFail }); i >= 0 && r.failure.kind == "fail" {
		return &r.stepsOf[i]
	}
	return nil
}

// endStep returns the number of the step with which the failure is complete: the last of the goroutine that has
// panicked, the one that failed the test, or else the last of all.
func (r *result) endStep() int {
	if s := r.failStep(); s != nil {
		return s.n
	}
	if last := r.lastStep(r.failure.panicked); last != nil {
		return last.n
	}
	return r.failure.steps
}

const (
	mostSwitches, around = 4, 2 // switches that are shown, and steps on either side
	beforeFail           = 8    // steps of a goroutine that are shown before it fails the test
)

// someSwitches returns where the switches are. Of many it returns those before split.
func someSwitches(all []*step, split int) (at []int) {
	before := 0
	for i, s := range all {
		if s.switches == 0 {
			continue
		}
		at = append(at, i)
		if i <= split {
			before++
		}
	}
	from := max(before, mostSwitches) - mostSwitches
	return at[from:min(from+mostSwitches, len(at))]
}

// rows returns the steps to show, of those that of selects, and whether some are left out. Steps that repeat are shown
// once.
func (r *result) rows(of func(*step) bool, names map[int]string) (rows []row, thinned bool) {
	var all []*step
	var steps []chart.Step
	parts, end := r.parts(), r.endStep()
	for i := range r.stepsOf {
		if s := &r.stepsOf[i]; s.n > end {
			break // what comes after the failure does not matter
		} else if s.inner == "" && !coirsOwn(s.place, s.via) && (of(s) || s == parts) {
			all, steps = append(all, s), append(steps, r.drawn(s, s.g, ""))
		}
	}
	split := slices.Index(all, parts)
	if split < 0 {
		split = len(all)
	}
	near := map[int]bool{} // the steps around some switches, around where it went another way, and before the test fails
	middles := someSwitches(all, split)
	if split < len(all) {
		middles = append(middles, split)
	}
	for _, i := range middles {
		for k := i - around; k <= i+around; k++ {
			near[k] = true
		}
	}
	if last := len(all) - 1; last >= 0 && all[last].op == opFail {
		for i, n := last, 0; i >= 0 && n <= beforeFail; i-- {
			if all[i].g == all[last].g {
				near[i] = true
				n++
			}
		}
	}
	pinned := func(i int) bool { return near[i] || all[i].last && r.stuck(all[i].g) }
	folded, _ := chart.Rows(steps, pinned, split)
	folded = chart.Thin(steps, folded, pinned, lines)
	for k, f := range folded {
		switch {
		case f.Left > 0:
			thinned = true
			rows = append(rows, row{text: "... " + count(f.Left, "step") + " left out"})
		case f.Again > 0 && len(f.Steps) == 1 && k > 0 && folded[k-1].Again == 0 && folded[k-1].Step == f.Step:
			rows[len(rows)-1].times += f.Again
		case f.Again > 0:
			var texts []string
			for i, at := range f.Steps {
				text := r.words(*all[at])
				if i == 0 || all[f.Steps[i-1]].g != all[at].g {
					text = names[all[at].g] + " " + text
				}
				texts = append(texts, text)
			}
			rows = append(rows, row{text: "... " + strings.Join(texts, ", ") + ": " + chart.Times(f.Again)})
		default:
			s := all[f.Step]
			rows = append(rows, row{step: *s, times: 1, parts: s == parts, waits: r.blockedIn(s)})
		}
	}
	return rows, thinned
}

// cells returns a function that writes the steps of rows: what, and what follows that and is never cut. It also returns
// the file that most of them share, which the function leaves out.
func (r *result) cells(rows []row) (common string, cell func(row) (text, at string)) {
	var places []string
	for _, s := range rows {
		if s.note() == "" {
			places = append(places, s.place.String())
		}
	}
	common = chart.CommonFile(places)
	return common, func(s row) (text, at string) {
		if text = r.words(s.step); s.mark() != "" {
			text = s.mark() + " " + text
		}
		if place := chart.ShortPlace(s.place.String(), common); place != "" {
			at = " " + place
		}
		if s.times > 1 && !coirs(s.via) { // how many steps a function of coir takes does not matter
			at += " x" + thousands(s.times)
		}
		if s.waits {
			at += " " + chart.WaitMark
		}
		return text, at
	}
}

// words returns a step in a few words: what, on which object, and in which package of the library.
func (r *result) words(s step) string {
	text := ops[s.op]
	switch {
	case coirs(s.via):
		return method(s.via)
	case s.op == opFail:
		return "t" + s.via[strings.LastIndex(s.via, "."):]
	case s.chose < 0:
		return "select default"
	case s.op == opSelect && s.chose > 0:
		for _, c := range s.cases {
			if c.n == s.chose-1 && c.send {
				return "select send " + r.object(opSend, c.object)
			} else if c.n == s.chose-1 {
				return "select recv " + r.object(opRecv, c.object)
			}
		}
	case s.op == opSelect && len(s.cases) > 0:
		return "select " + r.choices(s.cases)
	case s.chose > 0:
		text = "select " + text
	}
	if o := r.object(s.op, s.object); o != "" {
		text += " " + o
	}
	if s.op == opOnce {
		text = "do " + r.object(s.op, s.object)
	}
	if s.waited {
		text += ": waits"
	}
	if name := library(s.via); name != "" {
		text += " in " + name
	}
	return text
}

// choices returns the cases of a select in a few words.
func (r *result) choices(cases []selectCase) string {
	const most = 4
	var texts []string
	for _, c := range cases[:min(len(cases), most)] {
		op := opRecv
		if c.send {
			op = opSend
		}
		texts = append(texts, ops[op]+" "+r.object(op, c.object))
	}
	if len(cases) > most {
		texts = append(texts, "...")
	}
	return strings.Join(texts, ", ")
}

// mark returns what stands before a step: one > for each switch, or that the schedule went another way here.
func (s *row) mark() string {
	if s.parts {
		return chart.Mark
	}
	return strings.Repeat(">", s.switches)
}

// list returns the steps, one to a line, for many goroutines.
func (r *result) list(rows []row, names map[int]string, dir string) string {
	var b strings.Builder
	width := 0
	for _, s := range rows {
		if s.note() == "" {
			width = max(width, min(len(names[s.g]), most))
		}
	}
	for _, s := range rows {
		if note := s.note(); note != "" {
			fmt.Fprintf(&b, "  %s\n", note)
			continue
		}
		mark, times, at := s.mark(), "", ""
		if s.times > 1 && !coirs(s.via) {
			times = " x" + thousands(s.times)
		}
		if s.place.file != "" {
			at = fmt.Sprintf(", at %s:%d", short(s.place.file, dir), s.place.line)
		}
		if s.waits {
			times += " " + chart.WaitMark
		}
		fmt.Fprintf(&b, "%-2s %-*s %s%s%s\n", mark, width, clipName(names[s.g], width), r.words(s.step), times, at)
	}
	return b.String()
}

// leftBehind describes goroutines that every schedule leaves behind.
func (r *result) leftBehind(dir string) string {
	var b strings.Builder
	names := r.names()
	for _, w := range r.waits(names, dir) {
		fmt.Fprintf(&b, "left behind: %s %s\n", names[w.id], w.text(r, dir))
	}
	return b.String()
}

// notControlled describes what a test waits for outside, and where.
func (r *result) notControlled(dir string) string {
	what := map[int]string{1: "a system call", 2: "the network", 3: "a computation without end",
		4: "the end of a schedule that takes more than half a minute", 5: "a signal", 6: "a goroutine outside"}[r.waitsIn]
	if r.outcome == "long" {
		what = "a schedule has more than 5,000,000 steps without a moment at which all wait"
	}
	for _, stack := range r.stacks {
		call, at := outermost(stack, dir)
		if at == "" {
			continue
		}
		if r.waitsIn <= 2 && call != "" {
			what = call
		}
		what += " at " + at
		break
	}
	return "not controlled: " + what + "\n"
}

// outermost returns the function of the standard library that a program has called, as "net read", and the calling
// line.
func outermost(stack, dir string) (call, at string) {
	_, stack, _ = strings.Cut(stack, "\n")
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		slash := strings.LastIndex(lines[i], "/") + 1
		name, function, ok := strings.Cut(lines[i][slash:], ".")
		pkg := lines[i][:slash] + name
		switch {
		case !ok || strings.HasPrefix(lines[i], "created by "):
		case strings.Contains(file, "/src/runtime/"): // including what the runtime does for other packages
		case strings.HasPrefix(file, dir+"/") || !strings.Contains(file, "/src/"+pkg+"/"):
			return call, short(file, dir)
		case pkg == "net" || pkg == "os" || pkg == "syscall" || strings.HasPrefix(pkg, "os/") ||
			strings.HasPrefix(pkg, "net/"):
			if strings.HasPrefix(function, "(") {
				_, function, _ = strings.Cut(function, ").")
			}
			if end := strings.IndexAny(function, ".([{"); end > 0 {
				function = function[:end]
			}
			call = pkg + " " + strings.ToLower(function)
		}
	}
	return "", ""
}

// short returns a file's name, relative to the package's directory if it is in there.
func short(file, dir string) string {
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
}

// clipName shortens a name, but keeps the line number at its end.
func clipName(s string, n int) string {
	if len(s) > n {
		return "..." + s[len(s)-n+3:]
	}
	return s
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n-3] + "..."
	}
	return s
}
