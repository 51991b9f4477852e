// Command strategies measures how many schedules coir test needs until a bug shows, by strategy. Run it in the
// directory of cmd/coir:
//
//	go run ./measure/strategies                             prints the table
//	go run ./measure/strategies -before old/coir -update    writes it into docs/design/0011-schedules-of-plain-go.md, too
//
// Each program is explored with many seeds. A figure is the median of the numbers of the first schedules that fail. A
// search without a failure counts as one that needs all its schedules. The column "before" is the default strategy of
// another build of coir.
//
// The programs in testdata/shutdown go wrong only if a service is stopped at a bad moment. The last rows are the
// geometric means of the medians of all programs of a package.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
	"github.com/coir-go/coir/internal/archtest"
	"github.com/coir-go/coir/internal/document"
)

var (
	before    = flag.String("before", "", "another build of coir, as a `file`, for the column \"before\"")
	seeds     = flag.Int("seeds", 15, "the number of seeds")
	schedules = flag.Int("schedules", 1000, "the most schedules of a search")
	only      = flag.String("only", "^TestBug", "run only the programs that match this `regexp`")
	update    = flag.Bool("update", false, "write the table into "+page)
)

// The page with the table, which is between the comments.
const (
	page  = "docs/design/0011-schedules-of-plain-go.md"
	begin = "<!-- mix: go run ./measure/strategies -update, in cmd/coir -->\n"
	end   = "<!-- end of mix -->\n"
)

// packages are the packages of the programs. Only the programs of the first have rows of their own.
var packages = []string{"measure/strategies/testdata/shutdown", "corpus/later"}

// column is a way to explore the programs.
type column struct {
	name, tool, strategy string
	medians              map[string]float64 // by package and test
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := measure(); err != nil {
		log.Fatal("strategies: ", err)
	}
}

func measure() error {
	root, err := archtest.Root(".")
	if err != nil {
		return err
	}
	tool, _, remove, err := build.Temp()
	if err != nil {
		return err
	}
	defer remove()
	columns := []*column{{name: "default", tool: tool}, {name: "pct", tool: tool}, {name: "random", tool: tool}}
	if *before != "" {
		old, err := filepath.Abs(*before)
		if err != nil {
			return err
		}
		columns = slices.Insert(columns, 0, &column{name: "before", tool: old, strategy: "default"})
	}
	for _, c := range columns {
		if c.strategy == "" {
			c.strategy = c.name
		}
		if err := c.measure(filepath.Join(root, "cmd", "coir")); err != nil {
			return err
		}
	}
	text := table(columns)
	fmt.Print(text)
	if *update {
		_, err = document.Keep(filepath.Join(root, filepath.FromSlash(page)), begin, end, text, true)
	}
	return err
}

// measure explores all programs with all seeds.
func (c *column) measure(dir string) error {
	first := map[string][]float64{}
	for i := range *seeds {
		args := []string{"-tags=corpus", "-shrink=0", "-strategy=" + c.strategy, fmt.Sprint("-seed=", 1+1000*i),
			fmt.Sprint("-schedules=", *schedules), "-budget=10s", "-timeout=20m", "-run=" + *only}
		for _, p := range packages {
			args = append(args, "./"+p)
		}
		all, err := build.Explore(c.tool, dir, args...)
		if err != nil {
			return err
		}
		for _, e := range all {
			if n, ended := needed(e); ended {
				name := path.Join(e.Package, e.Test)
				first[name] = append(first[name], n)
			}
		}
		log.Printf("%s: %d of %d seeds", c.name, i+1, *seeds)
	}
	c.medians = map[string]float64{}
	for name, numbers := range first {
		slices.Sort(numbers)
		c.medians[name] = numbers[len(numbers)/2]
	}
	return nil
}

// needed returns how many schedules a test needed. It reports false if the event is not the end of a test.
func needed(e events.Event) (n float64, ended bool) {
	switch {
	case e.Test == "" || e.Action != "pass" && e.Action != "fail":
		return 0, false
	case e.Failure != nil:
		return float64(e.Failure.Schedule), true
	}
	return float64(*schedules), true
}

// table returns the medians as a Markdown table.
func table(columns []*column) string {
	var b strings.Builder
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, line := []string{"program"}, []string{"---"}
	for _, c := range columns {
		head, line = append(head, c.name), append(line, "--:")
	}
	row(head...)
	row(line...)
	var names []string
	for name := range columns[0].medians {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, p := range packages {
		of := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(path.Dir(name), p) })
		if i == 0 {
			for _, name := range of {
				cells := []string{strings.TrimPrefix(path.Base(name), "TestBug")}
				for _, c := range columns {
					cells = append(cells, fmt.Sprint(c.medians[name]))
				}
				row(cells...)
			}
		}
		cells := []string{fmt.Sprintf("%s: mean of %d", path.Base(p), len(of))}
		for _, c := range columns {
			sum := 0.0
			for _, name := range of {
				sum += math.Log(c.medians[name])
			}
			cells = append(cells, fmt.Sprintf("%.1f", math.Exp(sum/float64(len(of)))))
		}
		row(cells...)
	}
	return b.String()
}
