package main

import (
	"slices"
	"strings"
)

// The fibers of module coir are goroutines of the schedule like any others, and so are the workers that run them. A
// report is about the program: a step or a wait in which the program has no part is coir's own, and is not told. In the
// tests of coir itself nothing is left out, because there the overlay names places in coir.

// ofCoir reports whether a place is in module coir, and not in one of its tests.
func ofCoir(at place) bool {
	const path = "github.com/coir-go/coir"
	return (strings.HasPrefix(at.function, path+".") || strings.HasPrefix(at.function, path+"/internal/")) &&
		!strings.HasSuffix(at.file, "_test.go")
}

// ofProgram is the steps that are the program's. If all are coir's, it is a test of coir.
func ofProgram(all []step) []step {
	steps := slices.DeleteFunc(slices.Clone(all), func(s step) bool { return ofCoir(s.place) })
	if len(steps) == 0 {
		return all
	}
	return steps
}

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
