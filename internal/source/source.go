// Package source tells the lines of a program from those of coir and of the standard library, so that a report and a
// snapshot show the line of the program where a fiber is.
//
// The name of a function is not enough. A generic method of coir is compiled in the program's package, and an iterator
// is inlined into the loop that ranges over it. Its frame then has a name in the program, and a file of coir:
//
//	example.com/shop.serve.(*Chan[...]).All.func1(...)
//		/go/pkg/mod/github.com/coir-go/coir@v0.1.0/chan.go:603
//	example.com/shop.serve(...)
//		/projects/shop/serve.go:23
//
// The compiler keeps such a frame for everything but a method value of a generic type: a call of that has the line of
// the method value, in the function that it was inlined into, and the line of the loop is lost. So no iterator of coir
// calls one.
package source

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
)

const module = "github.com/coir-go/coir"

// packages are those of coir, without the root: the first elements of their directories. The others, such as examples,
// are programs.
var packages = [...]string{
	"buf", "desk", "explore", "inspect", "internal", "locks", "metrics", "netio", "pace", "pubsub", "remote", "sim",
	"snapshot", "stream", "supervise",
}

// sources is the directory of coir's sources, with a slash; empty if the binary does not record it.
var sources = func() string {
	_, file, _, _ := runtime.Caller(0)
	dir, _, ok := strings.Cut(file, "internal/source/source.go")
	if !ok {
		return ""
	}
	return dir
}()

// Own reports whether a function is coir's, and not of a test or an example. The name may have arguments after it.
//
//go:norace
func Own(function, file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	if rest, ok := strings.CutPrefix(function, module); ok {
		if dir, _, _ := strings.Cut(rest, "."); own(dir) {
			return true
		}
	}
	_, ok := Dir(file)
	return ok
}

// Dir returns the directory in the repository of a file of one of coir's packages: /internal/sched, or "" for the root.
// The file is below the directory that this package is from, or is named as the go command names the files of modules:
// github.com/coir-go/coir/remote@v0.1.0/chan.go.
//
//go:norace
func Dir(file string) (dir string, ok bool) {
	if sources != "" && strings.HasPrefix(file, sources) {
		dir = dirOf("/" + file[len(sources):])
		return dir, own(dir)
	}
	i := strings.Index(file, module)
	if i < 0 || i > 0 && file[i-1] != '/' {
		return "", false
	}
	dir = dirOf(file[i+len(module):])
	if before, version, ok := strings.Cut(dir, "@"); ok {
		dir = before
		if i := strings.IndexByte(version, '/'); i >= 0 {
			dir += version[i:]
		}
	}
	return dir, own(dir)
}

// dirOf returns a path without its last element.
//
//go:norace
func dirOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// own reports whether a directory of the repository, /internal/sched or "" for the root, has a package of coir.
//
//go:norace
func own(dir string) bool {
	if dir == "" {
		return true
	}
	if dir[0] != '/' || strings.Contains(dir+"/", "/examples/") {
		return false
	}
	first, _, _ := strings.Cut(dir[1:], "/")
	return slices.Contains(packages[:], first)
}

// goSources is the directory of the standard library's sources, with a slash; empty if the binary does not record it.
var goSources = func() string {
	file, _ := runtime.FuncForPC(reflect.ValueOf(runtime.GC).Pointer()).FileLine(0)
	dir, _, _ := strings.Cut(file, "runtime/")
	return dir
}()

// Standard reports whether a function is of the standard library.
//
//go:norace
func Standard(function, file string) bool {
	if goSources != "" {
		return strings.HasPrefix(file, goSources)
	}
	for _, prefix := range [...]string{
		"runtime.", "runtime/", "iter.", "sync.", "internal/", "context.", "time.", "io.", "net", "os.",
	} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// Spawned returns the line that started the goroutine of a stack, as the Go runtime prints it, as file:line. It returns
// "" if there is none, or if it is coir's or the standard library's.
func Spawned(stack string) string {
	_, after, ok := strings.Cut(stack, "\ncreated by ")
	function, after, found := strings.Cut(after, "\n\t")
	if !ok || !found {
		return ""
	}
	at, _, _ := strings.Cut(after, "\n")
	at, _, _ = strings.Cut(at, " ")
	file := at[:max(0, strings.LastIndexByte(at, ':'))]
	if Own(function, file) || Standard(function, file) {
		return ""
	}
	return at
}

// Line returns the innermost line of a stack, as the Go runtime prints it, that is neither coir's nor the standard
// library's, as file:line. It returns "" if there is none.
func Line(stack string) string {
	function := ""
	for line := range strings.Lines(stack) {
		text := strings.TrimSpace(line)
		if line[0] != '\t' {
			function = text
			continue
		}
		if strings.HasPrefix(function, "created by ") {
			break
		}
		at, _, _ := strings.Cut(text, " ") // file:line +0x1d
		file := at[:max(0, strings.LastIndexByte(at, ':'))]
		if !Own(function, file) && !Standard(function, file) {
			return at
		}
	}
	return ""
}
