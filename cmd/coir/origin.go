package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// This file finds out where goroutines come from. A report is for the author of a module. So it names a goroutine after
// the nearest line of that module, even if the go statement is in the standard library or in a dependency.

// origin says where a goroutine comes from.
type origin struct {
	at     place  // the go statement, or the line that led to it
	called string // the function that was called there; empty: the line has the go statement
	made   place  // the go statement, if that is elsewhere
}

// origin returns where a goroutine comes from: the nearest line of the user's module, or if there is none, of any
// module. It searches the stack of the go statement that started the goroutine, then that of its parent, and so on.
func (r *record) origin(a *actor) origin {
	for _, wanted := range []func(place) bool{r.mine, r.module} {
		if wanted(a.made) {
			return origin{at: a.made}
		}
		called := ""
		for b, n := a, 0; b != nil && n <= len(r.actors); b, n = r.actors[b.parent], n+1 {
			for _, p := range b.birth {
				if wanted(p) {
					return origin{p, called, a.made}
				}
				called = p.function
			}
		}
	}
	return origin{at: a.made}
}

// module reports whether a place is in a module, and not in the standard library.
func (t *tested) module(p place) bool { return p.file != "" && !t.standard(p) && !t.ofCoir(p) }

// mine reports whether a place is in the user's module: that of the tested package.
func (t *tested) mine(p place) bool {
	if !t.module(p) || t.modulePath == "" {
		return false
	}
	if !filepath.IsAbs(p.file) { // -trimpath; other modules have a version in their path
		return strings.HasPrefix(p.file, t.modulePath+"/") && !strings.Contains(p.file, "@")
	}
	in, err := filepath.Rel(t.moduleDir, p.file)
	return err == nil && filepath.IsLocal(in) && !strings.HasPrefix(filepath.ToSlash(in), "vendor/")
}

// starts reports whether the line has the go statement, or calls a method such as WaitGroup.Go, which starts the
// function that it is given. Then the line is enough as a name.
func (o origin) starts() bool { return o.called == "" || strings.HasSuffix(o.called, ").Go") }

// String returns the name of goroutines of this origin: hub.go:88, or client_test.go:31 (transport.go:1994).
func (o origin) String() string {
	if o.starts() || o.made.file == "" {
		return o.line()
	}
	return fmt.Sprintf("%s (%s:%d)", o.line(), filepath.Base(o.made.file), o.made.line)
}

func (o origin) line() string { return o.at.base() }

// started returns the origin in words: started at hub.go:88, or started by http.Get at client_test.go:31.
func (o origin) started() string {
	if o.starts() {
		return "started at " + o.line()
	}
	return "started by " + function(o.called) + " at " + o.line()
}

// function returns the name of a function as a program writes it, with the name of its package: http.Get,
// grpc.Server.Serve.
func function(name string) string {
	dir, last := "", name
	if i := strings.LastIndex(name, "/"); i >= 0 {
		dir, last = name[:i], name[i+1:]
	}
	if pkg, rest, ok := strings.Cut(last, "."); ok && dir != "" && majorVersion.MatchString(pkg) {
		last = dir[strings.LastIndex(dir, "/")+1:] + "." + rest
	}
	return strings.NewReplacer("(*", "", ")", "", "[...]", "").Replace(last)
}

// kindOfName returns the name of a goroutine that is not named after its origin, or "".
func (r *record) kindOfName(a *actor) string {
	switch {
	case a.fiber != "":
		return "fiber " + a.fiber
	case strings.HasPrefix(a.made.function, "testing/synctest."):
		return r.test + " in a bubble"
	case strings.HasPrefix(a.made.function, "testing.") && a.id <= 2:
		return r.test
	case strings.HasPrefix(a.made.function, "testing."):
		return "subtest"
	case a.madeBy == "time.goFunc":
		return "time.AfterFunc"
	}
	return ""
}

// left is a group of goroutines with the same origin that a test left behind.
type left struct {
	started string // in words, such as "started at hub.go:88"
	count   int
}

// leftActors returns the goroutines that a test left behind. Sleeping goroutines do not count,
// because they will continue.
func (r *record) leftActors() (all []*actor) {
	for _, id := range r.ids() {
		a := r.actors[id]
		if a.state == coir.Waiting && id != 1 && !coirsOwn(a.at, a.via) && a.wait != coir.WaitSleep {
			all = append(all, a)
		}
	}
	return all
}

// leftFrom returns the goroutines that a test left behind, grouped by origin, the largest group first.
func (r *record) leftFrom() (all []left) {
	for _, a := range r.leftActors() {
		started := "of " + r.kindOfName(a)
		if o := r.origin(a); started == "of " && o.at.file != "" {
			started = o.started()
		} else if started == "of " {
			started = "of unknown origin"
		}
		i := slices.IndexFunc(all, func(l left) bool { return l.started == started })
		if i < 0 {
			i, all = len(all), append(all, left{started: started})
		}
		all[i].count++
	}
	slices.SortStableFunc(all, func(a, b left) int { return cmp.Compare(b.count, a.count) })
	return all
}

// leftText describes the goroutines that a test left behind.
func leftText(all []left) string {
	const most = 3
	switch {
	case len(all) == 0:
		return kinds[coir.KindLeak]
	case len(all) == 1 && all[0].count == 1:
		return "a goroutine " + all[0].started + " is left behind"
	case len(all) == 1:
		return report.Count(all[0].count, "goroutine") + " " + all[0].started + " are left behind"
	}
	total, rest := 0, 0
	var texts []string
	for i, l := range all {
		if total += l.count; i < most {
			texts = append(texts, chart.Grouped(l.count)+" "+l.started)
		} else {
			rest += l.count
		}
	}
	if rest > 0 {
		texts = append(texts, chart.Grouped(rest)+" more")
	}
	return report.Count(total, "goroutine") + " are left behind (" + strings.Join(texts, ", ") + ")"
}

// goLines returns the go statements of the goroutines that a test left behind, sorted.
func (r *record) goLines() (lines []string) {
	for _, a := range r.leftActors() {
		line := a.made.String()
		if line == "" { // in package sync, or a timer
			line = r.origin(a).at.String()
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
