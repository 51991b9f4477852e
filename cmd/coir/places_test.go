package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// The names of directories are not patterns: a [ in them is an ordinary letter.
func TestDirectoriesWithBrackets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	kept, stale := filepath.Join(dir, "testdata", "coir", "TestX"), filepath.Join(dir, tempPrefix+"1")
	token := aToken(coir.TokenHead{})
	for name, text := range map[string]string{
		filepath.Join(dir, "m.go"):            "package other\n",
		filepath.Join(dir, "m_test.go"):       "package m_test\n\nfunc TestX(t *testing.T) {}\n",
		filepath.Join(kept, "deadlock-12345"): "# a comment\n" + token + "\n",
		filepath.Join(stale, "lock"):          "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if tokens, files := saved(dir, "TestX"); len(tokens) != 1 || tokens[0] != token || files[0] != filepath.Join(kept, "deadlock-12345") {
		t.Errorf("the saved tokens are %q, in %q", tokens, files)
	}
	if name, err := packageOf(dir, "TestX"); name != "m_test" || err != nil {
		t.Errorf("the package of the test is %q, %v", name, err)
	}
	if at := declared(dir, "TestX"); at.line != 3 || at.file != filepath.Join(dir, "m_test.go") {
		t.Errorf("the test is declared at %v", at)
	}
	if runtime.GOOS == "windows" { // nothing locks the directory
		return
	}
	_, remove, err := makeTemp(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the directory of a run that was killed stays: %v", err)
	}
}
