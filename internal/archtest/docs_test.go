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

// TestDocsNameWhatExists checks that every coir.X and sim.X in README and the documents is exported by that package. So
// it finds a name that was changed in code only, even in a fragment that is never compiled.
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
		if filepath.Ext(file) != ".md" || file == "CHANGELOG.md" { // has names of the past
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

// TestProgramsInDocsBuild checks that a code block that is a whole program compiles.
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

// TestREADMEIsShort checks that README has at most 150 lines. Tables and reference belong in docs.
func TestREADMEIsShort(t *testing.T) {
	if n := strings.Count(text(t, filepath.Join(root(t), "README.md")), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, and may have 150: move tables and reference to docs", n)
	}
}

// shownBy lists the commands in README, each with a file that runs it, and text of that file.
var shownBy = map[string][2]string{
	"go install github.com/coir-go/coir/cmd/coir@latest": {".ci/installable", `go install "$module/cmd/coir@latest"`},
	"go get github.com/coir-go/coir@latest":              {".ci/installable", `go get "$module@$version"`},
	"coir test .":                                        {"cmd/coir/tokens_test.go", `run([]string{"test", "./testdata/pay"}`},
	"coir test":                                          {".ci/installable", "coir test -schedules 100 ./bank"},
	"coir test ./...":                                    {"cmd/coir/ci_test.go", `"-junit", name, "./..."}`},
	"coir test -race":                                    {"cmd/coir/alarms_test.go", `explored(t, "-race"`},
	"go test -race":                                      {"Makefile", "$(GO) test $(SHORT) -race $$($(GO) list ./..."},
	"go run .":                                           {".ci/installable", "\ngo run .\n"},
	"make report":                                        {"Makefile", "\nreport: "},
}

// TestREADMECommandsAreRun checks that a test or a step of CI runs each command in README, except make report, which
// takes 40 minutes.
func TestREADMECommandsAreRun(t *testing.T) {
	readme := text(t, filepath.Join(root(t), "README.md"))
	found := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)`((?:coir|go|make) [a-z][^`]*)`|^    (?:\\$ )?((?:coir|go|make) .*)$").FindAllStringSubmatch(readme, -1) {
		found[m[1]+m[2]] = true
	}
	for command := range found {
		by, ok := shownBy[command]
		if !ok {
			t.Errorf("README.md shows %q: name what runs it in shownBy", command)
		} else if !strings.Contains(text(t, filepath.Join(root(t), by[0])), by[1]) {
			t.Errorf("%s does not run %q any more: it has no %q", by[0], command, by[1])
		}
	}
	if len(found) != len(shownBy) {
		t.Errorf("README.md shows %d commands, shownBy has %d: take out those that it no longer shows", len(found), len(shownBy))
	}
}

// TestExamplesAreIndexed checks that each example has a README that says what it is for and how to run it, a test, and
// a row in docs/examples.md.
func TestExamplesAreIndexed(t *testing.T) {
	dir := root(t)
	index := text(t, filepath.Join(dir, "docs", "examples.md"))
	examples, err := filepath.Glob(filepath.Join(dir, "examples", "*"))
	if err != nil || len(examples) < 12 {
		t.Errorf("%d examples, %v", len(examples), err)
	}
	for _, example := range examples {
		name := filepath.Base(example)
		if !strings.Contains(index, "["+name+"](../examples/"+name+")") {
			t.Errorf("docs/examples.md has no row of %s", name)
		}
		if tests, err := filepath.Glob(filepath.Join(example, "*_test.go")); err != nil || tests == nil {
			t.Errorf("examples/%s has no test", name)
		}
		readme := text(t, filepath.Join(example, "README.md"))
		if strings.Count(readme, "\n") < 10 || !strings.Contains(readme, "go run ") {
			t.Errorf("examples/%s/README.md has fewer than ten lines, or does not say how to run the example", name)
		}
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
