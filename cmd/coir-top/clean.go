package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// Names come from the program, which may get them from its users, and an answer may come from any server. A terminal
// obeys escape sequences in the text that is written to it. So coir-top cleans every text when it arrives, and need not
// check it when it is drawn.

const (
	nameRunes  = 80   // the most characters of a name or a position
	textRunes  = 300  // the same for a wait or a cause
	whyRunes   = 4000 // the same for an explanation
	stackLines = 500
)

// clean returns s for output to a terminal. Characters that cannot be printed are escaped as in a Go string, and text
// longer than most characters is cut.
func clean(s string, most int) string {
	plain := len(s) <= most
	for i := 0; plain && i < len(s); i++ {
		plain = ' ' <= s[i] && s[i] <= '~'
	}
	if plain {
		return s
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func cleanName[T ~string](s *T) { *s = T(clean(string(*s), nameRunes)) }
func cleanText(s *string)       { *s = clean(*s, textRunes) }

// cleanDump cleans all texts of a dump.
func cleanDump(d *inspect.Dump) {
	s := d.Snapshot
	cleanName(&s.Process.Program)
	cleanName(&s.Process.Go)
	cleanName(&s.Process.Coir)
	for i := range s.Fibers {
		cleanFiber(&s.Fibers[i])
	}
	for i := range s.Outside {
		cleanFiber(&s.Outside[i])
	}
	for i := range s.Nurseries {
		cleanText(&s.Nurseries[i].Cause)
	}
	for i := range s.Objects {
		o := &s.Objects[i]
		cleanName(&o.Kind)
		cleanName(&o.Name)
		cleanName(&o.Ends)
		cleanName(&o.Note)
		o.Made = clean(place(o.Made), nameRunes)
		cleanText(&o.Trouble)
	}
	for i := range s.Workers {
		cleanName(&s.Workers[i].State)
	}
	for i := range d.Explanations {
		e := &d.Explanations[i]
		cleanName(&e.Kind)
		e.Text = clean(e.Text, whyRunes)
	}
}

// cleanFiber cleans all texts of a fiber.
func cleanFiber(f *snapshot.Fiber) {
	cleanName(&f.Name)
	cleanName(&f.State)
	cleanName(&f.Call)
	f.Spawned, f.At = clean(place(f.Spawned), nameRunes), clean(place(f.At), nameRunes)
	for i := range f.Wait {
		cleanName(&f.Wait[i].Kind)
		cleanText(&f.Wait[i].Text)
	}
	if f.Stack == "" {
		return
	}
	var lines []string
	for line := range strings.Lines(f.Stack) {
		if len(lines) == stackLines {
			lines = append(lines, "…")
			break
		}
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		lines = append(lines, clean(line, textRunes))
	}
	f.Stack = strings.Join(lines, "\n")
}

// place returns a source position with only its last directory, as package inspect prints it.
func place(at string) string {
	if i := strings.LastIndexAny(at, `/\`); i > 0 {
		at = at[strings.LastIndexAny(at[:i], `/\`)+1:]
	}
	return at
}
