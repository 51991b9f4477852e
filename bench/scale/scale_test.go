package main

import (
	"maps"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// The tables in the document match the figures in docs.
func TestTheTablesAreWritten(t *testing.T) {
	is, want, err := written("../../docs")
	if err != nil || is != want {
		t.Errorf("docs/SCALE.md is not written from docs/scale.json and design/0012: run make generate (%v)", err)
	}
	if n := strings.Count(is, "\n"); n > 200 {
		t.Errorf("docs/SCALE.md has %d lines, and may have 200", n)
	}
}

// The text of the document is true of the tables: storage is full first, then processors, and the words that workers
// share are full last; a hop costs less than a hundredth of a durable value; and the model fits where the text says so.
func TestTheTextFitsTheTables(t *testing.T) {
	r, err := load("../../docs/scale.json")
	if err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile("../../docs/design/0012-shared-words.md")
	if err != nil {
		t.Fatal(err)
	}
	ops, err := counted(string(words), r.Inputs["hold"], r.Inputs["add"])
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, w := range r.walls(ops) {
		kind := 0
		switch {
		case strings.HasPrefix(w.what, "a process"):
			kind = 1
		case strings.HasPrefix(w.from, "the model"):
			kind = 2
		}
		if kind < last {
			t.Errorf("%s is not where the text says", w.what)
		}
		last = kind
	}
	for _, m := range r.Programs {
		model := 2 * m.One / cycle(2, m.One, r.Inputs["line"], program{name: m.Name}.places(r.Inputs))
		fits := math.Abs(model/m.Gain-1) < 0.15
		switch {
		case m.Name == "one nursery":
			fits = model > m.Gain
		case m.Name != "a channel of its own" && m.Between == 0:
			fits = model < m.Gain
		}
		if !fits {
			t.Errorf("%+v, and the model says %g: the text says otherwise", m, model)
		}
	}
	if r.Inputs["hop"] > r.Inputs["durable-cpu"]*1000/100 {
		t.Errorf("a hop takes %g ns, and a durable value %g µs", r.Inputs["hop"], r.Inputs["durable-cpu"])
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*math.Abs(b) }

// On one core nothing waits. With many cores, a full place lets one visit through after the other. Without places,
// cores do not meet.
func TestModelAtItsEnds(t *testing.T) {
	places := []place{{"a", 2, 2, 10}, {"b", 1, 1, 5}}
	if got := cycle(1, 100, 50, places); !near(got, 100) {
		t.Errorf("one core takes %g, want what it takes alone", got)
	}
	at, most := fullest(10_000, 50, places)
	if at.name != "a" || !near(most, 1e9/(2*(10+2*50*0.9999))) {
		t.Errorf("%s is full first, at %g", at.name, most)
	}
	if got := 10_000 * 1e9 / cycle(10_000, 100, 50, places); got > most || got < 0.99*most {
		t.Errorf("10,000 cores do %g a second, and the full place lets through %g", got, most)
	}
	if got := cycle(256, 100, 50, nil); !near(got, 100) {
		t.Errorf("without places 256 cores take %g, want 100", got)
	}
}

// Two cores at one place, computed by hand: a core finds the other one there with a probability equal to the part of
// its time that the other spends there.
func TestModelOfTwoCores(t *testing.T) {
	const hold, line, alone = 20, 60, 100
	there := hold + line/2.0 // a line moves in every other visit
	own := alone - float64(hold)
	waiting := there / (own + there)
	if got, want := cycle(2, alone, line, []place{{"a", 1, 1, hold}}), own+there*(1+waiting); !near(got, want) {
		t.Errorf("%g, want %g", got, want)
	}
}

func TestWordsOfOneStructAreOnePlace(t *testing.T) {
	ops, err := counted(`
| operation | word | written by | locks | changes | stores |
|---|---|---|---|---|---|
| yield | sched.ring.word | a worker, and thieves | 0 | 2 | 0 |
| wake | channel.Core.mu | users of a channel or nursery | 1 | 0 | 0 |
| wake | sched.counters.woken | all workers | 0 | 1 | 0 |
| wake | sched.list.mu | all workers | 2 | 0 | 0 |
| wake | sched.list.n | all workers | 0 | 1 | 1 |
`, 30, 5)
	if err != nil || len(ops) != 2 || len(ops[0].places) != 0 || len(ops[1].places) != 2 {
		t.Fatalf("%+v, %v", ops, err)
	}
	if got, want := ops[1].places[1], (place{"sched.list", 1, 2*2 + 2, 2*30 + 2*5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := counted("no table", 30, 5); err == nil {
		t.Error("a document without the table is accepted")
	}
}

// Every input is measured or assumed, has a reason or a command, and is listed once.
func TestInputsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range inputs {
		if seen[in.name] || in.what == "" || in.by == "" {
			t.Errorf("%+v is there twice, or has no reason", in)
		}
		seen[in.name] = true
	}
}

func TestLinesOfOtherCommands(t *testing.T) {
	r := &results{Inputs: map[string]float64{}}
	for _, line := range []string{
		"BenchmarkRate/durable-2 \t 10\t 314.7 cpu-us/value\t 936.2 values/s\n",
		"BenchmarkRate/ticket-2 \t 10\t 26.8 cpu-us/value\t 7400 values/s\n",
		"BenchmarkSend/100-2 \t 10\t 0.9 of-hand\t 12000 values/s\n", "PASS\n",
		`{"name":"rendezvous","coir":160,"ratio":0.7}`,
		`{"series":"fiber-op","what":"a nursery","unit":"ns","n":100,"cost":722.56,"growth":1}`,
	} {
		if err := r.take(line); err != nil {
			t.Error(err)
		}
	}
	want := map[string]float64{"durable": 936.2, "durable-cpu": 314.7, "ticket-cpu": 26.8, "postgres": 12000, "hop": 160}
	if !maps.Equal(r.Inputs, want) || len(r.Growth) != 1 || r.Growth[0].Cost != 722.6 || r.Growth[0].N != 100 {
		t.Errorf("%v, %v", r.Inputs, r.Growth)
	}
}

// The programs run on one and two workers. Whether a round counts depends on the machine.
func TestProgramsRun(t *testing.T) {
	for _, p := range programs {
		turns, err := p.turns(10*time.Microsecond, 1)
		for k := 1; k <= 2 && err == nil; k++ {
			var took time.Duration
			if took, _, err = p.run(k, turns, 1); took <= 0 {
				t.Errorf("%s took %v on %d workers", p.name, took, k)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFiberMemory(t *testing.T) {
	if bytes, err := fiberMemory(1000); err != nil || bytes < 1000 || bytes > 100_000 {
		t.Errorf("a fiber holds %g bytes (%v)", bytes, err)
	}
}

func TestHandOver(t *testing.T) {
	if ns := handOver(2); ns <= 0 {
		t.Errorf("a word is handed over in %g ns", ns)
	}
}
