package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFilesLeavesGitOut checks that Files omits .git. It is a directory in a clone, and a file with an absolute path in
// a worktree.
func TestFilesLeavesGitOut(t *testing.T) {
	for _, git := range []string{".git", ".git/config"} {
		dir := t.TempDir()
		for _, name := range []string{git, ".bin/tool", "a/b.go", "c.md"} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Files(dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"a/b.go", "c.md"}; !slices.Equal(got, want) {
			t.Errorf("with %s the files are %q, want %q", git, got, want)
		}
	}
}
