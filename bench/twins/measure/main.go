// Command measure runs the programs of examples/ and their twins in bench/twins under load, and prints a table.
//
//	go run ./twins/measure
//	go run ./twins/measure -only fanout -turn 1s -turns 20
//
// Both sides of a program are up at the same time and are loaded in turns; the order within a round alternates. The
// numbers of served requests are compared within each round, and the table shows the median of the ratios. It also
// shows the quantiles of all latencies of a side, and the processor time of the whole process, including load and
// backends, for each request.
//
// Then each side is stopped by SIGTERM while it is under load. The table shows what is left behind: requests that the
// program had accepted and did not finish, and goroutines.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
	"github.com/coir-go/coir/bench/twins"
)

var (
	only  = flag.String("only", "", "measure only these programs, separated by commas")
	turn  = flag.Duration("turn", 500*time.Millisecond, "length of a turn of one side")
	turns = flag.Int("turns", 10, "turns of each side")
)

func main() {
	flag.Parse()
	fmt.Println("| program | lines | served in the same time | p50 | p99 | worst | CPU each " +
		"| unfinished, goroutines left after SIGTERM |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, p := range programs {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), p.name) {
			continue
		}
		for _, side := range p.sides {
			row, err := measure(p, side)
			if err != nil {
				fmt.Fprintf(os.Stderr, "measure: %s: %v\n", p.name, err)
				os.Exit(1)
			}
			fmt.Println(row)
		}
	}
}

// figures are the results of one side in all its turns.
type figures struct {
	served    []float64 // in each turn
	cpu       time.Duration
	latencies []time.Duration
	left      leftover
}

// measure compares a side of a program with the twin, and returns a row of the table.
func measure(p program, side twins.Side) (string, error) {
	sides := []twins.Side{side, twins.Errgroup}
	of := make([]figures, len(sides))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var up []running
	for _, s := range sides {
		r, err := p.start(ctx, s)
		if err != nil {
			return "", err
		}
		up = append(up, r)
	}
	for round := range *turns + 1 {
		for k := range up {
			i := (round + k) % len(up)
			before := timing.Now(true)
			s := up[i].load(*turn)
			if round == 0 {
				continue // to warm up
			}
			of[i].cpu += timing.Now(true) - before
			of[i].served = append(of[i].served, float64(len(s.latencies)))
			of[i].latencies = append(of[i].latencies, s.latencies...)
		}
	}
	stop()
	for _, r := range up {
		if err := r.wait(); err != nil {
			return "", err
		}
	}
	for i, s := range sides {
		left, err := kill(p, s)
		if err != nil {
			return "", err
		}
		of[i].left = left
	}
	return row(p, side, &of[0], &of[1])
}

// leftover is the work that a program leaves unfinished when it is stopped under load.
type leftover struct{ unfinished, goroutines int }

// kill stops a side of a program by SIGTERM, while it is under load.
func kill(p program, side twins.Side) (left leftover, err error) {
	before := runtime.NumGoroutine()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	r, err := p.start(ctx, side)
	if err != nil {
		return left, err
	}
	loaded := make(chan sample, 1)
	go func() { loaded <- r.load(time.Minute) }()
	time.Sleep(*turn)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return left, err
	}
	left.unfinished = (<-loaded).unfinished
	err = r.wait()
	stop()
	for range 100 { // goroutines that end within a second do not count as left
		left.goroutines = max(0, runtime.NumGoroutine()-before)
		if left.goroutines == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left, err
}

// row returns the comparison of two sides as a row of the table.
func row(p program, side twins.Side, a, b *figures) (string, error) {
	name, lines := p.name, "same"
	if side.Dir == "" {
		name += ", " + side.Name
	} else {
		own, err := twins.Lines(filepath.Join(side.Dir, p.name))
		if err != nil {
			return "", err
		}
		twin, err := twins.Lines(filepath.Join(twins.Errgroup.Dir, p.name))
		if err != nil {
			return "", err
		}
		lines = fmt.Sprintf("%d / %d", own, twin)
	}
	var ratios []float64
	for i := range a.served {
		ratios = append(ratios, a.served[i]/b.served[i])
	}
	total := len(a.latencies) + len(b.latencies)
	if total == 0 || len(b.latencies) == 0 || len(a.latencies) == 0 {
		return "", fmt.Errorf("a side has served nothing")
	}
	quantile := func(q float64) string {
		x, y := at(a.latencies, q), at(b.latencies, q)
		return fmt.Sprintf("%.2f (%.3g / %.3g ms)", float64(x)/float64(y), ms(x), ms(y))
	}
	each := func(f *figures) float64 { return float64(f.cpu) / float64(len(f.latencies)) }
	return fmt.Sprintf("| %s | %s | %.2f (%d / %d %s) | %s | %s | %s | %.2f | %d, %d / %d, %d |",
		name, lines, timing.Quantile(ratios, 0.5), len(a.latencies), len(b.latencies), p.unit,
		quantile(0.5), quantile(0.99), quantile(1), each(a)/each(b),
		a.left.unfinished, a.left.goroutines, b.left.unfinished, b.left.goroutines), nil
}

// at returns a quantile of the latencies.
func at(latencies []time.Duration, q float64) time.Duration {
	slices.Sort(latencies)
	return latencies[int(q*float64(len(latencies)-1))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
