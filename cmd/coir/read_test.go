package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The numbers of a record are read as they were written, also those that an int cannot hold on each machine.
func TestReadLargeNumbers(t *testing.T) {
	r := result{record: record{tested: new(tested)}}
	r.read("failure\t\"fail\"\t\"\"\t1\t18446744073709551615\t0\t\"c1.AA\"\ttrue\t0\t0\t1\t9223372036854775807\n" +
		"step\t1\t1\t6\t1\t9223372036854775807\t0\t0\t0\t1\t0\t0\tfalse\t0\n" +
		"actor\t1\t0\t6\t1\t0\t\"\"\t1\t1\t-9223372036854775808\t0\t0\t\"f\"\t18446744073709551615\t\"\"\t" +
		"\"[18446744073709551614 1]\"\t\"\"\t0\n" +
		"summary\t\"fail\"\t1\t0\t0\tfalse\t\"0\"\n")
	if r.broken != "" || r.failure == nil || len(r.known) != 1 || r.actors[1] == nil {
		t.Fatalf("read %+v: %s", r, r.broken)
	}
	if r.failure.seed != math.MaxUint64 || r.failure.now != time.Duration(math.MaxInt64) {
		t.Errorf("the seed is %d, and the time %d", r.failure.seed, r.failure.now)
	}
	a := r.actors[1]
	if r.known[0].at != math.MaxInt64 || a.since != math.MinInt64 || a.fiberID != math.MaxUint64 ||
		len(a.holders) != 2 || a.holders[0] != math.MaxUint64-1 || a.holders[1] != 1 {
		t.Errorf("read the step %+v and the goroutine %+v", r.known[0], a)
	}
}

// A line that is not as it was written is refused, with its number, its bad field, and its text.
func TestReadBadLines(t *testing.T) {
	for line, want := range map[string]string{
		"racing\t1\t2\n":                 `line 2 of the record is bad: 1 field too many, from field 3 on: "racing\t1\t2\n"`,
		"end\t1\t2\n":                    `2 fields too many, from field 2 on: `,
		"time\ttrue\n":                   `field 3 is missing: `,
		"time\ttrue\tyes\n":              `field 3 is "yes", not true or false: `,
		"time\tTrue\tfalse\n":            `field 2 is "True", not true or false: `,
		"time\ttrue\t\n":                 `field 3 is "", not true or false: `,
		"skips\t1.5\n":                   `field 2 is "1.5", not an int: `,
		"racing\t1":                      `the line has no end: "racing\t1"`,
		"part\tTestA\n":                  `field 2 is "TestA", not a quoted text: `,
		"other\t1\n":                     `field 1 is "other", not the first word of a line: `,
		"\n":                             `field 1 is "", not the first word of a line: `,
		"more\t1\t9223372036854775808\n": `field 3 is "9223372036854775808", not an int64: `,
		"step\t1\t1\t999\t1\t0\t0\t0\t0\t1\t0\t0\tfalse\t0\n":         `field 4 is "999", not an operation: `,
		"step\t1\t1\t6\t1\t0\t9\t0\t0\t1\t0\t0\tfalse\t0\n":           `field 7 is "9", not the number of a stack: `,
		"failure\t\"fail\"\t\"\"\t1\t-1\t0\t\"\"\ttrue\t0\t0\t1\t0\n": `field 5 is "-1", not a uint64: `,
		"note\t7\tit dials\n": `field 3 is "it dials", not a quoted text: `,
		"case\t7\t1\t1\tno\n": `field 5 is "no", not true or false: `,
	} {
		r := result{record: record{tested: new(tested)}}
		r.read("racing\t0\n" + line)
		if !strings.Contains(r.broken, want) || !strings.HasPrefix(r.broken, "line 2 of the record is bad: ") {
			t.Errorf("%q: %s, want %s", line, r.broken, want)
		}
		r = result{record: record{tested: new(tested)}}
		if r.read("summary\t\"pass\"\t1\t0\t0\tfalse\t\"0\"\n" + line); r.outcome != "error" {
			t.Errorf("after %q the outcome is %s", line, r.outcome)
		}
	}
}

// Lines about steps that are older than the kept ones change nothing.
func TestReadLinesOfOldSteps(t *testing.T) {
	r := result{record: record{tested: new(tested)}}
	r.read("step\t5\t1\t6\t1\t0\t0\t0\t0\t1\t0\t0\tfalse\t0\nnote\t4\t\"old\"\ncase\t4\t1\t1\ttrue\nnote\t5\t\"new\"\n")
	if r.broken != "" || len(r.known) != 1 || r.known[0].note != "new" || len(r.known[0].cases) != 0 {
		t.Errorf("read %+v: %s", r.known, r.broken)
	}
}
