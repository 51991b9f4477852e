// Command scale prints how the costs of operations grow with the number of workers,
// and which locks are contended.
//
// A program of fixed size runs on 2, 16 and 64 workers, with as many processors of
// Go. A machine with fewer cores is oversubscribed. Then a thread can lose its core
// while it holds a lock, so the growth is more than a large machine would show, and
// misses of its caches are not seen. What remains is the order: which lock is
// met first.
//
//	go run ./scale
//	go run ./scale -list
//	go run ./scale -only private,timers -rounds 20
//
// For each program and number of workers one line comes out:
//
//	NAME workers=… cost=…ns growth=… spread=…..…
//
// with the median of the processor time of an operation, the median over the rounds of
// its ratio to the smallest number of workers in the same round, and the quartiles of
// that ratio. It is processor time, of all threads and the collector's too, because
// the wall says nothing where there are more threads than cores. After that the locks
// that were waited for, from the mutex profile of a round more:
//
//	NAME workers=… lock=FUNCTION waits=… share=…%
//
// with the waits of 1,000 operations, and the part of all time waited. FUNCTION is what
// released the lock.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
)

var (
	list    = flag.Bool("list", false, "name the programs and end")
	only    = flag.String("only", "", "run only these, separated by commas")
	numbers = flag.String("workers", "2,16,64", "numbers of workers, the smallest first")
	rounds  = flag.Int("rounds", 10, "rounds of each number that count")
	round   = flag.Duration("round", 50*time.Millisecond, "processor time of a round")
)

func main() {
	flag.Parse()
	var sizes []int
	for s := range strings.SplitSeq(*numbers, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			fail("-workers must be numbers, separated by commas")
		}
		sizes = append(sizes, n)
	}
	if flag.NArg() > 0 || *rounds < 1 {
		fail("only flags are expected, and a round at least; programs are chosen by -only NAME,NAME")
	}
	chosen := programs
	if *only != "" {
		chosen = nil
		for name := range strings.SplitSeq(*only, ",") {
			i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
			if i < 0 {
				fail("there is no program called %q; -list names them", name)
			}
			chosen = append(chosen, programs[i])
		}
	}
	for _, p := range chosen {
		if *list {
			fmt.Printf("%-10s %s\n", p.name, p.what)
			continue
		}
		for _, r := range p.run(sizes, *rounds, *round) {
			fmt.Println(r)
			for _, l := range r.locks {
				fmt.Printf("%s workers=%d lock=%s waits=%.1f share=%.0f%%\n", r.name, r.workers, l.function, l.waits, 100*l.share)
			}
		}
	}
}

// A row is what came out for one number of workers.
type row struct {
	name           string
	workers        int
	cost           float64 // median
	growth, lo, hi float64 // median and quartiles of the ratio to the smallest number
	locks          []lock
}

func (r row) String() string {
	return fmt.Sprintf("%s workers=%d cost=%.0fns growth=%.2f spread=%.2f..%.2f",
		r.name, r.workers, r.cost, r.growth, r.lo, r.hi)
}

// run measures all sizes by turns.
func (p program) run(sizes []int, rounds int, target time.Duration) []row {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rows := make([]row, len(sizes))
	loops := make([]*loop, len(sizes))
	costs := make([][]float64, len(sizes))
	ratios := make([][]float64, len(sizes))
	for i, workers := range sizes {
		rows[i] = row{name: p.name, workers: workers}
		loops[i] = newLoop(p, workers, target)
		defer loops[i].close()
	}
	for range rounds {
		for i, l := range loops {
			cost := l.cost()
			costs[i] = append(costs[i], cost)
			ratios[i] = append(ratios[i], cost/costs[0][len(costs[0])-1])
		}
	}
	for i, l := range loops {
		rows[i].cost = timing.Quantile(costs[i], 0.5)
		rows[i].growth = timing.Quantile(ratios[i], 0.5)
		rows[i].lo = timing.Quantile(ratios[i], 0.25)
		rows[i].hi = timing.Quantile(ratios[i], 0.75)
		rows[i].locks = contended(l.n, func() { l.cost() })
	}
	return rows
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "scale: "+format+"\n", args...)
	os.Exit(2)
}
