// Command ratios measures coir beside what a Go program uses today, and prints
// the ratio of the two.
//
// A nanosecond figure is worth little: it belongs to one machine, on one day,
// with its neighbours. A ratio of two things measured in the same process, in
// turns of a few milliseconds, holds much better, because whatever slows the
// machine down for a while slows both sides. So both sides of a comparison run
// interleaved in short rounds, the order within a round alternates, each round
// gives one ratio, and the median of those is the result. The quartiles are
// printed with it: a bound that lies between them is not decided by this run.
//
//	go run ./ratios -list
//	go run ./ratios
//	go run ./ratios -only yield,spawn-join -rounds 100
//	go run ./ratios -only yield -max 1.1
//	go run ./ratios -bounds
//	go run ./ratios -hot
//	go run ./ratios -only spawn-join -profile cpu.out
//
// For each comparison one line comes out:
//
//	NAME coir=…ns other=…ns ratio=… spread=…..… allocs=…
//
// where the costs are of one operation (medians), spread is from the first to
// the third quartile of the rounds' ratios, and allocs counts the allocations
// of one operation on coir's side.
//
// The bounds are meant for time on the wall. On a machine that is busy with other work, a wait that ends late because
// the processor was taken counts against the side that waited; -cpu times both sides by the processor time of the
// process instead, which counts every thread, including the collector's, and no other process.
//
// Each comparison runs in a process of its own, started from this binary, so
// that a heap of a million timers does not slow down the collector under the
// next one, and so that one that hangs is seen as such and does not take the
// others with it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
)

var (
	list    = flag.Bool("list", false, "name the comparisons and end")
	only    = flag.String("only", "", "run only these, separated by commas")
	limit   = flag.Float64("max", 0, "exit 1 if a ratio is above this")
	bounds  = flag.Bool("bounds", false, "exit 1 if a ratio is above its own bound")
	hot     = flag.Bool("hot", false, "measure the hot paths, shortly; exit 1 if one is slow in every try, or allocates")
	asJSON  = flag.Bool("json", false, "print one JSON object a comparison")
	rounds  = flag.Int("rounds", 0, "rounds that count; 0 leaves each comparison its own number")
	round   = flag.Duration("round", roundTime, "length of a round of one side")
	cpu     = flag.Bool("cpu", false, "time by the processor time of the process, not by the wall: for a machine that others keep busy")
	timeout = flag.Duration("timeout", 5*time.Minute, "time limit of one comparison")
	profile = flag.String("profile", "", "with -only of one name: profile coir's side alone for 3 s and write it here")
	child   = flag.String("child", "", "for the command's own use: the comparison, or the part of one, that this process runs")
)

func main() {
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		timing.Fail("no arguments are expected, only flags; comparisons are chosen by -only NAME,NAME")
	case strings.HasPrefix(*child, parkedChild):
		emit(parkedMain(strings.TrimPrefix(*child, parkedChild)))
		return
	case strings.HasPrefix(*child, collectedChild):
		emit(collectedMain(strings.TrimPrefix(*child, collectedChild)))
		return
	case strings.HasPrefix(*child, echoServer):
		echoServerMain(strings.TrimPrefix(*child, echoServer))
		return
	case strings.HasPrefix(*child, echoClient):
		echoClientMain(strings.TrimPrefix(*child, echoClient))
		return
	case strings.HasPrefix(*child, shmReceiver):
		shmReceiverMain(strings.TrimPrefix(*child, shmReceiver))
		return
	case *child != "":
		emit(compare(find(*child), *rounds, *round, os.Stderr))
		return
	}

	chosen := timing.Choose(*only, table, func(c *comparison) string { return c.name })
	if *list {
		for _, c := range chosen {
			fmt.Printf("%-20s %s\n%20s against %s; at most %s, goal %s\n",
				c.name, c.what, "", c.against, orNone(c.bound), orNone(c.goal))
		}
		return
	}
	if *profile != "" {
		if len(chosen) != 1 || *only == "" {
			timing.Fail("-profile needs -only with one name")
		}
		profileCoir(chosen[0], *profile)
		return
	}

	if *hot {
		if err := checkHot(chosen, inChild, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}

	ok := true
	for _, c := range chosen {
		r, err := inChild(c, *rounds)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.name, err)
			ok = false
			continue
		}
		if *asJSON {
			emit(r)
		} else {
			fmt.Println(r)
		}
		if *limit > 0 && r.Ratio > *limit {
			fmt.Fprintf(os.Stderr, "%s: ratio %.3f is above %g\n", c.name, r.Ratio, *limit)
			ok = false
		}
		if *bounds && c.bound > 0 && r.Ratio > c.bound {
			fmt.Fprintf(os.Stderr, "%s: ratio %.3f is above its bound of %g\n", c.name, r.Ratio, c.bound)
			ok = false
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// inChild runs c in a process of its own and returns what that printed.
func inChild(c *comparison, rounds int) (result, error) {
	var r result
	err := callSelf(&r, "-child", c.name, "-rounds", fmt.Sprint(rounds), "-round", round.String(),
		"-cpu="+strconv.FormatBool(*cpu), "-timeout", timeout.String()) // a comparison may start processes, too
	return r, err
}

// callSelf runs this binary with args and decodes what it prints into v.
func callSelf(v any, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout = &out
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("did not end within %v", *timeout)
		}
		return fmt.Errorf("the process that ran it failed: %w", err)
	}
	return json.Unmarshal(out.Bytes(), v)
}

// profileCoir runs coir's side of c for about 3 s under the processor profile.
// Both sides in one profile could not be told apart where they meet in the
// runtime, so the other side does not run.
func profileCoir(c *comparison, file string) {
	f, err := os.Create(file)
	if err == nil {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
		r := prepare(c, c.coir(), time.Second)
		defer r.close()
		err = pprof.StartCPUProfile(f)
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			s := r.round()
			fmt.Fprintf(os.Stderr, "%s: coir=%s%s allocs=%.2f\n", c.name, figure(s.Cost), c.unit, s.Allocs)
		}
		pprof.StopCPUProfile()
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		timing.Fail("profile: %v", err)
	}
}

func emit(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		timing.Fail("%v", err)
	}
}

func orNone(v float64) string {
	if v == 0 {
		return "none"
	}
	return fmt.Sprint(v)
}
