package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tested is a test of a package of the user's module. Its methods tell apart what belongs to that module, to the
// standard library, and to coir.
type tested struct {
	test   string
	path   string // the path of the package
	goroot string
	built  time.Time // when the test was built

	modulePath, moduleDir string // the path and the directory of the user's module; empty: unknown
}

// place is a line of the program.
type place struct {
	file     string
	line     int
	function string
}

// String returns the file and the line, or "" if they are not known.
func (p place) String() string {
	if p.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// base returns the file without its directory, and the line.
func (p place) base() string { return fmt.Sprintf("%s:%d", filepath.Base(p.file), p.line) }

// said replaces %s in a text by the place: the file, relative to dir if it is in dir, and the line. If the place is not
// known, said returns "".
func (p place) said(text, dir string) string {
	if p.file == "" {
		return ""
	}
	return fmt.Sprintf(text, fmt.Sprintf("%s:%d", short(p.file, dir), p.line))
}

// own returns the innermost place of a stack that is not in the standard library, and the function of the library that
// was called there. If the whole stack is in the library, own returns the innermost place outside the packages that
// implement the operations, or none.
func (t *tested) own(stack []place) (at place, via string) {
	panics := false // the operation is in a deferred call, and the place is that of the panic
	ofCoir := ""
	for _, p := range stack {
		if coirs(p.function) && t.ofCoir(p) {
			ofCoir = p.function
		}
		if !t.standard(p) && !t.ofCoir(p) {
			if panics {
				via = whilePanicking
			}
			return p, via
		}
		panics = panics || p.function == "runtime.gopanic"
		if !inlined(p) { // otherwise via keeps the operation that the iterator does
			via = p.function
		}
	}
	if ofCoir != "" {
		return place{}, ofCoir
	}
	for _, p := range stack {
		if library(p.function) != "" {
			return p, via
		}
	}
	return place{}, via
}

// whilePanicking stands for the function of the library in an operation of a deferred function during a panic.
const whilePanicking = "panic."

// library returns the package of a function of the standard library, unless that package implements the operations.
func library(function string) string {
	name, _, _ := strings.Cut(function, ".")
	switch {
	case name == "sync", name == "runtime", name == "net", name == "syscall", strings.HasPrefix(name, "internal/"):
		return ""
	}
	return name
}

// standard reports whether a place is in the standard library. With -trimpath its files begin with the package's path.
func (t *tested) standard(p place) bool {
	if filepath.IsAbs(p.file) {
		in, err := filepath.Rel(filepath.Join(t.goroot, "src"), p.file)
		return t.goroot != "" && err == nil && filepath.IsLocal(in)
	}
	first, _, _ := strings.Cut(p.file, "/")
	mine, _, _ := strings.Cut(t.path, "/")
	return first != mine && !strings.ContainsAny(first, ".@")
}

// serviced reports whether a service library does an operation for itself.
func (t *tested) serviced(stack []place) bool {
	for _, p := range stack {
		switch library := t.service(p.function); {
		case library:
			return true
		case !t.standard(p):
			return false
		}
	}
	return false
}

// service reports whether a function belongs to a service library, and not to the user's module.
func (t *tested) service(function string) bool {
	for _, path := range []string{"net/http", "crypto/tls.", "golang.org/x/net/http2", "google.golang.org/grpc"} {
		if strings.HasPrefix(function, path) {
			return t.modulePath == "" || !strings.HasPrefix(function, t.modulePath)
		}
	}
	return false
}

// entries returns the paths of the entries of a directory whose names begin and end as given, in order. It returns none
// if the directory cannot be read. filepath.Glob would take a directory with a [ in its name for a pattern.
func entries(dir, prefix, suffix string) (paths []string) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}
