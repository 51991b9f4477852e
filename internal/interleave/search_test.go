package interleave

// A reduction that misses executions looks like a fast one. So the tests compare its set of traces with that of a plain
// search, on random programs and on a few made by hand, and the number of executions with computed numbers.

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/soak"
)

// shared holds the objects that the threads of a test program share.
type shared struct {
	vars  [3]Object
	value [3]int
	locks [2]Object
	semas [2]Object
}

// touch numbers the objects, so that their numbers are the same in every execution.
func (m *shared) touch() {
	for i := range m.vars {
		m.vars[i].Do(Read)
	}
	for i := range m.locks {
		m.locks[i].Do(Lock)
		m.locks[i].Do(Unlock)
	}
	for i := range m.semas {
		m.semas[i].Do(Post)
		m.semas[i].Do(Wait)
	}
}

func (m *shared) load(i int) int {
	m.vars[i].Do(Read)
	return m.value[i]
}

func (m *shared) store(i, v int) {
	m.vars[i].Do(Write)
	m.value[i] = v
}

func (m *shared) cas(i, from, to int) bool {
	m.vars[i].Do(Update)
	if m.value[i] != from {
		Missed()
		return false
	}
	m.value[i] = to
	return true
}

// code is the program of a thread: each instruction is a letter and the number of its object. Parentheses enclose the
// code of a thread that it starts.
type code string

func (c code) run(m *shared, name string, id int) {
	seen, started := 0, 0
	for i := 0; i < len(c); i += 2 {
		if c[i] == '(' {
			body := c.body(i)
			started++
			child, number := fmt.Sprint(name, ".", started), 10*id+started
			Go(child, func() { body.run(m, child, number) })
			i += len(body) // and two parentheses
			continue
		}
		at := int(c[i+1] - '0')
		switch c[i] {
		case 'r':
			seen = m.load(at)
		case 'w':
			m.store(at, id)
		case 'c':
			if m.cas(at, 0, id) {
				seen = id
			}
		case 'd': // from what was read last
			if m.cas(at, seen, id) {
				seen = id
			}
		case 'i': // a write that depends on what was read last
			if seen == 0 {
				m.store(at, id)
			}
		case 'b': // a post
			if seen == 0 {
				m.semas[at].Do(Post)
			}
		case 'l':
			m.locks[at].Do(Lock)
		case 'u':
			m.locks[at].Do(Unlock)
		case 'k': // a look at a lock
			m.locks[at].Do(Read)
			seen = int(m.locks[at].n)
		case 'q': // a look at a semaphore
			m.semas[at].Do(Read)
			seen = int(m.semas[at].n)
		case 'p':
			m.semas[at].Do(Post)
		case 't':
			m.semas[at].Do(Wait)
		case 'g':
			m.semas[at].Through()
		case 'j':
			JoinAll()
		}
	}
}

// body returns the code between the parenthesis at i and its match.
func (c code) body(i int) code {
	depth := 0
	for j := i; ; j++ {
		switch c[j] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return c[i+1 : j]
			}
		}
	}
}

// together returns the program of these threads.
func together(threads ...code) (c code) {
	for _, t := range threads {
		c += "(" + t + ")"
	}
	return c + "j0"
}

// random returns a program of a few threads in one phase or two, which unlocks its locks.
func random(rnd *rand.Rand) (c code) {
	budget := 7 + rnd.IntN(5)
	for range 1 + rnd.IntN(2) {
		for range 2 + rnd.IntN(3) {
			c += "(" + randomThread(rnd, 4, 1, &budget) + ")"
		}
		if rnd.IntN(3) == 0 {
			c += randomThread(rnd, 2, 0, &budget)
		}
		if rnd.IntN(3) > 0 {
			c += "j0"
		}
	}
	return c
}

func randomThread(rnd *rand.Rand, length, depth int, budget *int) (c code) {
	held := [2]bool{}
	for range 1 + rnd.IntN(length) {
		if *budget--; *budget < 0 {
			break
		}
		at := rnd.IntN(2)
		letter := "rrwwiicdblllkptgqp("[rnd.IntN(19)]
		switch {
		case letter == '(' && depth > 0:
			c += "(" + randomThread(rnd, 3, depth-1, budget) + ")"
			continue
		case letter == '(':
			letter = 'r'
		case letter == 'l' && held[at]:
			letter = 'u'
			held[at] = false
		case letter == 'l':
			held[at] = true
		}
		c += code(fmt.Sprintf("%c%d", letter, at))
	}
	for at, h := range held {
		if h {
			c += code(fmt.Sprintf("u%d", at))
		}
	}
	return c
}

func program(c code, m **shared) func() {
	return func() {
		*m = new(shared)
		(*m).touch()
		c.run(*m, "main", 1)
	}
}

var seed = maphash.MakeSeed()

// canonical returns the trace of an execution: what each thread did, and the order of every two conflicting accesses.
func canonical(r *run, m *shared) string {
	count := [maxThreads]int{}
	label := make([]string, len(r.events))
	for i, e := range r.events {
		label[i] = fmt.Sprint(r.threads[e.thread].name, " ", count[e.thread], e.op.kind, e.op.object)
		count[e.thread]++
	}
	var sum uint64
	for i, e := range r.events {
		sum += maphash.String(seed, label[i])
		for j, d := range r.events[:i] {
			if conflict(d.op, e.op) {
				sum += maphash.String(seed, label[j]+"<"+label[i])
			}
		}
	}
	return fmt.Sprintf("%x %v %v", sum, m.value, len(r.stuck) > 0)
}

// cover explores a program, up to most executions unless that is 0, and counts those of each trace.
func cover(t *testing.T, c code, all bool, most int) (map[string]int, Result) {
	t.Helper()
	var m *shared
	traces := map[string]int{}
	s := &search{Config: Config{Executions: most}, all: all, unwinds: true}
	s.seen = func(r *run) { traces[canonical(r, m)]++ }
	if err := s.explore(program(c, &m)); err != nil {
		t.Fatalf("%q: %v", c, err)
	}
	return traces, s.Result
}

// compare explores a program with and without reduction. It returns false if there are too many executions.
func compare(t *testing.T, c code) (all, some Result, traces int, ok bool) {
	t.Helper()
	want, all := cover(t, c, true, 4_000)
	if !all.Complete {
		return all, some, 0, false
	}
	got, some := cover(t, c, false, 0)
	for k, n := range got {
		if want[k] == 0 {
			t.Errorf("%q: a trace that a plain search does not have", c)
		}
		if n > 1 && !strings.ContainsAny(string(c), "cd") { // a pending cas may be a write or a read
			t.Errorf("%q: a trace was gone through %d times", c, n)
		}
	}
	if len(got) < len(want) {
		t.Errorf("%q: %d traces of %d", c, len(got), len(want))
	}
	return all, some, len(want), true
}

func TestReductionSeesEveryTrace(t *testing.T) {
	n := 300
	switch {
	case soak.On():
		n = 800
	case testing.Short():
		n = 30
	}
	first := rand.Uint64()
	var executions, reduced, traces, programs int
	for i := uint64(0); programs < n; i++ {
		all, some, of, ok := compare(t, random(rand.New(rand.NewPCG(first, i))))
		if t.Failed() {
			t.Fatalf("seed %d, program %d", first, i)
		}
		if ok {
			executions, reduced, traces, programs = executions+all.Executions, reduced+some.Executions, traces+of, programs+1
		}
	}
	t.Logf("%d programs: %d executions, %d traces, %d executions with the reduction", programs, executions, traces, reduced)
}

// Programs on which reductions are known to fail, or that test one thing.
func TestReductionByHand(t *testing.T) {
	for _, threads := range [][]code{
		{"l0l1u1u0", "l1l0u0u1"},           // they may block each other
		{"r0w1", "r1w0"},                   // each may see the other's write, but not both
		{"w0", "r1i0", "w1r0"},             // the second's write is there only in some orders
		{"w0", "r0", "r0", "r0"},           // readers commute
		{"c0", "c0", "c0"},                 // one wins
		{"c0i1", "c0i1", "r1"},             //
		{"w0p0", "t0r0", "w0"},             // a semaphore orders two of three
		{"p0", "t0w0", "t0w0"},             // one of two gets it, the other stays
		{"p0", "g0w0", "g0w0"},             // both get through
		{"l0w0u0", "l0w0u0", "r0"},         //
		{"l0w0u0", "l0r0u0", "l0r0u0"},     //
		{"l0u0l0u0", "l0u0l0u0"},           //
		{"l0p0u0", "t0l0u0", "l0w0u0"},     //
		{"w0w1", "w1w0"},                   //
		{"r0w1r0", "w0r1", "w0"},           //
		{"l0t0u0", "l0p0u0"},               // the first may wait forever with the lock held
		{"w2", "w1r2", "r1i2", "r2"},       //
		{"r0i1", "r1i2", "r2i0"},           // a ring
		{"l0w0u0l1w1u1", "l1w1u1", "l0u0"}, //
		{"r1", "p0t0", "t0w1"},             // all threads that could run sleep, and another waits
		{"r1", "t0", "t0w1", "p0"},         //
		{"r1", "p0t0", "g0w1"},             //
		{"l0w1k0u0", "k0l0u0"},             // a look at a held lock
		{"l0u0", "k0i1", "l0w1u0"},         //
		{"w0(r0w1)", "r1w0"},               // threads of threads
	} {
		compare(t, together(threads...))
	}
}

func TestNumberOfExecutions(t *testing.T) {
	choose := func(n, k int) int {
		c := 1
		for i := range k {
			c = c * (n - i) / (i + 1)
		}
		return c
	}
	for _, p := range []struct {
		threads []code
		all     int
		traces  int
	}{
		{[]code{"w0w0w0", "w0w0w0"}, choose(6, 3), choose(6, 3)},           // every order is another trace
		{[]code{"w0w0w0", "w1w1w1"}, choose(6, 3), 1},                      // none matters
		{[]code{"r0r0r0", "r0r0r0"}, choose(6, 3), 1},                      //
		{[]code{"w0", "w0", "w0"}, 6, 6},                                   // 3!
		{[]code{"w0", "r0", "r0"}, 6, 4},                                   // each reader before the write or after
		{[]code{"w0w1", "w0w1"}, choose(4, 2), 4},                          // either order at each
		{[]code{"w0w0", "w0w0", "w1"}, choose(4, 2) * 5, choose(4, 2)},     //
		{[]code{"l0u0", "l0u0"}, 2, 2},                                     //
		{[]code{"l0w1u0", "l0w1u0", "l0w1u0"}, 6, 6},                       //
		{[]code{"w0p0", "t0w0"}, 1, 1},                                     //
		{[]code{"p0", "t0w0", "t0w0"}, 2, 2},                               // and the other stays
		{[]code{"w0w0w0w0w0", "w0w0w0w0w0"}, choose(10, 5), choose(10, 5)}, //
	} {
		traces, all := cover(t, together(p.threads...), true, 0)
		_, some := cover(t, together(p.threads...), false, 0)
		if all.Executions != p.all || len(traces) != p.traces || some.Executions-some.Redundant != p.traces {
			t.Errorf("%q: %d executions, %d traces, %d with the reduction; should be %d, %d, %d",
				p.threads, all.Executions, len(traces), some.Executions-some.Redundant, p.all, p.traces, p.traces)
		}
	}
}

// The executions with at most k preemptions are those of a plain search that have no more.
func TestBoundOnPreemptions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	n := 100
	if testing.Short() {
		n = 20
	}
	for range n {
		c := random(rnd)
		if _, all := cover(t, c, true, 4_000); !all.Complete {
			continue
		}
		want := map[int]map[string]bool{1: {}, 2: {}, 3: {}}
		var m *shared
		all := &search{all: true, unwinds: true}
		all.seen = func(r *run) {
			x := &all.nodes[len(r.events)-1]
			n := x.preempted
			if i := len(r.events) - 1; i > 0 && r.events[i].thread != r.events[i-1].thread && x.can>>r.events[i-1].thread&1 != 0 {
				n++
			}
			for b := range want {
				if n <= b {
					want[b][order(r)] = true
				}
			}
		}
		if err := all.explore(program(c, &m)); err != nil {
			t.Fatal(err)
		}
		for b, set := range want {
			got := map[string]bool{}
			s := &search{unwinds: true}
			s.Bound = b
			s.seen = func(r *run) { got[order(r)] = true }
			if err := s.explore(program(c, &m)); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, set) || len(got) != s.Result.Executions {
				t.Errorf("%q: bound %d: %d executions, %d of them different, should be %d", c, b, s.Result.Executions, len(got), len(set))
			}
		}
	}
}

func order(r *run) string {
	var b strings.Builder
	for _, e := range r.events {
		fmt.Fprint(&b, e.thread)
	}
	return b.String()
}

// A failure describes what is wrong, and lists the steps with their source positions.
func TestFailureIsShown(t *testing.T) {
	var m *shared
	lost := func() {
		m = new(shared)
		add := func() { m.store(0, m.load(0)+1) }
		Go("a", add)
		Go("b", add)
		JoinAll()
		if m.value[0] != 2 {
			Failf("the sum is %d", m.value[0])
		}
	}
	res, err := Explore(Config{}, lost)
	if err == nil {
		t.Fatalf("not found in %v", res)
	}
	for _, want := range []string{"the sum is 1", "interleave.(*shared).store:", "a ", "b "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	for name, p := range map[string]func(){
		"no thread can continue: main": func() {
			var o Object
			o.Do(Wait)
		},
		"panic in main: oh": func() {
			var o Object
			o.Do(Write)
			panic("oh")
		},
		"more than 10 steps": func() {
			var o Object
			for {
				o.Do(Write)
			}
		},
	} {
		if _, err := Explore(Config{Steps: 10}, p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, should have %q", err, name)
		}
	}
}
