package document

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKeepWritesOnlyThePart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("a\n<!-- x -->\nold\n<!-- end -->\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		part  string
		write bool
		ok    bool
		then  string
	}{
		{"old\n", false, true, "old\n"},
		{"new\n", false, false, "old\n"},
		{"new\n", true, true, "new\n"},
		{"new\n", false, true, "new\n"},
	} {
		ok, err := Keep(file, "<!-- x -->\n", "<!-- end -->\n", step.part, step.write)
		text, _ := os.ReadFile(file)
		if want := "a\n<!-- x -->\n" + step.then + "<!-- end -->\nb\n"; ok != step.ok || err != nil || string(text) != want {
			t.Errorf("%+v: %t, error %v, the file is %q", step, ok, err, text)
		}
	}
	for _, marks := range [][2]string{{"<!-- y -->\n", "<!-- end -->\n"}, {"<!-- end -->\n", "<!-- x -->\n"}} {
		if _, err := Keep(file, marks[0], marks[1], "", true); err == nil {
			t.Errorf("the file has no part between %q and %q, and there is no error", marks[0], marks[1])
		}
	}
}
