package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write api/coir.txt instead of comparing with it")

// TestAPIIsRecorded: the exported surface changes only on purpose.
func TestAPIIsRecorded(t *testing.T) {
	lines, err := API(root(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root(t), "api", "coir.txt")
	want := ""
	if len(lines) > 0 {
		want = strings.Join(lines, "\n") + "\n"
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
	if slices.Equal(have, lines) {
		return
	}
	for _, l := range lines {
		if !slices.Contains(have, l) {
			t.Errorf("new: %s", l)
		}
	}
	for _, l := range have {
		if !slices.Contains(lines, l) {
			t.Errorf("gone: %s", l)
		}
	}
	t.Error("api/coir.txt is not the exported surface: if the change is meant, run `go test ./internal/archtest -run TestAPIIsRecorded -update` and say so in CHANGELOG.md")
}

// TestAPIReadsEveryShape: a change of what the reader leaves out would go unseen.
func TestAPIReadsEveryShape(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", `package p

import "context"

const Unbounded = 1
const Wait Overflow = 0
var ErrClosed error
type Overflow int
type Alias = Overflow
type Chan[T any] struct { Name string; hidden int; context.Context }
type Clock interface { Now() int; private() }
type hidden struct{ X int }
func (h hidden) M() {}
func (c *Chan[T]) Send(
	ctx context.Context,
	v T,
) error { return nil }
func (c *Chan[T]) low() {}
func Run[T any](ctx context.Context, fs ...func(int) error) (T, error) { panic(0) }
func low() {}
`)
	write("a_test.go", "package p\n\nfunc Helper() {}\n")
	got, err := API(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"const Unbounded",
		"const Wait Overflow",
		"func Run[T any](ctx context.Context, fs ...func(int) error) (T, error)",
		"method (*Chan[T]) Send(ctx context.Context, v T) error",
		"type Alias = Overflow",
		"type Chan[T any] struct",
		"type Chan[T any] struct, Name string",
		"type Chan[T any] struct, embeds context.Context",
		"type Clock interface",
		"type Clock interface, Now() int",
		"type Overflow int",
		"var ErrClosed error",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the surface is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
