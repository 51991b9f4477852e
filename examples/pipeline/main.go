// Pipeline is a supervised pipeline, source -> parse -> enrich -> sink, that accounts for every record it has read.
//
// A stage that fails is started again after a delay, a few times (stage.go). It keeps the record that it failed on in hand and
// begins with that one; and since an operation that returns an error has not happened, no record is lost and none is doubled.
// Settings come through a conflated channel and are applied before the next record. Looking records up takes long and is
// done for several beside each other; they come out in order all the same (pipeline.go). Here the pipeline is given an
// input, and things that go wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	numbered, last := true, -1
	p := pipeline{
		input: input(1000),
		fault: failOnce(map[string]int{"parse": 200, "enrich": 400, "sink": 600}),
		lookup: func(ctx context.Context, r record) error {
			if r.number%300 == 1 {
				return errors.New("not found, and never will be")
			}
			return coir.Sleep(ctx, time.Duration(r.number%5)*100*time.Microsecond)
		},
		deliver: func(r record) {
			numbered = numbered && r.number > last
			last = r.number
		},
	}
	err := p.run(context.Background())
	fmt.Fprintf(out, "read %d: delivered %d, rejected %d, undelivered %d\n",
		p.read.Load(), p.delivered.Load(), p.rejected.Load(), p.undelivered.Load())
	fmt.Fprintf(out, "in order: %t, after %d restarts\n", numbered, p.restarted.Load())
	return err
}

// input is so many lines: every hundredth is a setting, and one in seventy is no number.
func input(lines int) []string {
	in := make([]string, lines)
	for i := range in {
		switch {
		case i%100 == 0:
			in[i] = "rate " + strconv.Itoa(i/100+1)
		case i%70 == 0:
			in[i] = "many"
		default:
			in[i] = strconv.Itoa(i)
		}
	}
	return in
}

// failOnce has each stage fail once, when it comes to the record at or after the one given. Each stage is one fiber.
func failOnce(at map[string]int) func(string, int) error {
	failed := map[string]*bool{}
	for stage := range at {
		failed[stage] = new(bool)
	}
	return func(stage string, number int) error {
		if number < at[stage] || *failed[stage] {
			return nil
		}
		*failed[stage] = true
		return fmt.Errorf("%s has lost its connection", stage)
	}
}
