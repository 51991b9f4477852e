// Sieve finds primes with a chain of fibers, one for each prime found so far. Each fiber passes on the numbers that its
// prime does not divide.
//
// The chain has no natural end, because there are infinitely many numbers. It is stopped from its exit. When primes has
// enough, it closes the last reader. The filter before it learns at its next send that the reader is closed, ends, and
// closes its own reader, and so on up to the source. Nothing is cancelled, and no fiber is left.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coir-go/coir"
)

const ahead = 1 // how many numbers a filter may be ahead of the next one; a larger number may waste work

func main() {
	if err := run(os.Stdout, 1000); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, count int) error {
	found, err := primes(context.Background(), count)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d primes, the last is %d\n", len(found), found[len(found)-1])
	return nil
}

// primes returns the first count primes. When it returns, every fiber of the chain has ended.
func primes(ctx context.Context, count int) ([]int, error) {
	var found []int
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		numbers := source(n)
		defer func() { numbers.Close() }() // closing the last reader stops the whole chain
		for len(found) < count {
			prime, err := numbers.Recv(ctx)
			if err != nil {
				return err
			}
			found = append(found, prime)
			numbers = filter(n, numbers, prime)
		}
		return nil
	})
	return found, err
}

// source sends the numbers from 2 on until the reader is closed.
func source(n *coir.Nursery) *coir.Reader[int] {
	w, r := coir.Pipe[int](ahead)
	n.Go("source", func(ctx context.Context) error {
		defer w.Close()
		for number := 2; ; number++ {
			if err := w.Send(ctx, number); err != nil {
				return unlessClosed(err)
			}
		}
	})
	return r
}

// filter passes on the numbers that prime does not divide. It owns the reader, and closes it.
func filter(n *coir.Nursery, numbers *coir.Reader[int], prime int) *coir.Reader[int] {
	w, r := coir.Pipe[int](ahead)
	n.Go("filter", func(ctx context.Context) error {
		defer numbers.Close()
		defer w.Close()
		for number, err := range numbers.All(ctx) {
			if err != nil {
				return err
			}
			if number%prime == 0 {
				continue
			}
			if err := w.Send(ctx, number); err != nil {
				return unlessClosed(err)
			}
		}
		return ctx.Err()
	}, coir.WithIndex(prime))
	return r
}

// unlessClosed drops the error of a send to a closed reader, because that is how the chain ends.
func unlessClosed(err error) error {
	if errors.Is(err, coir.ErrClosed) {
		return nil
	}
	return err
}
