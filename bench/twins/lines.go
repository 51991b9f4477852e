package twins

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Lines returns the lines of code in the Go files of a directory, without tests: those that are neither blank nor only
// a comment.
func Lines(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	lines := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		lines += linesOf(text)
	}
	return lines, nil
}

// linesOf returns the lines of a file that contain code.
func linesOf(text []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines, last := 0, 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // the newline of a line that was counted
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n") // a raw string has several
		lines += max(0, end-max(last, first-1))
		last = max(last, end)
	}
}
