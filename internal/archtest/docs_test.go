package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// qualified matches a name of package coir or sim in text, such as coir.Run.
var qualified = regexp.MustCompile(`\b(coir|sim)\.([A-Z]\w*)`)

// TestDocsNameWhatExists: what README and the documents call coir.X or sim.X is exported by that package. A name that
// was changed in code only is found here, also in a fragment that nothing compiles.
func TestDocsNameWhatExists(t *testing.T) {
	dir := root(t)
	exist := map[string]bool{}
	for pkg, in := range map[string]string{"coir": ".", "sim": "sim"} {
		lines, err := API(filepath.Join(dir, in))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			kind, rest, _ := strings.Cut(line, " ")
			if kind != "method" {
				exist[pkg+"."+regexp.MustCompile(`^\w+`).FindString(rest)] = true
			}
		}
	}
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if filepath.Ext(file) != ".md" || file == "CHANGELOG.md" { // which has names of the past
			continue
		}
		for _, m := range qualified.FindAllStringSubmatch(text(t, filepath.Join(dir, file)), -1) {
			found++
			if !exist[m[0]] {
				t.Errorf("%s names %s, which is not exported: write the name that it has now", file, m[0])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names were found: the pattern no longer fits the documents; correct it", found)
	}
}

// TestProgramsInDocsBuild: a code block that is a whole program compiles.
func TestProgramsInDocsBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := root(t)
	guides, err := filepath.Glob(filepath.Join(dir, "docs", "guide", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	for _, path := range append(guides, filepath.Join(dir, "README.md")) {
		for _, block := range strings.Split(text(t, path), "```go\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			if !strings.HasPrefix(block, "package main\n") {
				continue
			}
			built++
			program := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(program, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "vet", program)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s has a program that does not build; correct the document: %v\n%s",
					filepath.Base(path), err, out)
			}
		}
	}
	if built == 0 {
		t.Error("no document has a program")
	}
}

// TestREADMEIsShort: README has at most 200 lines. Tables and reference are for docs.
func TestREADMEIsShort(t *testing.T) {
	if n := strings.Count(text(t, filepath.Join(root(t), "README.md")), "\n"); n > 200 {
		t.Errorf("README.md has %d lines, and may have 200: move tables and reference to docs", n)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
