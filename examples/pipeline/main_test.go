package main

// Whatever fails, and however often, every record that was read is accounted for.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

var errInjected = errors.New("injected")

// The program prints what the README shows: three restarts of stages, and three restarts of each of four lookups.
func TestItAccountsForEveryRecord(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	want := "read 990: delivered 973, rejected 17, undelivered 0\nin order: true, after 15 restarts\n"
	if out.String() != want {
		t.Fatalf("it printed %q, not %q", out.String(), want)
	}
}

// A stage that fails as often as the limit allows, at one record or at several, loses and duplicates nothing.
func TestAStageThatRecoversLosesNothing(t *testing.T) {
	for _, stage := range []string{"parse", "enrich", "sink"} {
		for name, at := range map[string][]int{"first": {0, 0, 0}, "last": {99, 99, 99}, "several": {1, 40, 80}} {
			t.Run(stage+"/"+name, func(t *testing.T) {
				var delivered []int
				p := plain(100)
				p.fault = failAt(stage, at)
				p.deliver = func(r record) { delivered = append(delivered, r.number) }
				if err := p.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				p.check(t)
				if n := p.restarted.Load(); n != restarts {
					t.Errorf("%d restarts", n)
				}
				for i, number := range delivered {
					if i != number {
						t.Fatalf("delivered %v", delivered)
					}
				}
				if len(delivered) != 100 {
					t.Errorf("%d were delivered", len(delivered))
				}
			})
		}
	}
}

// A stage that fails more often is given up. The pipeline ends with its error, and the records in it are accounted for.
//
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-40 (no value is lost silently)
func TestAStageThatIsGivenUpEndsThePipeline(t *testing.T) {
	for _, stage := range []string{"parse", "enrich", "sink"} {
		for _, number := range []int{0, 50, 99} {
			t.Run(fmt.Sprint(stage, "/", number), func(t *testing.T) {
				p := plain(100)
				p.fault = failAt(stage, []int{number, number, number, number})
				if err := p.run(t.Context()); !errors.Is(err, errInjected) {
					t.Fatalf("the error is %v", err)
				}
				p.check(t)
				if n := p.undelivered.Load(); n == 0 {
					t.Error("the record that it failed on counts as delivered")
				}
			})
		}
	}
}

// A pipeline that is cancelled while every part of it is busy accounts for the records in it.
//
// Spec: CH-40 (no value is lost silently)
func TestCancelLosesNothing(t *testing.T) {
	for _, at := range []int{0, 1, 17, 50, 98} {
		ctx, cancel := context.WithCancel(t.Context())
		p := plain(100)
		p.lookup = func(ctx context.Context, r record) error {
			if r.number == at {
				cancel()
				return coir.Sleep(ctx, time.Hour) // returns when the pipeline is cancelled
			}
			return coir.Yield(ctx)
		}
		if err := p.run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		p.check(t)
		if n := p.rejected.Load(); n != 0 {
			t.Errorf("%d records count as rejected, whose lookup was cancelled", n)
		}
		cancel()
	}
}

// Lookups that end out of order do not change the order of the records. Here each even record waits for the next odd
// one.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
func TestTheOrderIsKept(t *testing.T) {
	const records = 100
	ends := make([]*coir.Chan[int], records)
	for i := range ends {
		ends[i] = coir.NewChan[int](0)
	}
	var inverted atomic.Int64
	p := plain(records)
	p.lookup = func(ctx context.Context, r record) error {
		if r.number%2 == 0 {
			_, err := ends[r.number+1].Recv(ctx)
			if !errors.Is(err, coir.ErrClosed) {
				return err
			}
			inverted.Add(1)
		}
		ends[r.number].Close()
		return nil
	}
	next := 0
	p.deliver = func(r record) {
		if r.number != next {
			t.Errorf("record %d came as number %d", r.number, next)
		}
		next++
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.check(t)
	if next != records || inverted.Load() != records/2 {
		t.Errorf("%d records came, %d lookups ended after the one behind", next, inverted.Load())
	}
}

// No record is looked up under a setting older than the one in force when it was read, even if stages fail.
//
// Spec: SE-08 (SelectPriority takes the first ready case)
func TestASettingIsInForceBeforeTheNextRecord(t *testing.T) {
	const lines = 1000
	p := plain(lines)
	inForce, rate := make([]int, lines), 0
	for i := range p.input {
		if i%7 == 0 {
			rate++
			p.input[i] = "rate " + strconv.Itoa(rate)
		}
		inForce[i] = rate
	}
	p.fault = failAt("enrich", []int{100, 400, 700})
	p.deliver = func(r record) {
		if r.rate < inForce[r.number] || r.rate > rate {
			t.Errorf("record %d was looked up under rate %d; rate %d was in force", r.number, r.rate, inForce[r.number])
		}
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.check(t)
}

// plain returns a pipeline of good records in which nothing fails.
func plain(records int) *pipeline {
	p := &pipeline{
		input:   make([]string, records),
		fault:   func(string, int) error { return nil },
		lookup:  func(context.Context, record) error { return nil },
		deliver: func(record) {},
	}
	for i := range p.input {
		p.input[i] = strconv.Itoa(i)
	}
	return p
}

// failAt makes the stage fail at each of the given records, or at the first record after each.
func failAt(stage string, at []int) func(string, int) error {
	return func(s string, number int) error {
		if s != stage || len(at) == 0 || number < at[0] {
			return nil
		}
		at = at[1:]
		return errInjected
	}
}

func (p *pipeline) check(t *testing.T) {
	t.Helper()
	read, sum := p.read.Load(), p.delivered.Load()+p.rejected.Load()+p.undelivered.Load()
	if read != sum {
		t.Errorf("read %d: delivered %d, rejected %d, undelivered %d",
			read, p.delivered.Load(), p.rejected.Load(), p.undelivered.Load())
	}
}
