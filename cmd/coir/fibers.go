package main

import "strings"

// The fibers of module coir, and the workers that run them, are goroutines of the schedule like any others. A report is
// about the program, which uses coir as a library: it leaves out steps and waits of coir that do not involve the
// program. In the tests of coir itself it leaves out nothing.

const coirPath = "github.com/coir-go/coir"

// coirs reports whether a function is in coir's packages.
func coirs(function string) bool {
	return strings.HasPrefix(function, coirPath+".") || strings.HasPrefix(function, coirPath+"/internal/") ||
		strings.HasPrefix(function, coirPath+"/explore.")
}

// ofCoir reports whether a place is in module coir, and the test is not one of coir's.
func (r *result) ofCoir(at place) bool {
	return coirs(at.function) && !coirs(r.path+".") && !strings.HasSuffix(at.file, "_test.go")
}

// coirsOwn reports whether a step at a place, through a function, involves only coir.
func coirsOwn(at place, via string) bool { return at.file == "" && coirs(via) }

// method returns the name of a function of coir as users know it: coir.Select, Chan.Send.
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
