package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// hostile lists names that a terminal would obey as commands if they were written to it.
var hostile = []string{
	"\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]52;c;c2VjcmV0\x07", "\x1bP$qm\x1b\\", "\x9b31m", "\u009b31m",
	"a\nb\rc\td\x08e\x7f", "\x00",
	"\u202egnp.exe", "\u2066x", "\u200b\u200d", "\xff\xfe", "\ufffd", "\u2028\u2029", strings.Repeat("\x1b[31m", 1000),
	strings.Repeat("x", 1<<20), strings.Repeat("界", 1<<18), strings.Repeat("é", 300), "日本語の名前", "🙂🙂🙂",
}

// safe reports whether a terminal only shows a text.
func safe(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

func TestClean(t *testing.T) {
	for _, name := range hostile {
		got := clean(name, nameRunes)
		if !safe(got) {
			t.Errorf("%.40q becomes %q", name, got)
		}
		if len([]rune(got)) > 10*nameRunes {
			t.Errorf("%.40q has %d characters", name, len([]rune(got)))
		}
	}
	for in, want := range map[string]string{
		"": "", "orders": "orders", "naïve": "naïve", "\x1b[31m": `\x1b[31m`,
		strings.Repeat("x", 81): strings.Repeat("x", 80) + "…",
		"\u202e":                `\u202e`, "a\xffb": `a\ufffdb`, "\U000e0001": `\U000e0001`,
	} {
		if got := clean(in, nameRunes); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, name := range hostile {
		f.Add(name[:min(len(name), 1000)])
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got := clean(name, nameRunes); !safe(got) {
			t.Errorf("%q becomes %q", name, got)
		}
	})
}

// poisoned returns a dump in which every text is hostile.
func poisoned(name string) *inspect.Dump {
	d := shop()
	s := d.Snapshot
	s.Fibers = s.Fibers[:20]
	s.Process.Program, s.Process.Go, s.Process.Coir = name, name, name
	for i := range s.Fibers {
		f := &s.Fibers[i]
		f.Name, f.State, f.Spawned, f.At, f.Stack = name, snapshot.State(name), name, name, name
		for k := range f.Wait {
			f.Wait[k].Text, f.Wait[k].Kind = name, snapshot.WaitKind(name)
		}
		if i%2 == 0 {
			f.State, f.Wait = snapshot.State(name), nil
		}
	}
	for i := range s.Nurseries {
		s.Nurseries[i].Ended, s.Nurseries[i].Cause = true, name
	}
	for i := range s.Objects {
		o := &s.Objects[i]
		o.Name, o.Ends = name, name
		if i%2 == 0 {
			o.Kind = name
		}
	}
	for i := range s.Workers {
		s.Workers[i].State = snapshot.WorkerState(name)
	}
	for i := range d.Explanations {
		d.Explanations[i].Text, d.Explanations[i].Kind = name, snapshot.Problem(name)
	}
	return d
}

// No hostile name reaches the terminal unchanged in any view, page or title.
func TestHostileNames(t *testing.T) {
	for _, name := range hostile {
		m := showing(t, poisoned(name))
		m.take(newData(step(1).of(poisoned(name))), nil)
		m.take(newData(step(2).of(poisoned(name))), &problem{"no answer", "try again"})
		for _, keys := range [][]string{
			{"1"}, {"s"}, {"g"}, {"enter"}, {"end"}, {"1", "down", "enter"}, {"enter"}, {"2"},
			{"2", "down", "down", "enter"}, {"3"}, {"f"}, {"enter"}, {"down", "enter"}, {"4"}, {"enter"}, {"5"}, {"enter"},
		} {
			m.press(keys...)
			fits(t, m)
			for _, line := range m.draw() {
				// Only styles are left, and all of them are coir-top's own.
				for _, style := range []string{reset, bold, reverse, alarming, doubtful} {
					line = strings.ReplaceAll(line, style, "")
				}
				if !safe(line) {
					t.Fatalf("%.40q, after %q: %q", name, keys, line)
				}
				if ansi.Strip(line) != line {
					t.Fatalf("%.40q, after %q: %q", name, keys, line)
				}
			}
		}
		if len(m.text()) > 4*m.width*m.height {
			t.Errorf("%.40q makes a screen of %d bytes", name, len(m.text()))
		}
	}
}
