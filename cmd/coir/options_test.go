package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/document"
)

// The guide lists the strategies that -strategy accepts.
func TestStrategiesInTheGuide(t *testing.T) {
	const name, begin, end = "../../docs/guide/coir-test-reference.md", "-run TestStrategiesInTheGuide -update -->\n",
		"<!-- end of strategies -->\n"
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, s := range strategies {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.doc)
	}
	same, err := document.Keep(name, begin, end, b.String(), *update)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("%s has not the strategies of the command; run make tables", name)
	}
}

// The explorer in the process of a test knows each strategy, and has the defaults of the flags.
func TestExplorerHasTheDefaults(t *testing.T) {
	const dir = "internal/overlay/_goroot/testing/"
	search, err := os.ReadFile(dir + "coir_search.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strategies[1:] {
		if !strings.Contains(string(search), "\tcase \""+s.name+"\":\n") {
			t.Errorf("the explorer has no strategy %s", s.name)
		}
	}
	settings, err := os.ReadFile(dir + "coir_settings.go")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Join(strings.Fields(string(settings)), " ")
	for _, want := range []string{
		fmt.Sprintf("strategy: %q, seed: %d, schedules: %d, budget: time.Second, bound: %d, leaks: %v,", o.strategy, o.seed,
			o.schedules, o.bound, o.leaks),
		fmt.Sprintf("only: %d, patience: %d, shrink: 10 * time.Second,", exploring, patience),
	} {
		if !strings.Contains(plain, want) || o.budget.String() != "1s" || o.shrink.String() != "10s" {
			t.Errorf("the explorer has not the defaults %s", want)
		}
	}
}

// The help names each flag of coir with its default, in lines that fit into a terminal.
func TestHelpOfTheFlags(t *testing.T) {
	for _, want := range []string{
		"\n\t-schedules n       run at most n schedules per test (default 10000); ",
		"\n\t-budget duration   spend at most duration on each test, such as 10s (default 1s; ",
		"\n\t-shrink d          spend at most d on shrinking a failure, ",
		"\n\t-strategy strategy choose schedules by strategy: default, random, uniform, pct, exhaustive, dpor or plain\n",
		"\n\t-bound n           at most n preemptions in a schedule of the exhaustive strategy (default 2)\n",
		"\n\t-racing            let time pass",
		"\n\t-leaks=false       do not fail a test that leaves goroutines behind; -v shows them\n",
		"\n\t-network network   the network for Unix and loopback sockets: memory or kernel. ",
	} {
		if !strings.Contains(testUsage, want) {
			t.Errorf("the help does not contain %q:\n%s", want, testUsage)
		}
	}
	if strings.Contains(testUsage, "{}") || strings.Contains(testUsage, "-step") {
		t.Errorf("the help is\n%s", testUsage)
	}
	for line := range strings.Lines(testUsage) {
		if n := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        ")); n > 120 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// What follows from flags is not in the options, which have what was given.
func TestWhatFollowsFromFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"":                              "1s false false",
		"-schedules=10":                 "2562047h47m16.854775807s false false",
		"-schedules=10 -budget=3s":      "3s false false",
		"-schedules=10 -for=1m":         "1s false false",
		"-strategy=dpor":                "1s true false",
		"-strategy=dpor -gcflags=-N":    "1s false false",
		"-atomics -json":                "1s true true",
		"-v":                            "1s false true",
		"-strategy=exhaustive -fresh .": "1s false false",
	} {
		o, err := parse(strings.Fields(flags))
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		if got := fmt.Sprint(o.limit(), " ", o.atomicPoints(), " ", o.printsAll()); got != want {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
		if o.strategy == "dpor" && o.atomics || o.json && o.verbose {
			t.Errorf("%s: %+v", flags, o)
		}
	}
}
