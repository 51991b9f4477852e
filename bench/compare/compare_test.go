package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func figures(ratios ...float64) []figure {
	var fs []figure
	for _, r := range ratios {
		fs = append(fs, figure{Ratio: r, Bound: 0.55, Goal: 0.45})
	}
	return fs
}

// The change is computed from neighbouring processes. If the machine becomes slower during the run, the medians of both
// sides mean nothing, but the change is still correct.
func TestChangeIsOfNeighbours(t *testing.T) {
	r := pairs{name: "x", base: figures(0.8, 1.6, 0.4, 3.2, 0.2), work: figures(0.4, 0.8, 0.2, 1.6, 0.1)}.row()
	if r.change != (spread{-0.5, -0.5, -0.5}) {
		t.Errorf("each work is half of its base, and the change is %v", r.change)
	}
	if r.base != (spread{0.8, 0.4, 1.6}) || r.work.median != 0.4 {
		t.Errorf("base %v and work %v are not medians with quartiles", r.base, r.work)
	}
}

func TestLinesAndRows(t *testing.T) {
	old := pairs{name: "rendezvous", base: figures(0.8, 0.8, 0.8), work: figures(0.5, 0.4, 0.6)}
	missed := pairs{name: "rendezvous", base: figures(0.5), work: figures(0.75)}
	isNew := pairs{name: "wake-p99", work: []figure{{Ratio: 0.012, Allocs: 1}}}
	for _, c := range []struct {
		p              pairs
		line, markdown string
	}{
		{
			old,
			"rendezvous base=0.80 (0.80..0.80) work=0.50 (0.45..0.55) change=-38 % (-44..-31) allocs=0.00->0.00 at most 0.55, goal 0.45",
			"| rendezvous | 0.80 (0.80..0.80) | 0.50 (0.45..0.55) | -38 % (-44..-31) | 0.55 | 0.45 |",
		},
		{
			missed,
			"rendezvous base=0.50 (0.50..0.50) work=0.75 (0.75..0.75) change=+50 % (+50..+50) allocs=0.00->0.00 at most 0.55, goal 0.45, missed",
			"| **rendezvous** | 0.50 (0.50..0.50) | 0.75 (0.75..0.75) | +50 % (+50..+50) | 0.55 | 0.45 |",
		},
		{
			isNew,
			"wake-p99 base=new work=0.0120 (0.0120..0.0120) allocs=1.00",
			"| wake-p99 | new | 0.0120 (0.0120..0.0120) |  |  |  |",
		},
	} {
		if got := c.p.row().String(); got != c.line {
			t.Errorf("got  %s\nwant %s", got, c.line)
		}
		if got := c.p.row().markdown(); got != c.markdown {
			t.Errorf("got  %s\nwant %s", got, c.markdown)
		}
	}
	if a, b := strings.Count(heading, "|")/2, strings.Count(isNew.row().markdown(), "|"); a != b {
		t.Errorf("the heading has %d bars a line and a row %d", a, b)
	}
}

func TestListed(t *testing.T) {
	list := "yield-limit          a switch\n                     against one swap; at most 1.5\nunlimited-burst-chanqueue a value\n   against it\n"
	if got, want := listed([]byte(list)), []string{"yield-limit", "unlimited-burst-chanqueue"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// ratios returns a program that replaces the ratios command: it has the comparisons in names, each with the given
// ratio.
func ratios(ratio float64, names string) string {
	return fmt.Sprintf(`package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if os.Args[1] == "-list" {
		for name := range strings.SplitSeq(%q, ",") {
			fmt.Println(name, "something\n    against something else")
		}
		return
	}
	fmt.Println("{\"ratio\": %g, \"bound\": 0.5, \"goal\": 0.4}")
}
`, names, ratio)
}

// repository makes a repository whose first commit, called base, has that ratios command.
func repository(t *testing.T, base, work string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, "bench", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/bench\n\ngo 1.26\n")
	write("ratios/main.go", base)
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "base"}, {"tag", "base"},
	} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	write("ratios/main.go", work)
	return root
}

// A whole run builds both sides, measures each comparison, marks new comparisons as new, and leaves no work tree.
func TestRun(t *testing.T) {
	root := repository(t, ratios(0.8, "a,b"), ratios(0.4, "a,b,c"))
	var out bytes.Buffer
	if err := (options{base: "base", names: "a,c", tree: root, runs: 3}).run(t.Context(), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := "a base=0.80 (0.80..0.80) work=0.40 (0.40..0.40) change=-50 % (-50..-50) allocs=0.00->0.00 at most 0.5, goal 0.4\n" +
		"c base=new work=0.40 (0.40..0.40) allocs=0.00 at most 0.5, goal 0.4\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	onlyOne(t, root)
}

// The error for a commit that cannot be built contains the commit and the compiler's message.
func TestRunOfABrokenCommit(t *testing.T) {
	for _, c := range []struct{ base, work, says string }{
		{"package broken here", ratios(1, "a"), "the ratios command of base cannot be built"},
		{ratios(1, "a"), "package broken here", "the ratios command of the working tree cannot be built"},
	} {
		root := repository(t, c.base, c.work)
		err := options{base: "base", tree: root, runs: 1}.run(t.Context(), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "syntax error") {
			t.Errorf("got %v, want %q and a syntax error", err, c.says)
		}
		onlyOne(t, root)
	}
	root := repository(t, ratios(1, "a"), ratios(1, "a"))
	if err := (options{base: "nowhere", tree: root, runs: 1}).run(t.Context(), io.Discard, io.Discard); err == nil {
		t.Error("a commit that is not there was compared with")
	}
	if err := (options{base: "base", names: "b", tree: root, runs: 1}).run(t.Context(), io.Discard, io.Discard); err == nil {
		t.Error("a comparison that is not there was made")
	}
}

// onlyOne checks that the repository has only its own work tree.
func onlyOne(t *testing.T, root string) {
	t.Helper()
	out, err := output(t.Context(), root, "git", "worktree", "list", "--porcelain")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out, []byte("worktree ")); n != 1 {
		t.Errorf("the repository has %d work trees:\n%s", n, out)
	}
}
