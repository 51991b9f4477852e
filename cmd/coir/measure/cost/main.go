// Command cost measures what `coir test` costs. Run it in the directory of cmd/coir:
//
//	go run ./measure/cost
//
// It builds its benchmarks with and without the overlay, and compares their times without exploring. Processes of both
// kinds alternate, so that both see the same load. Then it explores small tests for some seconds, and a test with
// 10,000 goroutines. With -build it measures the time of a first build, with an empty cache, and of a build after a
// change of the test.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
)

var (
	rounds = flag.Int("rounds", 9, "processes of each kind for each benchmark")
	counts = flag.Int("count", 200, "runs of a benchmark in a process")
	length = flag.Duration("time", 300*time.Microsecond, "time of a run")
	builds = flag.Bool("build", false, "time builds, and nothing else")
	bench  = flag.String("bench", "", "`pattern` of the benchmarks to compare; nothing else is measured then")
)

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func measure() error {
	coir, dir, remove, err := build.Temp()
	if err != nil {
		return err
	}
	defer remove()
	if *builds {
		return timeBuilds(coir, dir)
	}
	name := func(s string) string { return filepath.Join(dir, s) }
	if err := build.Run(nil, "go", "test", "-c", "-o", name("plain"), "./measure/cost"); err != nil {
		return err
	}
	for file, flag := range map[string]string{"overlay": "-atomics=false", "atomics": "-atomics"} {
		if err := build.Run(nil, coir, "test", "-c", "-o", name(file), flag, "./measure/cost"); err != nil {
			return err
		}
	}
	if err := compare(name("plain"), name("overlay")); err != nil || *bench != "" {
		return err
	}
	for _, e := range []struct{ binary, test, settings string }{
		{"overlay", "TestSmall", "schedules=100000"},
		{"overlay", "TestSmallAtomics", "schedules=100000"},
		{"atomics", "TestSmall", "schedules=100000,atomics=true"},
		{"atomics", "TestSmallAtomics", "schedules=100000,atomics=true"},
		{"overlay", "TestManyGoroutines", "schedules=20"},
	} {
		if err := explore(name(e.binary), e.test, e.settings, name("record")); err != nil {
			return err
		}
	}
	return nil
}

// compare runs the benchmarks of two binaries. A process runs a benchmark many times, for a fraction of a millisecond
// each, and the fastest run counts, because a machine with other work does not interrupt all of them.
func compare(plain, overlay string) error {
	list, err := exec.Command(plain, "-test.list", "^Benchmark.*("+*bench+")").Output()
	if err != nil {
		return err
	}
	fmt.Println("benchmark, plain ns, with the overlay ns (the fastest), their ratio; median and middle half of the pairs' ratios")
	for _, name := range strings.Fields(string(list)) {
		ns, err := once(plain, name, 100)
		if err != nil {
			return err
		}
		n := max(1, int(float64(*length)/ns))
		var a, b, ratios []float64
		for range *rounds {
			x, err := once(plain, name, n)
			if err != nil {
				return err
			}
			y, err := once(overlay, name, n)
			if err != nil {
				return err
			}
			a, b, ratios = append(a, x), append(b, y), append(ratios, y/x)
		}
		slices.Sort(a)
		slices.Sort(b)
		slices.Sort(ratios)
		m := len(ratios)
		fmt.Printf("%-18s %9.2f %9.2f  %.3f  %.3f  %.3f to %.3f\n", strings.TrimPrefix(name, "Benchmark"), a[0], b[0],
			b[0]/a[0], ratios[m/2], ratios[m/4], ratios[m-1-m/4])
	}
	return nil
}

var perOp = regexp.MustCompile(`([\d.]+) ns/op`)

// once runs a benchmark in a new process, and returns the shortest time of an operation, in nanoseconds.
func once(binary, name string, n int) (float64, error) {
	c := exec.Command(binary, "-test.run=^$", "-test.bench=^"+name+"$", fmt.Sprintf("-test.benchtime=%dx", n), "-test.cpu=1",
		fmt.Sprintf("-test.count=%d", *counts))
	out, err := c.CombinedOutput()
	least := 0.0
	for _, m := range perOp.FindAllSubmatch(out, -1) {
		if ns, err := strconv.ParseFloat(string(m[1]), 64); err == nil && (least == 0 || ns < least) {
			least = ns
		}
	}
	if err != nil || least == 0 {
		return 0, fmt.Errorf("%s %s: %v\n%s", binary, name, err, out)
	}
	return least, nil
}

// explore explores a test for some seconds, and prints the number of schedules.
func explore(binary, test, settings, record string) error {
	c := exec.Command(binary, "-test.run=^"+test+"$")
	c.Env = append(os.Environ(), "COIR_RECORD="+record, "COIR_TEST=budget=5s,"+settings)
	began := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v\n%s", test, err, out)
	}
	took := time.Since(began).Seconds()
	busy := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	text, err := os.ReadFile(record)
	if err != nil {
		return err
	}
	f := strings.Split(string(text), "\t")
	if len(f) < 3 {
		return fmt.Errorf("%s: the record is %q", test, text)
	}
	n, err := strconv.Atoi(f[2])
	fmt.Printf("%s with %s: %d schedules in %.1f s (%.1f s of a processor), %.0f a second (%.0f)\n", test, settings, n,
		took, busy, float64(n)/took, float64(n)/busy)
	_ = os.Remove(record)
	return err
}

// timeBuilds measures the time of a build with an empty cache, and of a second build after a change of the test.
func timeBuilds(coir, dir string) error {
	module := filepath.Join(dir, "module")
	if err := os.MkdirAll(module, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module module\n\ngo 1.26\n"), 0o666); err != nil {
		return err
	}
	text, err := os.ReadFile("measure/cost/cost_test.go")
	if err != nil {
		return err
	}
	for i, what := range []string{"the first build", "a build after a change"} {
		text = fmt.Appendf(text, "\nvar _ = %d\n", i)
		if err := os.WriteFile(filepath.Join(module, "x_test.go"), text, 0o666); err != nil {
			return err
		}
		began := time.Now()
		c := exec.Command(coir, "test", "-c", "-o", filepath.Join(dir, "x"), ".")
		c.Dir = module
		c.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"))
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v\n%s", err, out)
		}
		busy := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		fmt.Printf("%s takes %.1f s, and %.1f s of processors\n", what, time.Since(began).Seconds(), busy.Seconds())
	}
	return nil
}
