package archtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Module is the import path of the root module.
const Module = "github.com/coir-go/coir"

// Root returns the top of the repository that contains a directory: the nearest one that holds spec/SPEC.md. A go.mod
// does not tell, because nested modules have one too.
func Root(from string) (string, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "spec", "SPEC.md")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("archtest: no directory above " + from + " holds spec/SPEC.md")
		}
		dir = up
	}
}

// Files lists every regular file of the repository, slash-separated and relative to root, in lexical order. It leaves
// out git's own files and what the lint step builds.
func Files(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed while we walked: another test cleans up
			}
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == ".bin" {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Name() == ".git" || !d.Type().IsRegular() { // in a worktree .git is a file
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files = append(files, filepath.ToSlash(rel))
		return nil
	})
	return files, err
}

// Newer reports whether a file is for a release of Go whose syntax the release that go.mod names cannot parse. Such a
// file has the release in its name, as fluent_go127.go has, and cites no rules.
func Newer(file string) bool {
	return strings.HasSuffix(file, "_go127.go") || strings.HasSuffix(file, "_go127_test.go")
}
