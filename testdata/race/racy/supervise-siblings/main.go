// Nothing orders two children of a supervisor.
package main

import (
	"context"

	"github.com/coir-go/coir/supervise"
)

var x int

func main() {
	write := func(context.Context) error { x++; return nil }
	app := supervise.New([]supervise.Child{
		{Name: "a", Run: write, Restart: supervise.RestartTemporary},
		{Name: "b", Run: write, Restart: supervise.RestartTemporary},
	}, supervise.WithName("app"))
	app.Run(context.Background())
}
