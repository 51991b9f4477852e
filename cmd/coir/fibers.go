package main

import (
	"strings"

	"github.com/coir-go/coir/internal/source"
)

// The fibers of module coir, and the workers that run them, are goroutines of the schedule like any others. A report is
// about the program, which uses coir as a library: it leaves out steps and waits of coir that do not involve the
// program. In the tests of coir itself it leaves out nothing.

const coirPath = "github.com/coir-go/coir"

// coirs reports whether a function is in a package of coir that programs use, directly or through another package.
func coirs(function string) bool {
	in, ok := strings.CutPrefix(function, coirPath)
	if !ok || in == "" {
		return false
	}
	if in[0] == '.' {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(in, "/"), "/")
	first, _, _ = strings.Cut(first, ".")
	switch first {
	case "internal", "explore", "locks", "pubsub", "pace", "supervise", "desk", "stream", "netio", "buf", "remote":
		return true
	}
	return false
}

// ofCoir reports whether a place is in module coir, and the test is not.
func (t *tested) ofCoir(at place) bool {
	return (coirs(at.function) || inlined(at)) && !coirs(t.path+".") && !strings.HasSuffix(at.file, "_test.go")
}

// inlined reports whether a place is in an iterator of coir that was inlined into a function of the program: the file
// belongs to coir, but the function does not.
func inlined(at place) bool {
	_, ok := source.Dir(at.file)
	return ok && !coirs(at.function)
}

// coirsOwn reports whether a step at a place, through a function, involves only coir.
func coirsOwn(at place, via string) bool { return at.file == "" && coirs(via) }

// method returns the name of a function of coir as users know it: coir.Select, stream.Map, Chan.Send.
func method(function string) string {
	pkg, name, _ := strings.Cut(function[strings.LastIndex(function, "/")+1:], ".")
	name = strings.ReplaceAll(name, "[...]", "")
	if of, rest, ok := strings.Cut(strings.TrimPrefix(name, "(*"), ")"); ok {
		return of + rest
	}
	if strings.Contains(name, ".") {
		return name
	}
	return pkg + "." + name
}
