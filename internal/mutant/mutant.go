// Package mutant checks that tests find faults. A mutant is a change to the code of this module that some test must
// find. It is applied with the go command's -overlay flag, so nothing in the tree changes.
package mutant

import (
	"bytes"
	"encoding/json"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/soak"
)

// Mutant is a change to one file.
type Mutant struct {
	Name  string
	File  string   // relative to the top of the module
	Edits []string // pairs: old text, which the file has once, and new text; comments are ignored
	Test  string   // the package, and the test that finds the mutant; not used by all suites
}

// Suite describes how a set of mutants is tested.
type Suite struct {
	Mutants []Mutant
	Parts   int                          // each day one of so many parts of the mutants is tried
	Args    func(m Mutant) []string      // the arguments of go test, including the package
	Found   *regexp.Regexp               // matches the output of a test that has found the mutant
	Tell    func(groups []string) string // describes the failure, from the groups that Found has matched
	Ends    []string                     // how other lines may begin with which a test that finds the mutant ends
}

// Today returns a function that reports whether a test tries the thing with a given number today: a part of them each
// day, or all if COIR_SOAK is set. COIR_DAY=n stands for another day, and COIR_DAY=-1 for none.
func Today(t *testing.T, parts int) func(i int) bool {
	t.Helper()
	if soak.On() {
		return func(int) bool { return true }
	}
	day := time.Now().UTC().YearDay()
	if text := os.Getenv("COIR_DAY"); text != "" {
		var err error
		if day, err = strconv.Atoi(text); err != nil {
			t.Fatalf("COIR_DAY: %v", err)
		}
	}
	t.Logf("part %d of %d: COIR_DAY=%d repeats it, COIR_SOAK=1 tries all", day%parts+1, parts, day)
	return func(i int) bool { return i%parts == day%parts }
}

// Run tries the mutants of today, each of which must be found. It checks that the others still fit the code.
func (s *Suite) Run(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	today := Today(t, s.Parts)
	for i, m := range s.Mutants {
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(root, m.File)
			changed := m.write(t, file, dir)
			if !today(i) {
				t.Skip("it is the turn of others today")
			}
			s.try(t, &m, root, dir, map[string]string{file: changed})
		})
	}
}

// try runs go test with replaced files.
func (s *Suite) try(t *testing.T, m *Mutant, root, dir string, replace map[string]string) {
	t.Helper()
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", append([]string{"test", "-count=1", "-vet=off", "-overlay=" + overlay}, s.Args(*m)...)...)
	c.Dir = root
	c.Env = append(os.Environ(), "COIR_SOAK=") // the short form, which CI runs, must find it
	out, err := c.CombinedOutput()
	found := s.Found.FindStringSubmatch(string(out))
	switch {
	case err == nil:
		t.Errorf("not found")
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("no tests to run")):
		t.Errorf("%s", out)
	case found != nil:
		t.Logf("found %s", s.Tell(found))
	default:
		line := firstLine(string(out), s.Ends)
		if line == "" || strings.Contains(line, "timed out") {
			t.Fatalf("ended in another way:\n%s", out)
		}
		t.Logf("found: %s", line)
	}
}

// write writes the changed file to dir and returns its name.
func (m *Mutant) write(t *testing.T, file, dir string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = code(text)
	for i := 0; i < len(m.Edits); i += 2 {
		old := code([]byte(m.Edits[i]))
		if n := bytes.Count(text, old); n != 1 {
			t.Fatalf("%s has %d times, without comments:\n%s", m.File, n, old)
		}
		text = bytes.Replace(text, old, []byte(m.Edits[i+1]), 1)
	}
	to := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// code returns a part of a Go file without its comments, so that a mutant fits whatever they say. It keeps directives.
// It removes a line that has only a comment.
func code(text []byte) []byte {
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	scan.Init(file, text, func(token.Position, string) {}, scanner.ScanComments) // a part may begin or end anywhere
	var out []byte
	from := 0
	for {
		pos, tok, comment := scan.Scan()
		if tok == token.EOF {
			return append(out, text[from:]...)
		}
		if tok != token.COMMENT || strings.HasPrefix(comment, "//go:") {
			continue
		}
		at := file.Offset(pos)
		out = append(out, text[from:at]...)
		line := bytes.LastIndexByte(out, '\n') + 1
		from = at + len(comment)
		if out = bytes.TrimRight(out, " \t"); len(out) <= line { // it has the whole line
			out = out[:min(line, len(out))]
			if from < len(text) && text[from] == '\n' {
				from++
			}
		}
	}
}

func firstLine(out string, with []string) string {
	for line := range strings.Lines(out) {
		for _, w := range with {
			if strings.HasPrefix(line, w) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}
