package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
)

// series lists the series of growth that show how costs grow with the number of things.
const series = "fiber-op,fiber-op-go,channel-op,channel-op-cold,waiter-pass,timer-op,ticket-op"

// measureAll measures the inputs, the programs and the series. It runs other commands for what they measure.
func measureAll(rounds int, round time.Duration) (*results, error) {
	r := &results{Inputs: map[string]float64{}}
	var err error
	if r.Machine, err = timing.ThisMachine(); err != nil {
		return nil, err
	}
	if err := r.measureHere(rounds, round); err != nil {
		return nil, err
	}
	for _, c := range []struct{ dir, command string }{
		{"../remote/nats", "go test -run ^$ -bench Rate -benchtime 10x ."},
		{"../remote/postgres", "go test -run ^$ -bench Send/100 -benchtime 10x ."},
		{".", "go run ./growth -json -only " + series},
		{".", "go run ./ratios -json -cpu -only rendezvous"},
	} {
		args := strings.Fields(c.command)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Stderr = c.dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s, in %s: %w\n%s", c.command, c.dir, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if err := r.take(line); err != nil {
				return nil, fmt.Errorf("%s, in %s: %w", c.command, c.dir, err)
			}
		}
	}
	for name, v := range r.Inputs {
		r.Inputs[name] = timing.Short(v)
	}
	return r, nil
}

// take reads a line of another command: of ratios -json, of growth -json, or of go test. A line of go test has a name
// with the number of processors, the number of rounds, and values with their units.
func (r *results) take(line string) error {
	if strings.HasPrefix(line, "{") {
		var of struct {
			Name string
			Coir float64
			point
		}
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			return err
		}
		if of.Series != "" {
			of.Cost, of.Growth = timing.Short(of.Cost), timing.Short(of.Growth)
			r.Growth = append(r.Growth, of.point)
		}
		r.put(of.Name, of.Coir)
	}
	f := strings.Fields(line)
	for i := 3; i < len(f) && strings.HasPrefix(line, "Benchmark"); i += 2 {
		v, err := strconv.ParseFloat(f[i-1], 64)
		if err != nil {
			return err
		}
		r.put(f[0][:strings.LastIndex(f[0], "-")]+" "+f[i], v)
	}
	return nil
}

// put stores an input, if from is the name of one.
func (r *results) put(from string, v float64) {
	for _, in := range inputs {
		if in.from != "" && in.from == from {
			r.Inputs[in.name] = v
		}
	}
}

// measureHere measures the inputs that need no other command.
func (r *results) measureHere(rounds int, round time.Duration) (err error) {
	if r.Inputs["fiber"], err = fiberMemory(100_000); err != nil { // first: later fibers reuse what earlier ones left
		return err
	}
	var word atomic.Int64
	var adds []float64
	add := func(n int) {
		for range n {
			word.Add(1)
		}
	}
	n := timing.Turns(true, 20*time.Millisecond, add)
	for range rounds {
		adds = append(adds, float64(timing.Of(true, func() { add(n) }).Time.Nanoseconds())/float64(n))
	}
	r.Inputs["add"], r.Inputs["line"] = timing.Quantile(adds, 0.5), handOver(40*rounds)
	if r.Inputs["sync"], err = syncTime(10 * rounds); err != nil {
		return err
	}
	r.Programs, err = measurePrograms(rounds, round)
	for _, p := range r.Programs {
		if p.Name == "one channel" && p.Between == 0 {
			r.Inputs["hold"] = p.One / 2
		}
	}
	return err
}

// syncTime returns how long an append of 4 KiB and its sync take, in microseconds, on the disk of this directory.
func syncTime(times int) (float64, error) {
	f, err := os.CreateTemp(".", ".sync-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	var took []float64
	for range times {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1000)
	}
	return timing.Quantile(took, 0.5), nil
}

// fiberMemory returns the number of bytes that each of n fibers holds while it waits to receive.
func fiberMemory(n int) (bytes float64, err error) {
	before, _ := timing.Held()
	err = coir.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		c := coir.NewChan[int](0)
		for range n {
			nur.Go("", func(ctx context.Context) error {
				_, err := c.Recv(ctx)
				return err
			})
		}
		for c.Stats().Recv.Waiting < n {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		after, _ := timing.Held()
		bytes = (after - before) / float64(n)
		for range n {
			if err := c.Send(ctx, 0); err != nil {
				return err
			}
		}
		return nil
	})
	return bytes, err
}
