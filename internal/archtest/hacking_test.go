package archtest

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sectionOf returns a section of docs/HACKING.md.
func sectionOf(t *testing.T, heading string) string {
	t.Helper()
	_, section, ok := strings.Cut(text(t, filepath.Join(root(t), "docs", "HACKING.md")), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/HACKING.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// TestReleasesAreNamed checks the files that name the newest release of Go that coir test supports. Those in the table
// of HACKING name it. Another file does not say "1.26 and 1.27", or name a patch release of the newest.
func TestReleasesAreNamed(t *testing.T) {
	dir := root(t)
	last := regexp.MustCompile(`const first, last = \d+, (\d+)`).FindStringSubmatch(
		text(t, filepath.Join(dir, "cmd/coir/internal/overlay/overlay.go")))
	if last == nil {
		t.Fatal("overlay.go does not say which release is the last: correct the pattern above")
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(sectionOf(t, "A new Go release"), -1) {
		listed = append(listed, m[1])
	}
	if len(listed) < 5 {
		t.Fatalf("the table of HACKING lists only %q: correct the pattern above", listed)
	}
	names := regexp.MustCompile(`(?:\b|go)1\.` + last[1] + `\b|last = \d+, ` + last[1] + `\b`)
	for _, file := range listed {
		if !names.MatchString(text(t, filepath.Join(dir, file))) {
			t.Errorf("%s does not name Go 1.%s, and overlay.go has it: see the section of docs/HACKING.md", file, last[1])
		}
	}
	pins := regexp.MustCompile(`\b1\.\d+ (?:and|to|or) 1\.` + last[1] + `\b|\bgo1\.` + last[1] + `\.\d`)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if ext := path.Ext(file); !slices.Contains([]string{".go", ".md", ".s", ".yml", "", ".diff"}, ext) ||
			strings.HasPrefix(file, "docs/design/") || strings.Contains(file, "testdata/") ||
			slices.Contains([]string{"CHANGELOG.md", "internal/archtest/hacking_test.go"}, file) {
			continue // measured figures name the release of that time
		}
		if m := pins.FindString(text(t, filepath.Join(dir, file))); m != "" && !slices.Contains(listed, file) {
			t.Errorf("%s says %q: list it in docs/HACKING.md, under %q", file, m, "A new Go release")
		}
	}
}

// TestVariablesAreListed checks that HACKING lists the variables of the environment that begin with COIR_, and that one
// function says what COIR_SOAK means.
func TestVariablesAreListed(t *testing.T) {
	dir := root(t)
	listed := make(map[string]bool) // whether it was found
	name := regexp.MustCompile("`(COIR_[A-Z_]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| (`COIR_[^|]*) \\|").FindAllStringSubmatch(sectionOf(t, "Variables"), -1) {
		for _, m := range name.FindAllStringSubmatch(row[1], -1) {
			listed[m[1]] = false
		}
	}
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`"(COIR_[A-Z_]+)[="]|(?m)^\t(?:cd \S+ && )?(COIR_[A-Z_]+)=|\$\{(COIR_[A-Z_]+)`)
	soak := regexp.MustCompile(`Getenv\("COIR_SOAK"\)( != "")?`)
	for _, file := range files {
		if ext := path.Ext(file); ext != ".go" && ext != "" || file == "internal/archtest/hacking_test.go" {
			continue
		}
		code := text(t, filepath.Join(dir, file))
		for _, m := range used.FindAllStringSubmatch(code, -1) {
			v := m[1] + m[2] + m[3]
			if _, ok := listed[v]; !ok {
				t.Errorf("%s uses %s: list it in docs/HACKING.md, under Variables", file, v)
				continue
			}
			listed[v] = true
		}
		for _, m := range soak.FindAllStringSubmatch(code, -1) {
			example := strings.Contains("/"+file, "/examples/") && m[1] != ""
			if file != "internal/soak/soak.go" && !example {
				t.Errorf("%s reads COIR_SOAK: call soak.On; in a test of an example, compare with the empty text", file)
			}
		}
	}
	for v, found := range listed {
		if !found {
			t.Errorf("docs/HACKING.md lists %s, which nothing uses: remove it", v)
		}
	}
}

// TestWordsOfStepsAreListed checks that HACKING has the words by which steps of CI select tests as the Makefile has
// them, and that each word selects one.
func TestWordsOfStepsAreListed(t *testing.T) {
	dir := root(t)
	makefile, section := text(t, filepath.Join(dir, "Makefile")), sectionOf(t, "Names inside")
	rows := regexp.MustCompile("`([A-Z]+)`: ([A-Z][\\w, ]+) \\|").FindAllStringSubmatch(section, -1)
	if len(rows) != 3 {
		t.Fatalf("HACKING has %d rows of words: correct the pattern above", len(rows))
	}
	for _, row := range rows {
		line := regexp.MustCompile(`(?m)^` + row[1] + `\s*:= (\S+)$`).FindStringSubmatch(makefile)
		if line == nil || strings.ReplaceAll(line[1], "|", ", ") != row[2] {
			t.Errorf("HACKING says that %s is %s; the Makefile has %q", row[1], row[2], line)
			continue
		}
		of := "sim/*_test.go"
		if row[1] == "PUREGO" {
			of = "*_test.go"
		}
		tests, err := filepath.Glob(filepath.Join(dir, of))
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.SplitSeq(line[1], "|") {
			declares := regexp.MustCompile(`(?m)^func Test\w*` + word)
			if !slices.ContainsFunc(tests, func(file string) bool { return declares.MatchString(text(t, file)) }) {
				t.Errorf("no test of %s has the word %s in its name: remove it from %s in the Makefile", of, word, row[1])
			}
		}
	}
}
