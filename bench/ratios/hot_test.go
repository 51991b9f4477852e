package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// A comparison passes if one try is within the bound. Each try has its own number of rounds. An allocation or an error
// ends it immediately.
func TestCheckHot(t *testing.T) {
	broken := errors.New("it hangs")
	for _, test := range []struct {
		name   string
		tries  []result
		err    error
		rounds []int
		says   string
	}{
		{"good", []result{{Ratio: 0.64}}, nil, []int{15}, ""},
		{"good at last", []result{{Ratio: 0.7}, {Ratio: 0.7}, {Ratio: 0.7}, {Ratio: 0.64}}, nil, []int{15, 30, 60, 60}, ""},
		{
			"bad", []result{{Ratio: 0.8}, {Ratio: 0.7}, {Ratio: 0.9}, {Ratio: 0.8}}, nil, []int{15, 30, 60, 60},
			"bad: ratio 0.700 at the least in 4 tries, more than 1.3 times 0.5",
		},
		{"a little to start", []result{{Ratio: 0.3, Allocs: 2.4}}, nil, []int{15}, ""},
		{
			"allocates", []result{{Ratio: 0.3, Allocs: 3}}, nil, []int{15},
			"allocates: 3.00 allocations an operation, where 2 are expected",
		},
		{"broken", []result{{}}, broken, []int{15}, "broken: it hangs"},
	} {
		c := &comparison{name: test.name, bound: 0.5, allocs: 2, hot: true}
		cold := &comparison{name: "cold", bound: 0.5}
		var rounds []int
		err := checkHot([]*comparison{cold, c}, func(which *comparison, n int) (result, error) {
			if which != c {
				t.Errorf("%s was measured", which.name)
			}
			rounds = append(rounds, n)
			return test.tries[len(rounds)-1], test.err
		}, io.Discard)
		if !slices.Equal(rounds, test.rounds) {
			t.Errorf("%s: tries of %v rounds, want %v", test.name, rounds, test.rounds)
		}
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.says)
		}
	}
}

// A hot comparison is short, and has a bound.
func TestHotOnesAreShort(t *testing.T) {
	n := 0
	for _, c := range table {
		if !c.hot {
			continue
		}
		n++
		if c.bound == 0 || c.unit != "ns" || c.rounds != shortRounds {
			t.Errorf("%s is hot, and has no bound or takes long", c.name)
		}
	}
	if n < 16 {
		t.Errorf("%d comparisons are hot: the step in CI looks at nearly nothing", n)
	}
}
