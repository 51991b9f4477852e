package main

import (
	"errors"
	"fmt"
	"io"
)

// The hot paths in a short form, for CI.
//
// It notices immediately if a function is no longer inlined, or if an operation allocates. Such a loss is large, so the
// bounds are generous: the comparison's own, or the measured ratio if that is more, times hotSlack. On a machine that
// does other work, figures are wrong for a second or two. So a comparison that fails is measured again, in more rounds,
// and only a comparison that fails each time has failed. Allocations have no noise: a new one fails immediately.

const (
	hotSlack  = 1.3
	hotAllocs = 0.5 // what starting and joining the sides may add to each operation
)

// hotRounds are the numbers of rounds of the first try, and of the following tries.
var hotRounds = []int{15, 30, 60, 60}

// checkHot measures the hot comparisons, and reports which exceed their bounds. measure runs one of them, in the given
// number of rounds.
func checkHot(all []*comparison, measure func(c *comparison, rounds int) (result, error), out io.Writer) error {
	var failed error
	for _, c := range all {
		if !c.hot {
			continue
		}
		if err := c.checkHot(measure, out); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return failed
}

func (c *comparison) checkHot(measure func(c *comparison, rounds int) (result, error), out io.Writer) error {
	var low result
	bound := max(c.bound, c.held)
	for i, rounds := range hotRounds {
		r, err := measure(c, rounds)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, r)
		if r.Allocs > c.allocs+hotAllocs {
			return fmt.Errorf("%.2f allocations an operation, where %g are expected", r.Allocs, c.allocs)
		}
		if r.Ratio <= hotSlack*bound {
			return nil
		}
		if i == 0 || r.Ratio < low.Ratio {
			low = r
		}
	}
	return fmt.Errorf("ratio %.3f at the least in %d tries, more than %g times %g",
		low.Ratio, len(hotRounds), hotSlack, bound)
}
