package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// This file words explanations, in the style of the simulator's reports; see internal/report, which this package does
// not import. Names come from the program, and a dump may come from anywhere. So every name is cleaned before it is
// written.

const (
	mostName  = 80  // characters of a name
	mostText  = 120 // characters of a wait, which contains a name
	mostNames = 4   // names in a list
	mostCases = 3   // cases of a select
	mostDoing = 4   // different activities in one sentence
)

// clean returns text that is safe for a terminal. Characters that cannot be printed are escaped as in a Go string, and
// text longer than most characters is cut.
func clean(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		letters := string(r)
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar { // also for bytes that are not UTF-8
			quoted := strconv.QuoteRuneToASCII(r)
			letters = quoted[1 : len(quoted)-1]
		}
		if n += len([]rune(letters)); n > most {
			return b.String() + "…"
		}
		b.WriteString(letters)
	}
	return b.String()
}

// String returns a span as 120ms, 3.1s, 12s, 1m58s, 14m, 5h or 3d.
func (s span) String() (text string) {
	switch d := s.d; {
	case d < time.Second:
		text = fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		text = strings.TrimSuffix(fmt.Sprintf("%d.%d", d/time.Second, d%time.Second/(time.Second/10)), ".0") + "s"
	case d < time.Minute:
		text = fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute && d%time.Minute >= time.Second:
		text = fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		text = fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		text = fmt.Sprintf("%dh", d/time.Hour)
	default:
		text = fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	if s.least {
		return "at least " + text
	}
	return text
}

// count returns a number and a noun: 1 fiber, 7 fibers.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// place returns a source position with only its last directory: bank/transfer.go:12.
func place(at string) string {
	if i := strings.LastIndexByte(at, '/'); i > 0 {
		at = at[strings.LastIndexByte(at[:i], '/')+1:]
	}
	return clean(at, mostName)
}

// name returns the name of a fiber.
func (f *Fiber) name() string {
	if f.Name == "" {
		return "fiber " + strconv.FormatUint(f.ID, 10)
	}
	return clean(f.Name, mostName)
}

// nameOf returns the name of a fiber that may have ended.
func (p *pair) nameOf(id uint64) string {
	if i, ok := p.fiber(id); ok {
		return p.fibers[i].name()
	}
	if i, ok := slices.BinarySearch(p.beforeIDs, id); ok {
		return p.before[i].name()
	}
	if id >= FirstGoroutine {
		return "goroutine[" + strconv.FormatUint(id-FirstGoroutine, 10) + "]"
	}
	return "fiber " + strconv.FormatUint(id, 10)
}

// name returns the name of an object.
func (o *Object) name() string {
	if o.Name != "" {
		return clean(o.Name, mostName)
	}
	text := "#" + strconv.FormatUint(o.ID, 10)
	if o.Kind != "" {
		text = clean(o.Kind, mostName) + " " + text
	}
	return text
}

// like returns a key that similar objects have in common.
func (o *Object) like() string {
	head, _, _, _ := numbered(clean(o.Name, mostName))
	return o.Kind + " " + head
}

// like returns a key that similar fibers have in common.
func (f *Fiber) like() string {
	if f.Spawned != "" {
		return f.Spawned
	}
	head, _, _, _ := numbered(clean(f.Name, mostName))
	return head
}

// numbered splits a name into a number and the text before and after it: worker[3], pool_test.go:80 (3), worker#3. If a
// name has no number, all of it is the head.
func numbered(name string) (head string, n int, tail string, ok bool) {
	text := strings.TrimRight(name, ")]")
	at := strings.LastIndexAny(text, "[(#") + 1
	n, err := strconv.Atoi(text[at:])
	if at == 0 || err != nil || strconv.Itoa(n) != text[at:] {
		return name, 0, "", false
	}
	return name[:at], n, name[len(text):], true
}

// names lists the names of fibers. Names that differ only in consecutive numbers become one, and then the number of
// fibers follows: worker[0..6] (7 fibers).
func (p *pair) names(fibers []int) string {
	type named struct {
		head, tail string
		n          int
		ok         bool
	}
	all := make([]named, len(fibers))
	for k, i := range fibers {
		x := &all[k]
		x.head, x.n, x.tail, x.ok = numbered(p.fibers[i].name())
	}
	slices.SortStableFunc(all, func(a, b named) int {
		return cmp.Or(strings.Compare(a.head, b.head), strings.Compare(a.tail, b.tail), cmp.Compare(a.n, b.n))
	})
	var texts []string
	listed, ranges := 0, false
	for listed < len(all) && len(texts) < mostNames {
		x, end := all[listed], listed+1
		for x.ok && end < len(all) && all[end] == (named{x.head, x.tail, x.n + end - listed, true}) {
			end++
		}
		switch {
		case end-listed >= 3:
			texts = append(texts, fmt.Sprintf("%s%d..%d%s", x.head, x.n, x.n+end-listed-1, x.tail))
			listed, ranges = end, true
			continue
		case x.ok:
			texts = append(texts, x.head+strconv.Itoa(x.n)+x.tail)
		default:
			texts = append(texts, x.head)
		}
		listed++
	}
	text := strings.Join(texts, ", ")
	if more := len(all) - listed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if ranges {
		text += " (" + count(len(all), p.noun(fibers)) + ")"
	}
	return text
}

// noun returns the word for some fibers, or goroutines.
func (p *pair) noun(fibers []int) string {
	if slices.ContainsFunc(fibers, func(i int) bool { return !p.fibers[i].isGoroutine() }) {
		return "fiber"
	}
	return "goroutine"
}

// line returns the line where a fiber is, in words that follow others.
func (f *Fiber) line() string {
	if f.At == "" {
		return ""
	}
	if in := f.Blocked(); in != "" {
		return " (" + clean(in, mostName) + " at " + place(f.At) + ")"
	}
	return " (at " + place(f.At) + ")"
}

// isAt returns the source position of a fiber, if known, and what it waits for there, in words that follow others.
func (f *Fiber) isAt() string {
	text := f.at()
	if in := f.Blocked(); text != "" && in != "" {
		text += " in " + clean(in, mostName)
	}
	return text
}

// at returns the source position of a fiber, if known, in words that follow others.
func (f *Fiber) at() string {
	if f.At == "" {
		return ""
	}
	return "; " + f.name() + " is at " + place(f.At)
}

// callWords returns what a fiber waits for in Go, given the result of Blocked, in words that follow "is blocked in".
func callWords(in string) string {
	switch in {
	case "syscall":
		return "a system call"
	case "IO wait":
		return "I/O (such as a network read)"
	case "native wait":
		return "a native wait (such as for a native channel)"
	}
	return clean(in, mostName)
}

// line returns the source position of the first fiber, in words that follow others.
func (p *pair) line(fibers []int) string { return p.fibers[fibers[0]].line() }

// who lists the names of fibers that do the same. If their positions are not known, it adds where they were spawned.
func (p *pair) who(fibers []int) string {
	site := p.fibers[fibers[0]].Spawned
	for _, i := range fibers {
		if p.fibers[i].At != "" || p.fibers[i].Spawned != site {
			return p.names(fibers)
		}
	}
	return p.names(fibers) + spawned(site)
}

// crowd is like who for a few fibers. It only counts many.
func (p *pair) crowd(fibers []int) string {
	if len(fibers) <= mostNames {
		return p.who(fibers)
	}
	return count(len(fibers), p.noun(fibers))
}

// chain says what a fiber does. If it waits for a lock, or for a pool whose values another fiber has, chain also says
// what that fiber does, and so on.
func (p *pair) chain(i int) string {
	const most = 4 // holders
	text, _ := p.doing(p.fibers[i].Fiber)
	for range most {
		wait := p.fibers[i].Wait
		if len(wait) != 1 {
			break
		}
		o := p.object(wait[0].Object)
		if o == nil || len(o.holders) != 1 || wait[0].Kind != WaitUse && !o.borrowersKnown() {
			break
		}
		text += ", " + o.heldBy() + " " + p.nameOf(o.holders[0])
		k, ok := p.fiber(o.holders[0])
		if !ok || p.stuck[k] { // another explanation names what it waits for
			break
		}
		one, _ := p.doing(p.fibers[k].Fiber)
		text, i = text+", which "+one, k
	}
	return text
}

// chainOf is chain for a fiber that may not be in the later snapshot.
func (p *pair) chainOf(id uint64) string {
	i, ok := p.fiber(id)
	switch {
	case ok:
		return p.chain(i)
	case id >= FirstGoroutine:
		if f := p.outside(id); f != nil {
			return f.outsideDoes()
		}
		return "does not wait in coir: it computes, waits for something else, or has ended"
	case p.later.Omitted > 0:
		return "is not in the snapshot"
	}
	return "has ended"
}

// outsideDoes says what a goroutine outside of coir does, as far as its stack says it.
func (f *Fiber) outsideDoes() string {
	text := "computes"
	switch in := f.Blocked(); {
	case in != "" && f.At != "":
		text = "waits"
	case in != "":
		text = "is blocked in " + callWords(in)
	}
	if name := f.function(); name != "" {
		text += " in " + name
	}
	text += f.line()
	if f.Spawned != "" {
		text += ", started at " + place(f.Spawned)
	}
	return text
}

// function returns the name of the function of the program where a fiber is, with only the last element of its path, or
// "" if its stack is not known.
func (f *Fiber) function() string {
	before, _, ok := strings.Cut(f.Stack, "\n\t"+f.At)
	if !ok || f.At == "" {
		return ""
	}
	name := before[strings.LastIndexByte(before, '\n')+1:]
	if i := strings.LastIndexByte(name, '('); i > 0 {
		name = name[:i]
	}
	return clean(name[strings.LastIndexByte(name, '/')+1:], mostName)
}

// waitText returns a wait in words that follow "waits". If waitText has no better words, it uses those of the snapshot.
func (p *pair) waitText(w Wait, its string) string {
	switch w.Kind {
	case WaitSend, WaitRecv:
		o := p.object(w.Object)
		switch {
		case o != nil && o.Kind == pool && o.Cap > 0:
			return fmt.Sprintf("for a value of %s (%d of %d lent)", o.name(), o.Len, o.Cap)
		case o == nil || o.Kind != channel:
		case w.Kind == WaitRecv:
			return "to receive from " + o.name()
		case o.Cap > 0 && o.Len >= o.Cap:
			return fmt.Sprintf("to send to %s (full, %d of %d)", o.name(), o.Len, o.Cap)
		default:
			return "to send to " + o.name()
		}
	case WaitEnd:
		if w.Fiber != 0 {
			return "for " + p.nameOf(w.Fiber) + " to end"
		}
	case WaitJoin:
		return "for " + its + " children to end"
	case WaitPlace:
		return "for a place in " + its + " nursery"
	}
	if w.Text == "" {
		return "for something (" + clean(string(w.Kind), mostName) + ")"
	}
	return clean(w.Text, mostText)
}

// doing says what a fiber does, in words for one fiber and for several.
func (p *pair) doing(f *Fiber) (one, many string) {
	at := f.line()
	switch f.State {
	case StatePending:
		return "has not begun", "have not begun"
	case StateReady:
		return "is ready to run" + at, "are ready to run" + at
	case StateRunning:
		return "runs" + at, "run" + at
	case StateBlocking:
		if in := f.Blocked(); in != "" && at == "" {
			return "is blocked in " + callWords(in), "are blocked in " + callWords(in)
		}
		if !f.Since.IsZero() || f.Call != "" {
			return "is in a call that blocks" + at, "are in calls that block" + at
		}
		return "is in a call that blocks, or computes" + at, "are in calls that block, or compute" + at
	case StateOutside:
		return "runs on a goroutine of its own" + at, "run on goroutines of their own" + at
	case StateWaiting, StateGoroutine:
		return "waits" + p.waitsFor(f, "its") + at, "wait" + p.waitsFor(f, "their") + at
	}
	return "does something else", "do something else"
}

// waitsFor says what a fiber waits for, in words that follow "waits". its is "its", or "their" for several fibers.
func (p *pair) waitsFor(f *Fiber, its string) (text string) {
	if len(f.Wait) > 1 {
		text = " in a select"
	}
	for k, w := range f.Wait {
		if k > 0 {
			text += ", or"
		}
		if k == mostCases {
			return fmt.Sprintf("%s %s", text, count(len(f.Wait)-k, "more case"))
		}
		text += " " + p.waitText(w, its)
	}
	return text
}

// does says what fibers do. It joins fibers that do the same: a waits to lock mu; worker[0..6] (7 fibers) run.
func (p *pair) does(fibers []int) string {
	groups, order := map[string][]int{}, []string(nil)
	for _, i := range fibers {
		one, _ := p.doing(p.fibers[i].Fiber)
		if groups[one] == nil {
			order = append(order, one)
		}
		groups[one] = append(groups[one], i)
	}
	var texts []string
	left := len(fibers)
	for k, one := range order {
		if k == mostDoing {
			texts = append(texts, fmt.Sprintf("and %s more", count(left, "fiber")))
			break
		}
		same := groups[one]
		left -= len(same)
		texts = append(texts, p.names(same)+" "+p.verb(same))
	}
	return strings.Join(texts, "; ")
}

// verb says what several fibers do, all of which do the same.
func (p *pair) verb(same []int) string {
	one, many := p.doing(p.fibers[same[0]].Fiber)
	return pick(same, one, many)
}

// lasts says how long fibers have waited, in words that follow others: "for 12s", or, for several fibers, "the oldest
// for 12s".
func (p *pair) lasts(since time.Time, fibers []int) string {
	age := p.since(since)
	if age.d == 0 {
		return ""
	}
	return pick(fibers, " for ", ", the oldest for ") + age.String()
}

// pick returns one if there is one fiber, and many if there are several.
func pick(fibers []int, one, many string) string {
	if len(fibers) == 1 {
		return one
	}
	return many
}

// spawned says where fibers were spawned, in words that go between their names and what they do.
func spawned(site string) string {
	if site == "" {
		return ""
	}
	return ", spawned at " + place(site) + ","
}
