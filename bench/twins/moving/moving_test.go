package moving

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFetchAll(t *testing.T) {
	pages, err := fetchAll(t.Context(), []string{"a", "b", "c"})
	if err != nil || len(pages) != 3 || pages[2].text != "text of c" {
		t.Errorf("got %v, %v", pages, err)
	}
	if _, err := fetchAll(t.Context(), []string{"a", "missing", "c"}); !errors.Is(err, errNoPage) {
		t.Errorf("got %v", err)
	}
}

func TestProcess(t *testing.T) {
	out := make(chan page)
	ended := make(chan error)
	go func() { ended <- process(t.Context(), 2, []string{"a", "b", "c"}, out) }()
	var got []string
	for p := range out {
		got = append(got, p.url)
	}
	slices.Sort(got)
	if err := <-ended; err != nil || strings.Join(got, "") != "abc" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestProcessFails(t *testing.T) {
	source := slices.Repeat([]string{"missing"}, 100) // more than the workers and the buffer take
	if err := process(t.Context(), 2, source, make(chan page)); !errors.Is(err, errNoPage) {
		t.Errorf("got %v", err)
	}
}

func TestProcessIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- process(ctx, 2, slices.Repeat([]string{"a"}, 100), make(chan page)) }()
		synctest.Wait() // the workers wait for a receiver
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFirstOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, quit := make(chan string, 1), make(chan struct{})
		ask := func(ctx context.Context, want string, wantErr error) {
			t.Helper()
			if answer, err := firstOf(ctx, answers, quit); answer != want || !errors.Is(err, wantErr) {
				t.Errorf("got %q, %v; want %q, %v", answer, err, want, wantErr)
			}
		}
		before := time.Now()
		ask(t.Context(), "", errLate)
		if took := time.Since(before); took != time.Second {
			t.Errorf("late after %v", took)
		}
		answers <- "yes"
		ask(t.Context(), "yes", nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ask(ctx, "", context.Canceled)
		close(quit)
		ask(t.Context(), "", errQuit)
		quit = nil
		close(answers)
		ask(t.Context(), "", io.EOF)
	})
}

// A test in docs/guide checks the other direction: each block of the guide is tested code.
func TestTheGuideQuotesThisCode(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/moving.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("moving.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "moving.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	quotes := 0
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name == "get" {
			continue
		}
		quotes++
		text := code[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset]
		if !strings.Contains(string(guide), "```go\n"+string(text)+"\n```\n") {
			t.Errorf("the guide does not show %s as it is here", f.Name.Name)
		}
	}
	if quotes != 3 {
		t.Errorf("%d functions are quoted", quotes)
	}
}
