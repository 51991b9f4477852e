// Pipeline is a supervised pipeline, source -> parse -> enrich -> sink, that accounts for every record that it reads.
//
// A stage that fails is restarted after a delay, up to a limit (stage.go). It keeps the record on which it failed and
// starts again with that record. An operation that returns an error has had no effect, so no record is lost or
// duplicated. Settings arrive through a conflated channel and are applied before the next record. Lookups are slow, so
// several run concurrently, but the records still come out in order (pipeline.go). This program runs the pipeline with
// a generated input and injected failures.
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

// input returns the given number of lines. Every hundredth line is a setting, and one in seventy is not a number.
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

// failOnce makes each stage fail once, at the given record or the first one after it. Each stage runs in one fiber.
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
