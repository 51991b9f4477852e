package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// elsewhere matches text that is true only on one machine: absolute paths of a home or a workspace, and hosts that
// packages are fetched from. The patterns are split, so that this file does not match itself.
var elsewhere = regexp.MustCompile(
	`(?:^|[\s"'` + "`" + `(=:,])/(?:wo` + `rk|ro` + `ot|ho` + `me|Us` + `ers)/` +
		`|pro` + `xy\.golang|su` + `m\.golang|gop` + `roxy\.|registry\.n` + `pmjs|py` + `pi\.org|dock` + `er\.io|gh` + `cr\.io`)

// TestTextIsAtHomeAnywhere checks that the text of the repository does not depend on the machine on which it was
// written.
func TestTextIsAtHomeAnywhere(t *testing.T) {
	dir := root(t)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if os.IsNotExist(err) {
			continue // removed since the walk by another test
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue // not text
		}
		number := 0
		for line := range bytes.Lines(text) {
			number++
			if m := elsewhere.Find(line); m != nil {
				t.Errorf("%s:%d has %q: the text must hold on every machine; use a relative path or a variable", file, number, bytes.TrimSpace(m))
			}
		}
	}
}
