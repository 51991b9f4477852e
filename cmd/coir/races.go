package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// The race detector has numbers of its own for goroutines. It prints the stack of the go statement that started each,
// and it gives the numbers in the order in which goroutines start. So a goroutine is known if the line of its go
// statement started only one, or if the detector names all that it started.

var (
	raceBorn   = regexp.MustCompile(`(?m)^\s*Goroutine (\d+) \([a-z]+\) created at:\n\s+\S+\n\s+(\S.*\.go:\d+)`)
	raceNumber = regexp.MustCompile(`[Gg]oroutine (\d+)\b`)
	raceAccess = regexp.MustCompile(`(?i)(?:previous )?(read|write) at 0x[0-9a-f]+ by [^\n]*:\n((?:[ \t]+\S[^\n]*\n)+)`)
)

// raceNames returns the names of the goroutines that the race detector numbers in a text.
func (r *record) raceNames(text string) map[string]string {
	byLine := map[string][]int{} // the numbers of the goroutines that a line has started
	for _, m := range raceBorn.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		if !slices.Contains(byLine[m[2]], n) {
			byLine[m[2]] = append(byLine[m[2]], n)
		}
	}
	names, all := map[string]string{}, r.shortNames()
	for line, numbers := range byLine {
		var own []string
		for _, id := range r.ids() {
			if a := r.actors[id]; a.of == 0 && a.made.String() == line {
				own = append(own, all[id])
			}
		}
		slices.Sort(numbers)
		for i, n := range numbers {
			switch {
			case len(own) == len(numbers):
				names[strconv.Itoa(n)] = own[i]
			case len(own) > 0:
				names[strconv.Itoa(n)] = fmt.Sprintf("one of %d at %s", len(own), filepath.Base(line))
			}
		}
	}
	return names
}

// withRaceNames adds the names of goroutines to what the race detector has printed.
func (r *record) withRaceNames(text string) string {
	if r.failure == nil || r.failure.kind != coir.KindRace {
		return text
	}
	names := r.raceNames(text)
	return raceNumber.ReplaceAllStringFunc(text, func(found string) string {
		if name := names[found[strings.LastIndex(found, " ")+1:]]; name != "" {
			return found + " [" + name + "]"
		}
		return found
	})
}

// raced says in a few words which accesses race: read at a.go:7, write at a.go:9. It returns "" if that is not known.
func (r *record) raced() string {
	var texts []string
	for _, m := range raceAccess.FindAllStringSubmatch(r.shown, 2) {
		for _, at := range printedPlaces(m[2]) {
			if r.mine(at) {
				texts = append(texts, strings.ToLower(m[1])+" at "+at.base())
				break
			}
		}
	}
	if len(texts) < 2 {
		return ""
	}
	return strings.Join(texts, ", ")
}
