package archtest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bareTexts are the texts of errors without the name of their package, by the package, and why.
var bareTexts = []struct{ dir, why, texts string }{
	{".", "the cause in an error that begins with coir", `
		pipe.go: every reader of the pipe is closed
		pipe.go: this endpoint of the pipe is closed`},
	{".", "no caller sees it", `
		pool.go: discarded`},
	{"buf/shm", "the cause in an error that begins with shm", `
		memory_linux.go: no number of memfd_create for %s is known: %w
		open_linux.go: the connection is not of a Unix socket, or the other side cannot share memory: %w
		open_other.go: memory is shared on Linux only: %w
		shm.go: links are not simulated; use a buf.Chan in a simulation`},
	{"inspect", "the cause in an error that begins with inspect", `
		watch.go: it would have more than 32 MB`},
	{"netio", "the text of package net or of the kernel, inside of a *net.OpError", `
		simerr_plan9.go: address already in use
		simerr_plan9.go: broken pipe
		simerr_plan9.go: cannot assign requested address
		simerr_plan9.go: connection refused
		simerr_plan9.go: connection reset by peer
		simerr_plan9.go: no such file or directory
		simerr_plan9.go: transport endpoint is not connected
		sys_unix.go: missing address`},
}

// An error or a panic begins with the name of the package that it comes from.
func TestErrorsNameTheirPackage(t *testing.T) {
	for _, dir := range public(t) {
		var bare []string
		for _, b := range bareTexts {
			if b.dir == dir {
				for text := range strings.Lines(strings.TrimSpace(b.texts)) {
					bare = append(bare, strings.TrimSpace(text))
				}
			}
		}
		slices.Sort(bare)
		prefix := path.Base(dir) + ": "
		if dir == "." {
			prefix = "coir: "
		}
		found, err := Unprefixed(filepath.Join(root(t), dir), prefix)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(found, bare) {
			t.Errorf("%s: errors that do not begin with %q:\n%s\nbareTexts lists:\n%s\n"+
				"Begin the text so, or change bareTexts in internal/archtest/texts_test.go", dir, prefix,
				strings.Join(found, "\n"), strings.Join(bare, "\n"))
		}
	}
}

func TestUnprefixedFindsEachForm(t *testing.T) {
	const text = `package p

var (
	errGood  = errors.New("p: good")
	errBad   = errors.New("bad variable")
)

func (e *typed) Error() string { return "bad method: " + e.text }
func (e *other) Error() string { return "p: good" }

func f(name string, err error) error {
	panic("bad panic")
	panic(fmt.Sprintf("bad format %d", 1))
	panic("p: " + name)
	panic(err)
	fmt.Errorf("%w: good", errGood)
	return fmt.Errorf("bad " + name)
}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Unprefixed(dir, "p: ")
	want := []string{"p.go: bad ", "p.go: bad format %d", "p.go: bad method: ", "p.go: bad panic", "p.go: bad variable"}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, %v, want %q", found, err, want)
	}
}
