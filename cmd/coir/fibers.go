package main

import "strings"

// The fibers of module coir are goroutines of the schedule like any others, and so are the workers that run them. A
// report is about the program, to which coir is a library: a step or a wait in which the program has no part is coir's
// own, and is not told. In the tests of coir itself nothing is left out.

const coirPath = "github.com/coir-go/coir"

// coirs reports whether a function is of coir's packages.
func coirs(function string) bool {
	return strings.HasPrefix(function, coirPath+".") || strings.HasPrefix(function, coirPath+"/internal/")
}

// ofCoir reports whether a place is in module coir, and the test is not one of coir's.
func (r *result) ofCoir(at place) bool {
	return coirs(at.function) && !coirs(r.path+".") && !strings.HasSuffix(at.file, "_test.go")
}

// coirsOwn reports whether coir alone has a part in what a goroutine does at a place, by way of a function.
func coirsOwn(at place, via string) bool { return at.file == "" && coirs(via) }

// method is a function of coir as its users know it: coir.Select, Chan.Send.
func method(function string) string {
	_, name, _ := strings.Cut(function[strings.LastIndex(function, "/")+1:], ".")
	name = strings.ReplaceAll(name, "[...]", "")
	if of, rest, ok := strings.Cut(strings.TrimPrefix(name, "(*"), ")"); ok {
		return of + rest
	}
	if strings.Contains(name, ".") {
		return name
	}
	return "coir." + name
}
