package replay

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

func fields(b []byte) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	return b[1:], true
}

func TestTokensComeBack(t *testing.T) {
	for _, script := range [][]int{nil, {1}, {0, 0, 3, 0, 1}, append(make([]int, MostDecisions-1), 2)} {
		token := Token("x1.", []byte{7}, script)
		if token[:3] != "x1." {
			t.Errorf("the token is %.20s", token)
		}
		back, err := Parse(token[3:], fields)
		if err != nil || !slices.Equal(back, script) {
			t.Errorf("%d decisions of %d, %v", len(back), len(script), err)
		}
	}
}

// A short text can stand for very many zeros. Reading it must not use all memory.
func TestTokensHaveABoundedSize(t *testing.T) {
	var b []byte
	for range 400 { // 400 times 1<<20 zeros and a 1, in 2 kB
		b = binary.AppendUvarint(binary.AppendUvarint(b, 1<<20), 1)
	}
	letters := base64.RawURLEncoding.EncodeToString(append([]byte{7}, b...))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	script, err := Parse(letters, fields)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Errorf("a token of %d bytes became %d decisions", len(letters), len(script))
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 256 {
		t.Errorf("a token of %d bytes used %d MB", len(letters), used)
	}
	if token := Token("x1.", []byte{7}, append(make([]int, MostDecisions), 1)); token != "" {
		t.Errorf("a script that is too long became the token %.20s", token)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(Token("", []byte{1}, []int{0, 2, 0, 0, 1}))
	f.Add("AYCAgICAgICAgAE")
	f.Fuzz(func(t *testing.T, letters string) {
		script, err := Parse(letters, fields)
		if err != nil {
			return
		}
		for len(script) > 0 && script[len(script)-1] == 0 { // a script continues with zeros, written or not
			script = script[:len(script)-1]
		}
		again, err := Parse(Token("", []byte{1}, script), fields)
		if err != nil || !slices.Equal(again, script) {
			t.Errorf("%v became %v, %v", script, again, err)
		}
	})
}

func TestShrinkFindsTheFewest(t *testing.T) {
	const length = 60
	runs := 0
	// The schedule fails if decisions 10 and 40 are 2 and 1, whatever the others are.
	run := func(script []int) Run {
		runs++
		r := Run{Steps: length, Decisions: make([]Decision, length)}
		for i := range r.Decisions {
			r.Decisions[i].Ways = 3
			if i < len(script) {
				r.Decisions[i].Way = script[i]
			}
		}
		r.Fails = r.Decisions[10].Way == 2 && r.Decisions[40].Way == 1
		return r
	}
	script := make([]int, length)
	for i := range script {
		script[i] = 1 + i%2
	}
	script[10], script[40] = 2, 1
	small, whole := Shrink(run(script), run, nil, 1_000_000, 1_000_000)
	want := make([]int, 41)
	want[10], want[40] = 2, 1
	if !slices.Equal(small, want) || !whole {
		t.Errorf("%v, %v", small, whole)
	}
	runs = 0
	if _, whole := Shrink(run(script), run, nil, 0, 0); runs > 5 || whole {
		t.Errorf("%d runs, and no steps to spend; %v", runs, whole)
	}
}

// Cutting runs no script twice, and a long program is not searched for long, neither before nor after it is cut.
func TestShrinkWastesNoSteps(t *testing.T) {
	const length, search = 1000, 100_000
	tried := map[string]int{}
	singles := 0
	run := func(script []int) Run {
		r := Run{Steps: length, Decisions: make([]Decision, length)}
		for i := range r.Decisions {
			r.Decisions[i].Ways = 2
			if i < len(script) {
				r.Decisions[i].Way = script[i]
			}
		}
		r.Fails = r.Decisions[300].Way+r.Decisions[500].Way+r.Decisions[900].Way == 3
		if n := Switches(Script(r.Decisions)); n > 2 {
			tried[fmt.Sprint(Script(r.Decisions))]++
		} else {
			singles++
		}
		return r
	}
	script := make([]int, length)
	for i := 0; i < length; i += 100 {
		script[i] = 1
	}
	small, whole := Shrink(run(script), run, nil, 10_000_000, search)
	if Switches(small) != 3 || !whole {
		t.Errorf("%v, %v", small, whole)
	}
	delete(tried, fmt.Sprint(Script(run(script).Decisions))) // the test runs it, too
	for script, n := range tried {
		if n > 1 {
			t.Errorf("%d times: %s", n, script)
		}
	}
	if most := 2*(search/5/length+2) + 100; singles > most {
		t.Errorf("%d schedules with at most two switches, want at most %d", singles, most)
	}
}

// Four actors make ten moves each. Before each move, a decision chooses the actor, and as many values are drawn as the
// number of the actor, so that decisions mean something else as soon as an earlier one differs. The schedule fails if
// the actors make their sixth moves in reverse order. If turns were not joined, 12 to 20 decisions would be left.
func TestShrinkJoinsTurns(t *testing.T) {
	const actors, things, pass = 4, 10, 6
	run := func(decide func(way []int, did [actors]int) int) Run {
		r := Run{Course: new(Course)}
		var did [actors]int
		misfit, passed := false, 0
		choose := func(way []int) int {
			k := decide(way, did)
			if k >= len(way) {
				k, misfit = 0, true
			}
			r.Decisions = append(r.Decisions, Decision{Way: k, Ways: len(way)})
			return k
		}
		for now := 0; r.Steps < actors*things; r.Steps++ {
			var way []int // the running actor, those after it, those before it
			for k := range actors {
				if a := (now + k) % actors; did[a] < things {
					way = append(way, a)
				}
			}
			now = way[choose(way)]
			if did[now]++; did[now] == pass && passed == actors-1-now {
				passed++
			}
			if n := len(r.Course.Turns); n > 0 && r.Course.Turns[n-1].Actor == now {
				r.Course.Turns[n-1].To++
			} else {
				r.Course.Turns = append(r.Course.Turns, Turn{now, did[now]})
			}
			for range now {
				choose([]int{-1, -1})
			}
		}
		r.Fails = passed == actors && !misfit
		return r
	}
	try := func(script []int) Run {
		i := -1
		return run(func([]int, [actors]int) int {
			if i++; i < len(script) {
				return script[i]
			}
			return 0
		})
	}
	follow := func(c *Course) Run {
		return run(func(way []int, did [actors]int) int {
			for _, t := range c.Turns {
				if k := slices.Index(way, t.Actor); k >= 0 && did[t.Actor] < t.To {
					return k
				}
			}
			return 0
		})
	}
	Shrink(try([]int{2}), func([]int) Run { return Run{Steps: 1} }, func(*Course) Run {
		t.Error("a schedule with one decision that is not 0 was joined")
		return Run{}
	}, 1000, 1000)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		failed := Run{}
		for !failed.Fails {
			failed = run(func(way []int, _ [actors]int) int { return r.IntN(len(way)) })
		}
		small, _ := Shrink(failed, try, follow, 1_000_000, 30_000)
		if n := Switches(small); n > 3 || !try(small).Fails {
			t.Errorf("seed %d: %v", seed, small)
		}
	}
}

// Five turns, of which none can be removed alone, are removed together, and so are two of three values.
func TestShrinkRemovesManyAtOnce(t *testing.T) {
	turns := []Turn{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 3}}
	follow := func(c *Course) Run {
		r := Run{Steps: 10, Course: c}
		v := c.Values[0]
		r.Fails = (len(c.Turns) == 0 || len(c.Turns) == len(turns)) && v[0] == v[1] && v[2] == 1
		for range c.Turns {
			r.Decisions = append(r.Decisions, Decision{Way: 1, Ways: 2})
		}
		for _, way := range v {
			r.Decisions = append(r.Decisions, Decision{Way: way, Ways: 2})
		}
		return r
	}
	failed := follow(&Course{turns, [][]int{{1, 1, 1}}})
	try := func(script []int) Run {
		if slices.Equal(script, Script(failed.Decisions)) {
			return failed
		}
		return Run{Steps: 10, Decisions: make([]Decision, len(failed.Decisions))}
	}
	if small, _ := Shrink(failed, try, follow, 100_000, 100_000); !slices.Equal(small, []int{0, 0, 1}) {
		t.Error(small)
	}
}

func TestTwinSharesTheMost(t *testing.T) {
	const length = 400
	// The schedule passes if decision 120 or, before it, decision 7 is not 0.
	run := func(script []int, rule int) Run {
		r := Run{Steps: length, Decisions: make([]Decision, length)}
		for i := range r.Decisions {
			r.Decisions[i].Ways = 3
			if i < len(script) {
				r.Decisions[i].Way = script[i]
			} else {
				r.Decisions[i].Way = rule * (i + 1) % 3
			}
		}
		r.Fails = r.Decisions[120].Way == 0 && r.Decisions[7].Way == 0
		return r
	}
	p := Twin(run(nil, 0).Decisions, run, Limits{Steps: 10_000_000, Schedules: 2000, All: 1000})
	want := make([]int, length)
	if want[120] = 1; p.At != 120 || p.Sure || !slices.Equal(p.Twin, want) {
		t.Errorf("Twin returned %+v, want At 120, not Sure, and a twin that differs there only", p)
	}
	if again := Twin(run(nil, 0).Decisions, run, Limits{Steps: 10_000_000, Schedules: 2000, All: 1000}); again.Tried != p.Tried {
		t.Errorf("%d schedules, and then %d", p.Tried, again.Tried)
	}
	p = Twin(run(nil, 0).Decisions, run, Limits{Steps: 10_000_000, Schedules: 30, All: 1000})
	if p.Tried > 30 {
		t.Errorf("%d schedules were tried, of at most 30", p.Tried)
	}
	never := func(script []int, _ int) Run {
		r := Run{Fails: true, Steps: 3, Decisions: []Decision{{Ways: 2}, {Ways: 2}, {Ways: 2}}}
		for i := range script {
			r.Decisions[i].Way = script[i]
		}
		return r
	}
	if p = Twin(never(nil, 0).Decisions, never, Limits{Steps: 10_000, Schedules: 2000, All: 1000}); p.Twin != nil || !p.Sure || p.Tried != 7 {
		t.Errorf("%+v of a schedule that has no twin", p)
	}
}

// A schedule with more faults than the failing one is a twin only if no other schedule passes, however much it has in
// common.
func TestTwinHasNoMoreFaults(t *testing.T) {
	const length = 10
	// The schedule passes if decision 2 or, which is about a fault, decision 8 is 1.
	var order bool
	run := func(script []int, rule int) Run {
		r := Run{Steps: length, Decisions: make([]Decision, length)}
		for i := range r.Decisions {
			r.Decisions[i] = Decision{Ways: 2, Fault: i == 8 || i == 4}
			if i < len(script) {
				r.Decisions[i].Way = script[i]
			} else if rule > 1 {
				r.Decisions[i].Way = rule & 1
			}
		}
		r.Fails = r.Decisions[8].Way == 0 && (!order || r.Decisions[2].Way == 0)
		return r
	}
	for _, limits := range []Limits{{Steps: 1_000_000, Schedules: 5000, All: 1_000_000}, {Steps: 1_000_000, Schedules: 5000}} {
		order = true
		p := Twin(run(nil, 0).Decisions, run, limits)
		if want := []int{0, 0, 1, 0, 0, 0, 0, 0, 0, 0}; p.At != 2 || !p.Spared || !slices.Equal(p.Twin, want) {
			t.Errorf("%+v, want a twin that differs in decision 2", p)
		}
		order = false
		p = Twin(run(nil, 0).Decisions, run, limits)
		if want := []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 0}; p.At != 8 || p.Spared || !slices.Equal(p.Twin, want) {
			t.Errorf("%+v, want a twin with the fault, because no other schedule passes", p)
		}
	}
}
