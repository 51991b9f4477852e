// Command growth prints how costs grow with the number of fibers, channels, waiters, cases of a selector, timers,
// tickets, connections, and workers.
//
// If nothing is searched or traversed, an operation costs the same at every size, except for memory: a million things
// do not fit into a cache. Two methods tell these effects apart. Some series use the same one of n things every time,
// so that memory has no influence; their cold counterparts use each thing in turn, in random order. And if Go has the
// same thing, the same program also runs with that of Go, as a series with -go in its name.
//
//	go run ./growth
//	go run ./growth -list
//	go run ./growth -only selector-event,waiter-pass -rounds 50
//	go run ./growth -largest 10000
//	go run ./growth -only idle-fibers -round 10s -rounds 1
//	go run ./growth -only workers-timers -mutex mutex.out && go tool pprof -top -sample_index=contentions mutex.out
//
// All sizes of a series exist at the same time and are measured in turns in short rounds, so that a slow phase of the
// machine affects all of them. For each size one line is printed:
//
//	NAME n=… cost=…ns growth=… spread=…..…
//
// It shows the median cost of an operation, the median over the rounds of its ratio to the smallest size in the same
// round, and the quartiles of that ratio. Everything runs on one processor, because only the work is measured, not its
// distribution.
//
// The series about workers have n workers and as many processors of Go. Their cost is processor time, because wall time
// means nothing if there are more threads than cores. On a machine with fewer cores a thread can lose its core while it
// holds a lock, so the growth is larger than on a large machine, and cache misses between cores are not visible. The
// result still shows which lock limits the growth first.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
)

var (
	list    = flag.Bool("list", false, "name the series and end")
	only    = flag.String("only", "", "run only these, separated by commas")
	largest = flag.Int("largest", 1_000_000, "leave larger sizes out")
	rounds  = flag.Int("rounds", 15, "rounds of each size that count")
	round   = flag.Duration("round", 20*time.Millisecond, "length of a round of one size")
	asJSON  = flag.Bool("json", false, "print one JSON object a size, for the command report")
	cpu     = flag.Bool("cpu", false, "time by the processor time of the process, not by the wall: for a machine that others keep busy")
	mutex   = flag.String("mutex", "", "write the profile of contended locks here")
	dial    = flag.String("dial", "", "for the command's own use: connect there, as often as -largest says")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		timing.Fail("only flags are expected, and a round at least; series are chosen by -only NAME,NAME")
	}
	if *dial != "" {
		connect(*dial, *largest)
		return
	}
	if *mutex != "" {
		runtime.SetMutexProfileFraction(1)
	}
	for _, s := range timing.Choose(*only, all, func(s *series) string { return s.name }) {
		if *list {
			fmt.Printf("%-20s %s\n", s.name, s.what)
			continue
		}
		for _, r := range s.run(*rounds, *round, *largest) {
			if *asJSON {
				must(json.NewEncoder(os.Stdout).Encode(r))
			} else {
				fmt.Println(r)
			}
		}
	}
	if *mutex != "" {
		f, err := os.Create(*mutex)
		must(err)
		must(pprof.Lookup("mutex").WriteTo(f, 0))
		must(f.Close())
	}
}

// A series is one operation at several sizes.
type series struct {
	name  string
	sizes []int
	setUp func(n int) subject
	unit  string
	what  string // the operation; n is the size
}

// A subject is what is measured at one size. It has either a loop, which performs the operation a number of times, or a
// cost that it measures itself.
type subject struct {
	workers int // processors of Go, if there are several; then processor time is measured
	loop    func(times int)
	cost    func(round time.Duration) float64
	close   func()
}

// A row is the result for one size.
type row struct {
	Series string  `json:"series"`
	What   string  `json:"what"`
	Unit   string  `json:"unit"`
	N      int     `json:"n"`
	Cost   float64 `json:"cost"`   // median
	Growth float64 `json:"growth"` // median of the ratio to the smallest size
	Lo     float64 `json:"lo"`     // first quartile of that ratio
	Hi     float64 `json:"hi"`     // third quartile of that ratio
	Rounds int     `json:"rounds"`
	CPU    bool    `json:"cpu,omitempty"` // the cost is processor time
}

func (r row) String() string {
	return fmt.Sprintf("%s n=%d cost=%.1f%s growth=%.2f spread=%.2f..%.2f", r.Series, r.N, r.Cost, r.Unit, r.Growth, r.Lo, r.Hi)
}

// run measures the sizes up to largest in turns.
func (s series) run(rounds int, target time.Duration, largest int) []row {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var subjects []subject
	var times []int
	var rows []row
	for _, n := range s.sizes {
		if n <= largest {
			sub := s.setUp(n)
			if sub.close != nil {
				defer sub.close()
			}
			subjects = append(subjects, sub)
			rows = append(rows, row{Series: s.name, What: s.what, Unit: s.unit, N: n, Rounds: rounds, CPU: sub.byCPU()})
		}
	}
	for _, sub := range subjects {
		if sub.loop == nil {
			times = append(times, 1)
			continue
		}
		sub.loop(1) // everything that was set up begins to wait
		times = append(times, timing.Turns(sub.byCPU(), target, sub.loop))
	}
	// Garbage is collected now. The operations make little garbage, so the collector, for which a million fibers are a
	// lot of work, does not run during the rounds.
	runtime.GC()
	costs := make([][]float64, len(subjects))
	ratios := make([][]float64, len(subjects))
	for range rounds {
		for i, sub := range subjects {
			cost := sub.measure(times[i], target)
			costs[i] = append(costs[i], cost)
			ratios[i] = append(ratios[i], cost/costs[0][len(costs[0])-1])
		}
	}
	for i := range rows {
		rows[i].Cost = timing.Quantile(costs[i], 0.5)
		rows[i].Growth = timing.Quantile(ratios[i], 0.5)
		rows[i].Lo = timing.Quantile(ratios[i], 0.25)
		rows[i].Hi = timing.Quantile(ratios[i], 0.75)
	}
	return rows
}

func (s subject) byCPU() bool { return s.workers > 1 || *cpu }

// measure returns the cost of one operation. It first performs the same number of operations without counting them,
// because the other sizes have used the caches in between.
func (s subject) measure(times int, round time.Duration) float64 {
	runtime.GOMAXPROCS(max(1, s.workers))
	if s.cost != nil {
		return s.cost(round)
	}
	s.loop(times)
	took := timing.Of(s.byCPU(), func() { s.loop(times) }).Time
	return float64(took.Nanoseconds()) / float64(times)
}

func must(err error) {
	if err != nil {
		panic("the measured program failed: " + err.Error())
	}
}
