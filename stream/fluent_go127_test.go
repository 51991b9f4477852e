//go:build go1.27

package stream_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/coir-go/coir/stream"
)

// From Go 1.27 on: a pipeline as a chain of methods.
func ExampleStream_Map() {
	err := stream.Lines(strings.NewReader("3\n1\n\n2\n")).
		Filter(func(line string) bool { return line != "" }).
		Map(func(line string) int { return int(line[0] - '0') }).
		Parallel(4, func(_ context.Context, v int) (int, error) { return v * v, nil }).
		Take(2).
		ForEach(context.Background(), func(_ context.Context, v int) error {
			fmt.Println(v)
			return nil
		})
	fmt.Println(err)
	// Output:
	// 9
	// 1
	// <nil>
}
