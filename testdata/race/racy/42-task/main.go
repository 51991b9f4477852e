// The calls of Map are not ordered with each other, even if only one runs at a time.
package main

import (
	"context"
	"slices"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Map(context.Background(), 2, slices.Values([]int{1, 2, 3}), func(context.Context, int) (int, error) {
		x++
		return x, nil
	})
}
