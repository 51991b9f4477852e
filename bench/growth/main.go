// Command growth prints how the costs of channels grow with their number, with
// the number of those who wait, and with the number of cases of a selector.
//
// Where nothing is searched and nothing is gone through, an operation costs the
// same at every size, but for memory: a million things do not fit into a cache.
// The two are told apart in two ways. Some series use the same one of n things
// every time, so that memory plays no part; their cold counterparts use each
// in turn, in random order. And where Go has the same thing, the same program
// runs on Go's own, with -go in its name.
//
//	go run ./growth
//	go run ./growth -list
//	go run ./growth -only selector-event,waiter-pass -rounds 50
//	go run ./growth -largest 10000
//
// All sizes of a series are there at once and take turns in short rounds, so that
// whatever slows the machine down slows all of them. For each size one line
// comes out:
//
//	NAME n=… cost=…ns growth=… spread=…..…
//
// with the median cost of an operation, the median over the rounds of its ratio to
// the smallest size in the same round, and the quartiles of that ratio. Everything
// runs on one processor: it is work that is measured, not how it is spread.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
)

var (
	list    = flag.Bool("list", false, "name the series and end")
	only    = flag.String("only", "", "run only these, separated by commas")
	largest = flag.Int("largest", 1_000_000, "leave larger sizes out")
	rounds  = flag.Int("rounds", 15, "rounds of each size that count")
	round   = flag.Duration("round", 20*time.Millisecond, "length of a round of one size")
	cpu     = flag.Bool("cpu", false, "time by the processor time of the process, not by the wall: for a machine that others keep busy")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		fail("only flags are expected, and a round at least; series are chosen by -only NAME,NAME")
	}
	chosen := all
	if *only != "" {
		chosen = nil
		for name := range strings.SplitSeq(*only, ",") {
			i := slices.IndexFunc(all, func(s series) bool { return s.name == name })
			if i < 0 {
				fail("there is no series called %q; -list names them", name)
			}
			chosen = append(chosen, all[i])
		}
	}
	runtime.GOMAXPROCS(1)
	for _, s := range chosen {
		if *list {
			fmt.Printf("%-20s %s\n", s.name, s.what)
			continue
		}
		for _, r := range s.run(*rounds, *round, *largest) {
			fmt.Println(r)
		}
	}
}

// A series is one operation at several sizes.
type series struct {
	name  string
	what  string // the operation; n is the size
	unit  string
	sizes []int
	setUp func(n int) subject
}

// A subject is what is measured at one size. It has either a loop, which does the
// operation that many times, or a cost that it finds by itself.
type subject struct {
	loop  func(times int)
	cost  func() float64
	close func()
}

// A row is what came out for one size.
type row struct {
	name, unit     string
	n              int
	cost           float64 // median
	growth, lo, hi float64 // median and quartiles of the ratio to the smallest size
}

func (r row) String() string {
	return fmt.Sprintf("%s n=%d cost=%.1f%s growth=%.2f spread=%.2f..%.2f", r.name, r.n, r.cost, r.unit, r.growth, r.lo, r.hi)
}

// run measures the sizes up to largest, by turns.
func (s series) run(rounds int, target time.Duration, largest int) []row {
	var subjects []subject
	var times []int
	var rows []row
	for _, n := range s.sizes {
		if n <= largest {
			subjects = append(subjects, s.setUp(n))
			rows = append(rows, row{name: s.name, unit: s.unit, n: n})
		}
	}
	for _, sub := range subjects {
		if sub.close != nil {
			defer sub.close()
		}
		times = append(times, sub.calibrate(target))
	}
	// What was made is collected now. The operations make little, so that the collector, to whom a million fibers are a
	// lot of work, is not needed during the rounds.
	runtime.GC()
	costs := make([][]float64, len(subjects))
	ratios := make([][]float64, len(subjects))
	for range rounds {
		for i, sub := range subjects {
			cost := sub.measure(times[i])
			costs[i] = append(costs[i], cost)
			ratios[i] = append(ratios[i], cost/costs[0][len(costs[0])-1])
		}
	}
	for i := range rows {
		rows[i].cost = timing.Quantile(costs[i], 0.5)
		rows[i].growth = timing.Quantile(ratios[i], 0.5)
		rows[i].lo = timing.Quantile(ratios[i], 0.25)
		rows[i].hi = timing.Quantile(ratios[i], 0.75)
	}
	return rows
}

// calibrate finds how many operations take about target.
func (s subject) calibrate(target time.Duration) int {
	if s.loop == nil {
		return 1
	}
	s.loop(1) // what has been set up gets to where it waits
	for n := 1; ; n *= 2 {
		if d := s.time(n); d >= target/4 {
			return max(1, int(float64(n)*float64(target)/float64(d)))
		}
	}
}

// measure returns the cost of one operation. It does as many before, which are not
// counted: the other sizes have had the caches since.
func (s subject) measure(times int) float64 {
	if s.loop == nil {
		return s.cost()
	}
	s.loop(times)
	return float64(s.time(times).Nanoseconds()) / float64(times)
}

func (s subject) time(times int) time.Duration {
	began := timing.Now(*cpu)
	s.loop(times)
	return timing.Now(*cpu) - began
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "growth: "+format+"\n", args...)
	os.Exit(2)
}
