package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	declared  = regexp.MustCompile(`\bfunc ((?:Test|Fuzz|Benchmark|Example)\w+)\(`)
	testName  = regexp.MustCompile(`(\^?)\b((?:Test|Fuzz)[A-Z]\w*)\b(\.\.\.|\*|\$|<)?`)
	inQuotes  = regexp.MustCompile("`([^`\n]+)`")
	linked    = regexp.MustCompile(`\]\(([\w./-]+)(?:#[\w-]*)?\)`)
	fileName  = regexp.MustCompile(`^(?:[\w.-]+/)*[\w-]+\.(?:go|md|txt|pml|sh|json|png)$`)
	makeVerb  = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	goComment = regexp.MustCompile(`(?m)(?:^|\s)//.*$`)
	fenced    = regexp.MustCompile("(?s)\n```.*?\n```")
)

// elsewhereTested are the documents that name tests and files of other projects.
var elsewhereTested = []string{"CHANGELOG.md", "docs/guide/coir-test-real-code.md"}

// TestTextNamesWhatExists checks that the tests named in comments and documents exist, and so do the files, links and
// make targets named in documents.
func TestTextNamesWhatExists(t *testing.T) {
	dir := root(t)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := names{tests: make(map[string]bool), verbs: make(map[string]bool)}
	texts := make(map[string]string)
	for _, file := range files {
		switch path.Ext(file) {
		case ".go", ".md", ".pml":
			b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
			if err != nil {
				continue // removed since the walk: another test cleans up
			}
			texts[file] = string(b)
			for _, m := range declared.FindAllStringSubmatch(texts[file], -1) {
				n.tests[m[1]] = true
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(text(t, filepath.Join(dir, "Makefile")), -1) {
		n.verbs[m[1]] = true
	}
	n.exists = func(file string) bool {
		return slices.Contains(files, file) || slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, file+"/") })
	}
	named := 0
	for file, text := range texts {
		if slices.Contains(elsewhereTested, file) {
			continue
		}
		found, missing := n.missing(file, text)
		named += found
		for _, name := range missing {
			t.Errorf("%s names %s, which does not exist: write the name that it has now", file, name)
		}
	}
	if named < 300 {
		t.Errorf("only %d names were found: the patterns no longer fit the texts; correct them", named)
	}
}

// names are what a text may name.
type names struct {
	tests, verbs map[string]bool
	exists       func(file string) bool
}

// missing returns the number of names in a text, and the names that do not exist.
func (n *names) missing(file, text string) (found int, missing []string) {
	check := func(ok bool, name string) {
		if found++; !ok {
			missing = append(missing, name)
		}
	}
	prose := text
	if path.Ext(file) == ".go" {
		prose = strings.Join(goComment.FindAllString(text, -1), "\n")
	}
	for _, m := range testName.FindAllStringSubmatch(prose, -1) {
		ok := n.tests[m[2]]
		if m[3] != "$" && (m[1] != "" || m[3] != "") { // a prefix of names
			for name := range n.tests {
				ok = ok || strings.HasPrefix(name, m[2])
			}
		}
		check(ok, m[2])
	}
	if path.Ext(file) != ".md" {
		return found, missing
	}
	beside := func(name string) bool {
		in := path.Dir(file)
		first, _, _ := strings.Cut(name, "/")
		known := false // the directory; another project's is not
		for _, in := range []string{in, ".", "cmd/coir"} {
			if n.exists(path.Join(in, name)) {
				return true
			}
			known = known || n.exists(path.Join(in, first))
		}
		return !known
	}
	prose = fenced.ReplaceAllString(prose, "")
	for _, m := range linked.FindAllStringSubmatch(prose, -1) {
		check(n.exists(path.Join(path.Dir(file), m[1])), m[1])
	}
	for _, m := range inQuotes.FindAllStringSubmatch(prose, -1) {
		for _, verb := range makeVerb.FindAllStringSubmatch(m[1], -1) {
			check(n.verbs[verb[1]], "make "+verb[1])
		}
		if fileName.MatchString(m[1]) && strings.Contains(m[1], "/") {
			check(beside(m[1]), m[1])
		}
	}
	return found, missing
}

func TestMissingNamesAreFound(t *testing.T) {
	n := names{tests: map[string]bool{"TestA": true}, verbs: map[string]bool{"race": true},
		exists: func(file string) bool { return slices.Contains([]string{"docs/a.md", "sim", "sim/b.go"}, file) }}
	for _, test := range []struct{ file, text, missing string }{
		{"sim/b.go", "/" + "/ Guarded by TestA.\nvar TestB int /" + "/ see TestC", "TestC"},
		{"docs/a.md", "TestA, TestB, `-run '^Test'`, TestA..., TestC..., [x](a.md) [y](b.md#c)", "TestB TestC b.md"},
		{"docs/a.md", "`make race`, `make haste`, `sim/b.go`, `sim/c.go`\n```\n[x](c.md)\n```\n", "make haste sim/c.go"},
	} {
		if _, missing := n.missing(test.file, test.text); strings.Join(missing, " ") != test.missing {
			t.Errorf("of %q %q are missing, not %q", test.text, missing, test.missing)
		}
	}
}
