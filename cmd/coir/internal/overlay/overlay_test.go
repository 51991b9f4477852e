package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goEnv returns the value of a variable of the go command that runs the tests.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Make writes every file of the overlay. A second call returns the same path.
func TestMakeFitsThisGo(t *testing.T) {
	dir := t.TempDir()
	root, version := goEnv(t, "GOROOT"), goEnv(t, "GOVERSION")
	name, err := Make(root, version, dir)
	if u, ok := errors.AsType[*Unsupported](err); ok {
		for _, m := range u.Misfits {
			t.Error(m)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var o struct{ Replace map[string]string }
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	for over, by := range o.Replace {
		if !strings.HasPrefix(over, filepath.Join(root, "src")+string(filepath.Separator)) {
			t.Errorf("%s is not a file of the standard library", over)
		}
		if _, err := os.Stat(by); err != nil {
			t.Error(err)
		}
	}
	for _, e := range editsOf(version) {
		if _, ok := o.Replace[filepath.Join(root, "src", filepath.FromSlash(e.file))]; !ok {
			t.Errorf("%s is not in the overlay", e.file)
		}
	}
	again, err := Make(root, version, dir)
	if err != nil || again != name {
		t.Errorf("made again it is %s, %v; was %s", again, err, name)
	}
}

// The edited packages build for other processors. `make build` checks darwin and windows, where all sockets are the
// kernel's.
func TestItBuildsElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	name, err := Make(goEnv(t, "GOROOT"), goEnv(t, "GOVERSION"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"linux/arm64", "linux/386"} {
		system, processor, _ := strings.Cut(target, "/")
		c := exec.Command("go", "build", "-overlay="+name, "testing", "net")
		c.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", target, err, out)
		}
	}
}

// The race detector must not see the accesses of the network in memory. It would report them as races, or take the
// order between them for synchronisation of the program.
func TestTheNetworkIsHiddenFromTheRaceDetector(t *testing.T) {
	files, err := added.ReadDir("_goroot/syscall")
	if err != nil {
		t.Fatal(err)
	}
	var decls []ast.Decl
	for _, file := range files {
		text, err := added.ReadFile("_goroot/syscall/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, f.Decls...)
	}
	for _, d := range decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		marked := fn.Doc != nil && slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:norace" })
		if !marked {
			t.Errorf("%s has no go:norace", fn.Name.Name)
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				t.Errorf("%s has a function within, which the mark is not for", fn.Name.Name)
			case *ast.MapType:
				t.Errorf("%s has a map, which tells the race detector of its accesses", fn.Name.Name)
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "append" || name.Name == "copy") {
					t.Errorf("%s calls %s, which tells the race detector of its accesses", fn.Name.Name, name.Name)
				}
			}
			return true
		})
	}
}

func TestOtherReleasesAreRefused(t *testing.T) {
	for _, version := range []string{"go1.25.4", "go1.28", "go1.28rc1", "devel go1.28-abcdef", "go2.0", ""} {
		_, err := Make(t.TempDir(), version, t.TempDir())
		var u *Unsupported
		if !errors.As(err, &u) || !strings.Contains(err.Error(), "is not supported yet") {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// If edits do not fit their files, Make returns an error that has all of them, and writes nothing.
func TestAnEditThatDoesNotFitIsTold(t *testing.T) {
	root, version := goEnv(t, "GOROOT"), goEnv(t, "GOVERSION")
	copied, dir := t.TempDir(), t.TempDir()
	texts := map[string][]byte{}
	write := func(file string, text []byte) {
		to := filepath.Join(copied, "src", filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range edits {
		if texts[e.file] != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, "src", filepath.FromSlash(e.file)))
		if err != nil {
			t.Fatal(err)
		}
		texts[e.file] = text
		write(e.file, text)
	}
	refused := func(what string) *Unsupported {
		t.Helper()
		_, err := Make(copied, version, dir)
		u, ok := errors.AsType[*Unsupported](err)
		if !ok {
			t.Fatalf("%s: %v", what, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %v was written", what, left)
		}
		return u
	}
	tried := map[string]bool{}
	for _, e := range editsOf(version) {
		if tried[e.file] {
			continue
		}
		tried[e.file] = true
		write(e.file, bytes.ReplaceAll(texts[e.file], []byte(e.old), []byte("package changed\n")))
		u := refused(e.file)
		if !slices.Contains(u.Misfits, Misfit{At: e.at(), Why: e.why, File: e.file}) ||
			slices.ContainsFunc(u.Misfits, func(m Misfit) bool { return m.File != e.file }) {
			t.Errorf("%s: %v", e.file, u.Misfits)
		}
		write(e.file, texts[e.file])
	}
	all := editsOf(version)
	for file := range texts {
		write(file, []byte("package changed\n"))
	}
	if u := refused("all files"); len(u.Misfits) != len(all) {
		t.Errorf("no edit fits: %d of %d are told", len(u.Misfits), len(all))
	}
	if err := os.RemoveAll(filepath.Join(copied, "src")); err != nil {
		t.Fatal(err)
	}
	u, first := refused("no file"), all[0]
	want := Misfit{At: first.at(), Why: first.why, File: first.file, Number: -1}
	if len(u.Misfits) != len(all) || u.Misfits[0] != want || !strings.Contains(u.Error(), want.String()) {
		t.Errorf("no file exists: %d of %d misfits are told: %v", len(u.Misfits), len(all), u)
	}
}

// A misfit says which edit it is, and why the edit is there.
func TestAMisfitNamesItsEdit(t *testing.T) {
	for _, e := range edits {
		if !strings.HasPrefix(e.why, "set Explores") {
			continue
		}
		lines := strings.Split(editsDiff, "\n")
		if at := fmt.Sprintf("edits.diff:%d", e.line); e.at() != at || lines[e.line-1] != "@@ "+e.why {
			t.Errorf("%q is at %s, where there is %q", e.why, e.at(), lines[e.line-1])
		}
		got := fmt.Sprint(Misfit{At: e.at(), Why: e.why, File: e.file, Number: 2})
		if want := e.at() + `: runtime/proc.go: "set Explores before the first map is made": matches 2 times`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		return
	}
	t.Error("there is no such edit")
}

func TestEachEditHasAReason(t *testing.T) {
	for _, e := range edits {
		if e.why == "" || e.old == "" || e.old == e.new {
			t.Errorf("%s: %+v", e.file, e)
		}
	}
}

// A line of edits.diff that is not part of a patch is refused. The error contains the number of the line.
func TestEditsAreParsed(t *testing.T) {
	const good = "text\n\n--- a.go\nimport x\n@@ first: why\n keep\n-old\n+new\n\n--- b.go\n@@ b\n+x\n y\n"
	all, err := parseEdits(good)
	want := []edit{
		{file: "a.go", line: 4, why: "for the other edits", first: true, old: "import (\n", new: "import (\n\t\"x\"\n"},
		{file: "a.go", line: 5, why: "why", first: true, old: "keep\nold\n", new: "keep\nnew\n"},
		{file: "b.go", line: 11, why: "b", old: "y\n", new: "x\ny\n"},
	}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
	for bad, line := range map[string]string{"--- a.go\n+x\n": ":2:", "--- a.go\n@@ why\nx\n": ":3:"} {
		if _, err := parseEdits(bad); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// coirStdDirs of package runtime lists every directory of the standard library. With -trimpath only that list
// distinguishes its files from those of a module whose path has no dot.
func TestTheDirectoriesAreKnown(t *testing.T) {
	text, err := os.ReadFile("_goroot/runtime/coir_point.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "const coirStdDirs = ")
	known := strings.FieldsFunc(list, func(r rune) bool { return r < 'a' || r > 'z' })
	entries, err := os.ReadDir(filepath.Join(goEnv(t, "GOROOT"), "src"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() && name != "cmd" && name != "testdata" && !slices.Contains(known, name) {
			t.Errorf("coirStdDirs lacks %s", name)
		}
	}
}
