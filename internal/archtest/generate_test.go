package archtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGenerateWritesEverything checks that make generate runs each package whose tests write files with -update, and
// that it names existing tests. Otherwise the files become stale, and contributors must know how to write them.
func TestGenerateWritesEverything(t *testing.T) {
	files, err := Files(root(t))
	if err != nil {
		t.Fatal(err)
	}
	makefile := text(t, filepath.Join(root(t), "Makefile"))
	for name, value := range variables(makefile) {
		makefile = strings.ReplaceAll(makefile, "$("+name+")", value)
	}
	runs := map[string][]string{} // the tests, by the directory of the package
	for _, m := range regexp.MustCompile(`(?m)^\t.* \./(\S+) -run '(.*)' -update$`).FindAllStringSubmatch(makefile, -1) {
		runs[m[1]] = strings.Split(m[2], "|")
	}
	tests := map[string]string{} // the text of the tests of these packages
	for _, file := range files {
		dir := filepath.ToSlash(filepath.Dir(file))
		if !strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		source := text(t, filepath.Join(root(t), file))
		if strings.Contains(source, "flag."+`Bool("update"`) && runs[dir] == nil {
			t.Errorf("%s has the flag -update, and make generate does not set it: add ./%s to that target", file, dir)
		}
		tests[dir] += source
	}
	for dir, names := range runs {
		for _, name := range names {
			if !strings.Contains(tests[dir], "\nfunc "+name+"(") {
				t.Errorf("make generate runs %s in ./%s, which has no such test", name, dir)
			}
		}
	}
}

// variables returns the variables that a makefile sets to a text.
func variables(makefile string) map[string]string {
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+) +:= (.*)$`).FindAllStringSubmatch(makefile, -1) {
		all[m[1]] = m[2]
	}
	return all
}
