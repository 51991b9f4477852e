package archtest

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const maxColumns = 120

// TestLinesFitTheScreen checks that comments, and code outside of tests, have at most 120 columns. A tab counts as one
// column, and quoted text is not counted, because a broken text is hard to search for.
func TestLinesFitTheScreen(t *testing.T) {
	files, err := Files(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Ext(file) != ".go" || strings.Contains(file, "testdata/") {
			continue
		}
		for _, line := range tooLong([]byte(text(t, filepath.Join(root(t), file))), strings.HasSuffix(file, "_test.go")) {
			t.Errorf("%s:%d has more than %d columns: break it", file, line, maxColumns)
		}
	}
}

// tooLong returns the numbers of the lines of a Go file that are too long. In a test, only comments count.
func tooLong(source []byte, test bool) (found []int) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	quoted := map[int]int{} // the columns of the texts in quotes, by line
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.STRING {
			for i, part := range strings.Split(lit, "\n") {
				quoted[file.Line(pos)+i] += utf8.RuneCountInString(part)
			}
		}
	}
	for i, line := range bytes.Split(source, []byte("\n")) {
		comment := bytes.HasPrefix(bytes.TrimSpace(line), []byte("// "))
		if (comment || !test) && utf8.RuneCount(line)-quoted[i+1] > maxColumns {
			found = append(found, i+1)
		}
	}
	return found
}

func TestTooLongCountsComments(t *testing.T) {
	long := strings.Repeat("x", maxColumns)
	source := fmt.Sprintf("package p\n\n// %[1]s\n\nvar a%[1]s = 1\nvar b = \"%[1]s\" // %[1]s\nvar c = `\n%[1]s%[1]s\n`\n// %.117[1]s\n", long)
	if got, want := tooLong([]byte(source), false), []int{3, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("the lines %v are too long, want %v", got, want)
	}
	if got, want := tooLong([]byte(source), true), []int{3}; !slices.Equal(got, want) {
		t.Errorf("of a test the lines %v are too long, want %v", got, want)
	}
}
