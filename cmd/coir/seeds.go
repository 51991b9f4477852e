package main

import (
	"context"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// coir test runs the seeds of a fuzz test, from f.Add and testdata/fuzz, as go test does: once each, in real time, and
// not in many schedules.

func isFuzz(name string) bool { return strings.HasPrefix(name, "Fuzz") }

// seeds runs the seeds of a fuzz test.
func (x *runner) seeds(ctx context.Context) *result {
	name := x.job.test
	r := &result{record: record{tested: x.tested()}, seeds: true, outcome: coir.VerdictPass}
	err := x.runOnce(ctx, r)
	switch {
	case err == nil && strings.Contains(r.output, "--- SKIP: "+name+" ("):
		r.outcome = coir.VerdictSkip
	case err != nil && strings.Contains(r.output, "--- FAIL: "+name):
		r.outcome, r.broken = coir.VerdictDied, "it fails with a seed, as under go test"
	case err != nil:
		r.died(err)
	}
	return r
}
