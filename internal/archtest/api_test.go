package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files in api instead of comparing with them")

// TestAPIIsRecorded checks that the recorded API is current, so that it changes only on purpose.
func TestAPIIsRecorded(t *testing.T) {
	records, err := filepath.Glob(filepath.Join(root(t), "api", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range publicEverywhere(t) {
		lines, err := API(filepath.Join(root(t), dir))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(root(t), APIFile(dir))
		records = slices.DeleteFunc(records, func(record string) bool { return record == file })
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		have := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
		compareAPI(t, APIFile(dir), have, lines)
	}
	for _, record := range records {
		t.Errorf("api/%s is of no package: remove it, and say in CHANGELOG.md what to use instead", filepath.Base(record))
	}
}

// publicEverywhere returns the directories of the packages that users import, of all modules.
func publicEverywhere(t *testing.T) []string {
	t.Helper()
	dirs, err := PublicEverywhere(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Concat(Nested, []string{".", "remote/memory", "remote/ticket", "metrics/otelcoir"}) {
		if !slices.Contains(dirs, dir) {
			t.Fatalf("the public packages of all modules are %q, without %s: the reader is wrong", dirs, dir)
		}
	}
	return dirs
}

// public returns the directories of the packages of the root module that users import.
func public(t *testing.T) []string {
	t.Helper()
	dirs, err := Public(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "sim", "explore", "snapshot", Satellites[0]} {
		if !slices.Contains(dirs, dir) {
			t.Fatalf("the public packages are %q, without %s: the reader is wrong", dirs, dir)
		}
	}
	return dirs
}

// compareAPI compares the record in a file with the exported symbols of a package.
func compareAPI(t *testing.T, file string, have, want []string) {
	t.Helper()
	if slices.Equal(have, want) {
		return
	}
	for _, l := range want {
		if !slices.Contains(have, l) {
			t.Errorf("%s, new: %s", file, l)
		}
	}
	for _, l := range have {
		if !slices.Contains(want, l) {
			t.Errorf("%s, gone: %s", file, l)
		}
	}
	t.Errorf("%s is not the exported surface: if the change is meant, run "+
		"`go test ./internal/archtest -run TestAPIIsRecorded -update` and say so in CHANGELOG.md", file)
}

// TestAPIReadsEveryShape checks that API reads every kind of declaration.
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
