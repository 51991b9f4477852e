package archtest

import (
	"go/scanner"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// isNo matches forms that Go's own errors do not have: they say "is not a number", and "unknown command" or "no such
// file" without "there is".
var isNo = regexp.MustCompile(`\b(?:is no|are no|it has no) `)

// TestErrorsAreWordedAsGos checks the texts in code outside of tests.
func TestErrorsAreWordedAsGos(t *testing.T) {
	dir := root(t)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		checked++
		for _, x := range worded([]byte(text(t, filepath.Join(dir, filepath.FromSlash(file)))), isNo) {
			t.Errorf("%s: %q: write \"is not a\", \"no\" or \"unknown\", or say what is expected", file, x)
		}
	}
	if checked < 300 {
		t.Errorf("%d files were checked, want at least 300", checked)
	}
}

// worded returns the texts in a Go file that match. It skips texts in backquotes, which are usages and pages, and does
// not count "is no longer".
func worded(source []byte, bad *regexp.Regexp) (found []string) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile("", -1, len(source)), source, nil, 0)
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return found
		}
		if tok != token.STRING || lit[0] == '`' {
			continue
		}
		if x, err := strconv.Unquote(lit); err == nil && bad.MatchString(strings.ReplaceAll(x, "no longer", "")) {
			found = append(found, x)
		}
	}
}

func TestWordedFindsTexts(t *testing.T) {
	const source = "package p\n\n// It is no error.\nvar a, b, c = \"this is no dump\", \"is not a dump\", `it has no name`\n" +
		"var d, e = \"it has no name\", \"it is no longer\"\n"
	if got, want := worded([]byte(source), isNo), []string{"this is no dump", "it has no name"}; !slices.Equal(got, want) {
		t.Errorf("worded found %q, want %q", got, want)
	}
}
