// Package ranges has loops over iterators of coir, with and without their errors.
package ranges

import (
	"context"
	"iter"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/stream"
)

func wrong(ctx context.Context, c *coir.Chan[int], o *coir.Ordered[int], p *coir.Reader[int]) (sum int) {
	for v := range c.All(ctx) { // want `the loop drops the error of c.All: the v that comes with an error is a zero value that nobody has sent; write for v, err := range, and check err first`
		sum += v
	}
	for v, _ := range o.All(ctx) { // want `the loop drops the error of o.All`
		sum += v
	}
	var last int
	for last = range p.All(ctx) { // want `the loop drops the error of p.All: the last that comes`
	}
	return sum + last
}

type holder struct {
	sub   *pubsub.Subscription[string]
	lines stream.Stream[string]
	all   interface {
		All(ctx context.Context) iter.Seq2[int, error]
	}
}

func fields(ctx context.Context, h *holder) (text string) {
	for line := range h.sub.All(ctx) { // want `the loop drops the error of h.sub.All`
		text += line
	}
	for line := range stream.FromSlice([]string{"a"}).All(ctx) { // want `the loop drops the error of stream.FromSlice`
		text += line
	}
	return text
}

// embedded has the method of a channel.
type embedded struct{ *coir.Chan[int] }

func promoted[T any](ctx context.Context, e embedded, c *coir.Chan[T]) (all []T) {
	for v := range e.All(ctx) { // want `the loop drops the error of e.All`
		_ = v
	}
	for v := range c.All(ctx) { // want `the loop drops the error of c.All`
		all = append(all, v)
	}
	return all
}

func right(ctx context.Context, c *coir.Chan[int], o *coir.Ordered[int]) (n int, err error) {
	for v, err := range c.All(ctx) {
		if err != nil {
			return n, err
		}
		n += v
	}
	for _, err = range o.All(ctx) {
	}
	for range o.All(ctx) { // no value is used
		n++
	}
	for _ = range o.All(ctx) {
	}
	return n, err
}

// Iterators of others are not looked at.
func others(ctx context.Context, h *holder, c *coir.Chan[int], m map[int]error) (n int) {
	for v := range h.all.All(ctx) {
		n += v
	}
	for v := range pairs() {
		n += v
	}
	seq := c.All(ctx)
	for v := range seq {
		n += v
	}
	for v := range m {
		n += v
	}
	return n
}

func pairs() iter.Seq2[int, error] { return func(func(int, error) bool) {} }
