// A run of a child is ordered before its next run, and all runs before the return of Run.
package main

import (
	"context"
	"errors"

	"github.com/coir-go/coir/supervise"
)

var x int

func main() {
	app := supervise.New([]supervise.Child{{
		Name: "child", Restart: supervise.RestartTransient,
		Run: func(context.Context) error {
			if x++; x < 3 {
				return errors.New("once more")
			}
			return nil
		},
	}}, supervise.WithName("app"), supervise.WithBackoff(0, 0))
	app.Run(context.Background())
	x++
}
