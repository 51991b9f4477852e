package inspect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coir-go/coir/snapshot"
)

// Names and causes come from the program, which may get them from its users. So they can be long, and contain anything.

const (
	nameBytes     = 256  // the most bytes of a name or a position
	textBytes     = 1024 // the most bytes of a wait or a cause
	problemBytes  = 4000 // the most bytes of the text of an explanation
	stackBytes    = 64 << 10
	mostListed    = 100 // the most fibers and objects of an explanation
	mostExplained = 100 // the most explanations
)

// cut returns the beginning of a long text. It does not keep the rest in memory.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// cutLines is like cut, but keeps whole lines.
func cutLines(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:strings.LastIndexByte(s[:most], '\n')+1] + "…"
}

// clean returns a text for a terminal: without control characters, and with at most the given number of characters.
func clean(s string, most int) string {
	s = cut(s, 4*most)
	if len(s) <= most && !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	n := 0
	for i, r := range s {
		if n++; n > most {
			return strings.TrimSuffix(b.String(), "…") + "…"
		}
		switch {
		case r == utf8.RuneError && s[i] != "\uFFFD"[0]:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unprintable(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

func firstOf[T any](all []T, most int) []T { return all[:min(len(all), most)] }

// trim cuts the texts of a fiber, and of its waits. It omits no wait: with only some of its waits, a fiber could seem
// to be in a deadlock that another of its waits can end.
func trim(f *snapshot.Fiber) {
	f.Name, f.Spawned, f.At = cut(f.Name, nameBytes), cut(f.Spawned, nameBytes), cut(f.At, nameBytes)
	f.State, f.Call = snapshot.State(cut(string(f.State), nameBytes)), cut(f.Call, nameBytes)
	f.Stack = cutLines(f.Stack, stackBytes)
	for i := range f.Wait {
		w := &f.Wait[i]
		w.Text, w.Kind = cut(w.Text, textBytes), snapshot.WaitKind(cut(string(w.Kind), nameBytes))
	}
}

// trimmed returns a copy of a fiber with its texts cut.
func trimmed(f *snapshot.Fiber) snapshot.Fiber {
	one := *f
	one.Wait = slices.Clone(f.Wait)
	trim(&one)
	return one
}

// trimRest cuts the other texts of a snapshot, in copies of its slices.
func trimRest(s *snapshot.Snapshot) {
	p := &s.Process
	p.Program, p.Go, p.Coir = cut(p.Program, nameBytes), cut(p.Go, nameBytes), cut(p.Coir, nameBytes)
	s.Nurseries, s.Objects, s.Workers = slices.Clone(s.Nurseries), slices.Clone(s.Objects), slices.Clone(s.Workers)
	s.Outside = slices.Clone(s.Outside)
	for i := range s.Outside {
		s.Outside[i] = trimmed(&s.Outside[i])
	}
	for i := range s.Nurseries {
		n := &s.Nurseries[i]
		n.Cause = cut(n.Cause, textBytes)
	}
	for i := range s.Objects {
		o := &s.Objects[i]
		o.Kind, o.Name = cut(o.Kind, nameBytes), cut(o.Name, nameBytes)
		o.Ends, o.Made = cut(o.Ends, nameBytes), cut(o.Made, nameBytes)
		o.Note, o.Trouble = cut(o.Note, nameBytes), cut(o.Trouble, textBytes)
		o.Holders = slices.Clone(o.Holders)
	}
	for i := range s.Workers {
		w := &s.Workers[i]
		w.State = snapshot.WorkerState(cut(string(w.State), nameBytes))
	}
}
