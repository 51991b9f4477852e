package programs_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/programs"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/sim"
)

var (
	flagN        = flag.Int("programs.n", 0, "the number of programs; 0: as the test says")
	flagSeed     = flag.Uint64("programs.seed", 0, "that program alone, many times; 0: all")
	flagOff      = flag.String("programs.off", "", "operations to leave out, by number, separated by commas")
	flagPatience = flag.Duration("programs.patience", 60*time.Second, "how long a program may take")
)

// sized returns how many programs to run.
func sized(short, ordinary, full int) int {
	n := ordinary
	switch {
	case *flagN > 0:
		return *flagN
	case soak.On():
		n = full
	case testing.Short():
		n = short
	}
	if race.Enabled {
		n = max(1, n/10)
	}
	return n
}

func program(t testing.TB, seed uint64, sim bool) *programs.Program {
	p := programs.Generate(seed, sim)
	if *flagOff != "" {
		p.Off = make(map[int]bool)
		for s := range strings.SplitSeq(*flagOff, ",") {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			p.Off[n] = true
		}
	}
	return p
}

// again says how to run a program again.
func again(t *testing.T, p *programs.Program) string {
	line := fmt.Sprintf("run it again: go test ./internal/programs -run '^%s$' -programs.seed=%d", t.Name(), p.Seed)
	var parts []string
	for n := range 1000 {
		if p.Off[n] {
			parts = append(parts, strconv.Itoa(n))
		}
	}
	if parts == nil {
		return line
	}
	return line + " -programs.off=" + strings.Join(parts, ",")
}

// machine has the runtimes that programs run on.
type machine struct {
	name string
	run  func(context.Context, func(context.Context, *coir.Nursery) error) error
}

// TestProgramsOnTheRealRuntime runs programs on the default runtime, one with a single worker and one with four.
func TestProgramsOnTheRealRuntime(t *testing.T) {
	before := runtime.NumGoroutine()
	one, four := coir.NewRuntime(coir.WithWorkers(1)), coir.NewRuntime(coir.WithWorkers(4))
	other := coir.NewRuntime(coir.WithWorkers(2))
	machines := []machine{
		{"the default runtime", coir.Run},
		{"a runtime with one worker", one.Run},
		{"a runtime with four workers", four.Run},
	}
	began := time.Now()
	if *flagSeed != 0 {
		p := program(t, *flagSeed, false)
		t.Logf("program %d:\n%s", p.Seed, p)
		for i := range sized(1000, 1000, 1000) {
			if f := once(p, machines[i%3], other); f != "" {
				t.Fatal(f)
			}
		}
		return
	}
	n := sized(300, 2000, 100_000)
	var next, failed atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for failed.Load() == 0 {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				p := program(t, uint64(i), false)
				m := machines[i%3]
				if f := once(p, m, other); f != "" && failed.Add(1) == 1 {
					report(t, p, f, m, other)
				}
			}
		}()
	}
	all.Wait()
	if t.Failed() {
		return
	}
	for _, rt := range []*coir.Runtime{one, four, other} {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	noGoroutinesAbove(t, before)
	t.Logf("%d programs, %v each", n, time.Since(began)/time.Duration(n))
}

// once runs a program on the real runtime. It returns what was wrong.
func once(p *programs.Program, m machine, other *coir.Runtime) string {
	var mu sync.Mutex
	var wrong []string
	began := time.Now()
	failf := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if len(wrong) < 5 {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ok := false
		defer func() {
			if v := recover(); v != nil {
				failf("panic: %v", v)
			} else if !ok {
				failf("the program has ended its goroutine")
			}
		}()
		now := func() time.Duration { return time.Since(began) }
		programs.Exec(context.Background(), p, programs.Env{Now: now, Failf: failf, Run: m.run, Other: other})
		ok = true
	}()
	limit := time.NewTimer(*flagPatience)
	defer limit.Stop()
	hung := false
	select {
	case <-done:
	case <-limit.C:
		hung = true
		failf("has not ended after %v\n%s", *flagPatience, stacks())
	}
	mu.Lock()
	defer mu.Unlock()
	if wrong == nil {
		return ""
	}
	text := fmt.Sprintf("on %s: %s", m.name, strings.Join(wrong, "\n"))
	if hung {
		text = "hangs " + text
	}
	return text
}

// report makes the program smaller, if it fails often enough, and reports it.
func report(t *testing.T, p *programs.Program, wrong string, m machine, other *coir.Runtime) {
	tries := 20
	if strings.HasPrefix(wrong, "hangs") {
		tries = 0
	}
	small, last := programs.Shrink(p, wrong, func(p *programs.Program) string {
		for range tries {
			if f := once(p, m, other); f != "" {
				return f
			}
		}
		return ""
	})
	t.Errorf("program %d failed %s\n\nmade smaller, it failed %s\n%s\n%s", p.Seed, wrong, last, small, again(t, small))
}

// TestProgramsUnderSim runs each program under some schedules, with both clocks.
func TestProgramsUnderSim(t *testing.T) {
	if race.Enabled {
		t.Skip("contexts of package context that end by a timeout of a simulation are reported as races")
	}
	before := runtime.NumGoroutine()
	began := time.Now()
	if *flagSeed != 0 {
		p := program(t, *flagSeed, true)
		t.Logf("program %d:\n%s", p.Seed, p)
		if f := simulate(p, 1000); f != nil {
			t.Fatal(f)
		}
		return
	}
	n := sized(200, 2000, 100_000)
	var next, failed atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Add(1)
		go func() {
			defer all.Done()
			for failed.Load() == 0 {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				p := program(t, uint64(i), true)
				f, hung := watched(p, 4)
				if hung != "" && failed.Add(1) == 1 {
					t.Errorf("program %d %s\n%s\n%s", p.Seed, hung, p, again(t, p))
				}
				if f == nil || failed.Add(1) != 1 {
					continue
				}
				var last *sim.Failure
				small, _ := programs.Shrink(p, f.Error(), func(p *programs.Program) string {
					if x := simulate(p, 40); x != nil && x.Kind == f.Kind {
						last = x
						return x.Error()
					}
					return ""
				})
				if last != nil {
					f = last
				}
				text, _, _ := strings.Cut(f.Text, "\n")
				t.Errorf("program %d failed: %s\n%v\n%s\n%s", p.Seed, text, f, small, again(t, small))
			}
		}()
	}
	all.Wait()
	if t.Failed() {
		return
	}
	noGoroutinesAbove(t, before)
	t.Logf("%d programs, %v each", n, time.Since(began)/time.Duration(n))
}

// watched is simulate with a watchdog. It returns what was wrong: a failure, or the state when the time was up.
func watched(p *programs.Program, schedules int) (*sim.Failure, string) {
	done := make(chan *sim.Failure, 1)
	go func() { done <- simulate(p, schedules) }()
	limit := time.NewTimer(*flagPatience)
	defer limit.Stop()
	select {
	case f := <-done:
		return f, ""
	case <-limit.C:
		return nil, fmt.Sprintf("has not ended after %v\n%s", *flagPatience, stacks())
	}
}

// simulate runs a program under the given number of schedules with the clock that waits, and half as many with the one
// that races.
func simulate(p *programs.Program, schedules int) *sim.Failure {
	for _, mode := range []sim.ClockMode{sim.ClockIdle, sim.ClockRacing} {
		res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
			programs.Exec(ctx, p, programs.Env{Now: s.Now, Failf: s.Errorf, Idle: mode == sim.ClockIdle, Run: coir.Run})
		}, sim.WithClock(mode), sim.WithStrategy(sim.Random), sim.WithSeed(p.Seed), sim.WithSchedules(schedules))
		if res.Failure != nil {
			return res.Failure
		}
		schedules = (schedules + 1) / 2
	}
	return nil
}

// noGoroutinesAbove waits until there are no more goroutines than before.
func noGoroutinesAbove(t *testing.T, before int) {
	t.Helper()
	limit := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines; there were %d\n%s", runtime.NumGoroutine(), before, stacks())
		}
		<-time.After(time.Millisecond)
	}
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
