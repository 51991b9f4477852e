// Command determinism measures whether `coir test` does the same in every process. Run it in the directory of cmd/coir:
//
//	go run ./measure/determinism
//
// It explores each program of the corpus in one process, and again in others, with different numbers of processors and
// with a garbage collector that never runs, runs as usual, or runs all the time. The hash over all schedules must be
// the same. The hash covers each step (goroutine, operation, object, virtual time) and each decision. The command
// repeats this with and without the race detector and points at atomics, for two releases of Go. Then it collects
// failures over many seeds, and replays each in another process, where it must fail in the same way with the same
// trace.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	codes "github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
)

var (
	releases  = flag.String("releases", "local,go1.27.2", "values of GOTOOLCHAIN")
	schedules = flag.Int("schedules", 20, "schedules of a process")
	failures  = flag.Int("failures", 500, "failures to replay")
	modes     = flag.String("flags", ",-race,-atomics", "flags of coir test, separated by commas; each is one run")
	only      = flag.String("only", "", "use only the packages that match this `regexp`")
)

// packages lists the directories of the tests, in this module or another one.
var packages = []struct {
	dir, module string
	prefix      string // only tests with this prefix are compared
}{
	{dir: "corpus", prefix: "Test"},
	{dir: "corpus/atomics", prefix: "Test"},
	{dir: "testdata/maps", prefix: "Test"},
	{dir: "testdata/network", prefix: "Test"},
	{dir: "corpus/services/a", prefix: "TestFixed"}, // the failures of the other tests take long to shrink
	{dir: "corpus/services/b", prefix: "TestFixed"},
	{dir: "brokers", module: "../../verify", prefix: "Test"},
}

func main() {
	flag.Parse()
	if ok, err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	} else if !ok {
		os.Exit(1)
	}
}

func measure() (ok bool, err error) {
	coir, dir, remove, err := build.Temp()
	if err != nil {
		return false, err
	}
	defer remove()
	match, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	pairs, differ := 0, 0
	tokens := map[string]map[string]string{} // by release, the traces of the first process of each test
	for _, release := range strings.Split(*releases, ",") {
		tokens[release] = map[string]string{}
		for _, flags := range strings.Split(*modes, ",") {
			for i, p := range packages {
				if !match.MatchString(p.dir) {
					continue
				}
				b := &binary{dir: filepath.Join(p.module, p.dir), name: filepath.Join(dir, fmt.Sprint(release, flags, i))}
				args := []string{"test", "-C", "./" + p.module, "-c", "-o", b.name, "-tags=corpus"}
				if flags != "" {
					args = append(args, flags)
				}
				if err := build.Run([]string{"GOTOOLCHAIN=" + release}, coir, append(args, "./"+p.dir)...); err != nil {
					return false, err
				}
				b.atomics = flags == "-atomics"
				n, bad, first := b.pairs(p.prefix)
				fmt.Printf("%s %s %s: %d tests, %d pairs of processes, %d differ\n", release, strings.TrimPrefix(flags, "-"), p.dir,
					len(first), n, len(bad))
				for _, text := range bad {
					fmt.Println("  " + text)
				}
				for test, trace := range first {
					tokens[release][flags+" "+p.dir+" "+test] = trace
				}
				pairs += n
				differ += len(bad)
			}
		}
	}
	fmt.Printf("%d pairs of processes with the same seed, %d traces differ\n", pairs, differ)
	compareReleases(tokens)

	n, wrong := 0, 0
	for seed := 1; n < *failures && seed < 1000; seed += 1000 / 40 {
		for i, p := range packages {
			if !match.MatchString(p.dir) {
				continue
			}
			release, flags := strings.Split(*releases, ",")[0], strings.Split(*modes, ",")
			last := flags[len(flags)-1]
			b := &binary{dir: filepath.Join(p.module, p.dir), name: filepath.Join(dir, fmt.Sprint(release, last, i))}
			b.atomics = last == "-atomics"
			some, bad := b.replays(seed, *failures-n)
			n += some
			wrong += len(bad)
			for _, text := range bad {
				fmt.Println("  " + text)
			}
		}
	}
	fmt.Printf("%d failures, %d of them do not come again from their tokens as they were\n", n, wrong)
	return differ == 0 && wrong == 0 && n >= *failures, nil
}

// compareReleases prints how many tests do the same in all releases. Tests are allowed to differ between releases.
func compareReleases(tokens map[string]map[string]string) {
	all := strings.Split(*releases, ",")
	for _, other := range all[1:] {
		same := 0
		var not []string
		for test, trace := range tokens[all[0]] {
			if tokens[other][test] == trace {
				same++
				continue
			}
			not = append(not, test)
		}
		slices.Sort(not)
		fmt.Printf("%d of %d tests do the same under %s and %s; not: %v\n", same, same+len(not), all[0], other, not)
	}
}

// binary is a test binary that can explore.
type binary struct {
	name, dir string
	atomics   bool
}

// tests lists the tests whose names begin with prefix, except those that depend on the kernel's network.
func (b *binary) tests(prefix string) []string {
	c := exec.Command(b.name, "-test.list", "^"+prefix)
	c.Dir = b.dir
	out, _ := c.Output()
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return strings.HasSuffix(name, "OnKernel") || name == "TestProbe"
	})
}

// process runs a test in a new process, and returns two lines of its record: the summary, and the failure without the
// number of the schedule that failed.
func (b *binary) process(test, settings string, env ...string) (summary, failure string) {
	record := fmt.Sprint(b.name, test, strings.Join(env, ""))
	defer func() { _ = os.Remove(record) }()
	c := exec.Command(b.name, "-test.run", "^"+test+"$")
	c.Dir = b.dir
	c.Env = append(os.Environ(), "COIR_RECORD="+record, fmt.Sprintf("COIR_TEST=budget=1h,atomics=%v,%s", b.atomics, settings))
	c.Env = append(c.Env, env...)
	c.Env = append(c.Env, "GORACE=suppress_equal_stacks=0 suppress_equal_addresses=0")
	_ = c.Run() // the record has the result
	text, _ := os.ReadFile(record)
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch f[0] {
		case "summary", "again", "error":
			summary += strings.Join(f, " ")
		case "failure":
			failure = strings.Join(slices.Delete(f, 3, 4), " ")
		}
	}
	return summary, failure
}

// pairs runs each test in a first process and in others, and compares each of these with the first.
func (b *binary) pairs(prefix string) (n int, bad []string, first map[string]string) {
	first = map[string]string{}
	var mu sync.Mutex
	b.each(prefix, func(test string) {
		settings := "schedules=" + strconv.Itoa(*schedules)
		summary, failure := b.process(test, settings, "GOMAXPROCS=1", "GOGC=off")
		mu.Lock()
		first[test] = summary + failure
		mu.Unlock()
		for procs := range 4 {
			for _, collect := range []string{"off", "100", "50", "10", "1"} {
				if procs == 0 && collect == "off" {
					continue
				}
				env := []string{fmt.Sprint("GOMAXPROCS=", procs+1), "GOGC=" + collect}
				s, f := b.process(test, settings, env...)
				mu.Lock()
				if n++; s != summary || f != failure || s == "" {
					bad = append(bad, fmt.Sprintf("%s %v: %q %q, and was %q %q", test, env, s, f, summary, failure))
				}
				mu.Unlock()
			}
		}
	})
	return n, bad, first
}

// replays finds failures and replays each in another process.
func (b *binary) replays(seed, most int) (n int, bad []string) {
	var mu sync.Mutex
	b.each("TestBug", func(test string) {
		summary, failure := b.process(test, fmt.Sprint("schedules=2000,seed=", seed))
		if failure == "" && !strings.HasPrefix(summary, "again") {
			return // the bug needs the race detector, or more schedules
		}
		mu.Lock()
		enough := n >= most
		n++
		mu.Unlock()
		if enough {
			return
		}
		if token, ok := strings.CutPrefix(summary, "again "); ok { // the failure has changed the process
			token, _ = strconv.Unquote(strings.Fields(token)[0])
			_, failure = b.process(test, "replay="+token, "GOMAXPROCS=2", "GOGC=1")
		}
		f := strings.Split(failure, " ")
		var again string
		if i := slices.IndexFunc(f, isToken); i >= 0 && f[i+1] == "true" {
			_, again = b.process(test, "replay="+strings.Trim(f[i], `"`), "GOMAXPROCS=4", "GOGC=1")
		}
		if again != failure || again == "" {
			mu.Lock()
			bad = append(bad, fmt.Sprintf("%s, seed %d: %q, and was %q", test, seed, again, failure))
			mu.Unlock()
		}
	})
	return min(n, most), bad
}

// each calls f for the tests whose names begin with prefix, as many at a time as there are processors.
func (b *binary) each(prefix string, f func(test string)) {
	var wg sync.WaitGroup
	places := make(chan bool, runtime.NumCPU())
	for _, test := range b.tests(prefix) {
		places <- true
		wg.Go(func() {
			f(test)
			<-places
		})
	}
	wg.Wait()
}

// isToken reports whether a field is the token of a schedule that had no process of its own.
func isToken(field string) bool {
	text, err := strconv.Unquote(field)
	var h codes.TokenHead
	_, ok := h.CutPrefix(text)
	return err == nil && ok && !h.Alone
}
