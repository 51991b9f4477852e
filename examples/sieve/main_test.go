package main

// The primes are correct, and every fiber of the chain ends by itself.

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
)

func TestItFindsTheFirstThousand(t *testing.T) {
	found, err := primes(t.Context(), 1000)
	if err != nil || len(found) != 1000 {
		t.Fatalf("%d primes, %v", len(found), err)
	}
	number := 2
	for i, prime := range found {
		for !isPrime(number) {
			number++
		}
		if prime != number {
			t.Fatalf("prime %d is %d, not %d", i, prime, number)
		}
		number++
	}
}

func TestItSaysHowManyItFound(t *testing.T) {
	var out strings.Builder
	if err := run(&out, 25); err != nil {
		t.Fatal(err)
	}
	if want := "25 primes, the last is 97\n"; out.String() != want {
		t.Fatalf("it printed %q, not %q", out.String(), want)
	}
}

func isPrime(number int) bool {
	for d := 2; d*d <= number; d++ {
		if number%d == 0 {
			return false
		}
	}
	return true
}

// The chain is stopped from its exit: each fiber learns that its reader is closed, and returns nil. None is cancelled.
//
// Spec: CH-46 (the last Close of a side tells the other)
func TestEveryFiberEndsByItself(t *testing.T) {
	const count = 100
	var ends endings
	rt := coir.NewRuntime(coir.WithObserver(&ends))
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		_, err := primes(ctx, count)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const fibers = 1 + 1 + count // the caller, the source and the filters
	started, ended, failed := ends.started.Load(), ends.ended.Load(), ends.failed.Load()
	if started != fibers || ended != fibers || failed != 0 {
		t.Errorf("of %d fibers %d were started, %d ended, %d of them with an error", fibers, started, ended, failed)
	}
}

// A cancelled chain ends too, and returns the reason.
func TestItCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := primes(ctx, 1000); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled sieve returned %v", err)
	}
}

// endings counts the fibers that started, ended and failed.
type endings struct{ started, ended, failed atomic.Int64 }

func (e *endings) FiberStarted(*coir.Fiber) { e.started.Add(1) }
func (e *endings) FiberEnded(_ *coir.Fiber, err error) {
	e.ended.Add(1)
	if err != nil {
		e.failed.Add(1)
	}
}
func (e *endings) FiberParked(*coir.Fiber)     {}
func (e *endings) FiberReady(_, _ *coir.Fiber) {}
func (e *endings) FiberStalled(coir.Stall)     {}
