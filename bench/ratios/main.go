// Command ratios compares the speed of coir with that of the usual Go program, and prints the ratio of the two.
//
// An absolute time has little value: it depends on the machine, the day, and the other programs that are running. The
// ratio of two things measured in the same process, in turns of a few milliseconds, is much more stable, because a slow
// phase of the machine affects both sides. So both sides of a comparison run in short alternating rounds, and the order
// within a round alternates too. Each round gives one ratio, and the result is their median. The quartiles are printed
// too: if a bound lies between them, this run does not decide it.
//
//	go run ./ratios -list
//	go run ./ratios
//	go run ./ratios -only yield,spawn-join -rounds 100
//	go run ./ratios -only yield -max 1.1
//	go run ./ratios -bounds
//	go run ./ratios -hot
//	go run ./ratios -only spawn-join -profile cpu.out
//
// It prints one line for each comparison:
//
//	NAME coir=…ns other=…ns ratio=… spread=…..… allocs=…
//
// The costs are the medians for one operation, spread is the first and the third quartile of the rounds' ratios, and
// allocs is the number of allocations of one operation on coir's side.
//
// The bounds apply to wall time. On a busy machine, a wait that ends late because the processor was taken counts
// against the side that waited. With -cpu both sides are measured in processor time of the process, which includes all
// of its threads, and the garbage collector, but no other process.
//
// Each comparison runs in a separate process, started from this binary, so that a heap of a million timers does not
// slow down the garbage collector during the next comparison, and so that a comparison that hangs is detected and does
// not affect the others.
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

// inChild runs c in a separate process and returns its result.
func inChild(c *comparison, rounds int) (result, error) {
	var r result
	err := callSelf(&r, "-child", c.name, "-rounds", fmt.Sprint(rounds), "-round", round.String(),
		"-cpu="+strconv.FormatBool(*cpu), "-timeout", timeout.String()) // a comparison may start processes, too
	return r, err
}

// callSelf runs this binary with args and decodes its output into v.
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

// profileCoir runs coir's side of c for about 3 s under the processor profile. The other side does not run, because in
// one profile the two could not be told apart where they share code of the runtime.
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
