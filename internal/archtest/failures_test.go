package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// onlyValue matches a format that prints a value and nothing else.
var onlyValue = regexp.MustCompile(`^%[+#]?[a-z]$`)

// itself matches an argument that says by itself what went wrong: an error, a failure of a simulation, or a text of the
// caller.
var itself = regexp.MustCompile(`^(?:err|.*\.Failure|.*Err\(\)|fmt\.Sprint\(.*)$`)

// bareAllowed has a failure of a simulated program.
const bareAllowed = "sim/test_test.go"

// TestFailuresSayWhatWasDone checks that a failure of a test does not print a value alone: it says what was done, what
// came out and what was wanted.
func TestFailuresSayWhatWasDone(t *testing.T) {
	dir := root(t)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") || Newer(file) || file == bareAllowed {
			continue
		}
		checked++
		for _, at := range bareFailures(t, []byte(text(t, filepath.Join(dir, filepath.FromSlash(file))))) {
			t.Errorf("%s:%d prints only a value: write what was done, what came out, and what was wanted", file, at)
		}
	}
	if checked < 200 {
		t.Errorf("%d files were checked, want at least 200", checked)
	}
}

// bareFailures returns the lines of a test file that fail with a value alone.
func bareFailures(t *testing.T, code []byte) (lines []int) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", code, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		name := source(call.Fun)
		format, ok := call.Args[0].(*ast.BasicLit)
		if !ok || path.Ext(name) != ".Errorf" && path.Ext(name) != ".Fatalf" || itself.MatchString(source(call.Args[1])) {
			return true
		}
		if x, err := strconv.Unquote(format.Value); err == nil && onlyValue.MatchString(x) {
			lines = append(lines, set.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}

func TestBareFailuresAreFound(t *testing.T) {
	const text = `package p

func f() {
	t.Errorf("%v", x)
	t.Errorf("%v", err)
	t.Fatalf("%+v", c.Stats())
	t.Fatalf("Stats returned %+v, want none", s)
	s.Errorf("%v", r.Failure)
}
`
	if got, want := bareFailures(t, []byte(text)), []int{4, 6}; !slices.Equal(got, want) {
		t.Errorf("the lines %v print only a value, want %v", got, want)
	}
}
