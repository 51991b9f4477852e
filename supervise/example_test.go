package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/supervise"
)

// A feed loses its connection twice and is restarted. When it has received everything, the program ends.
func ExampleSupervisor() {
	connections := 0
	feed := func(context.Context) error {
		if connections++; connections < 3 {
			return errors.New("connection lost")
		}
		return nil
	}
	app := supervise.New([]supervise.Child{
		{Name: "feed", Run: feed, Restart: supervise.RestartTransient},
	}, supervise.WithName("app"), supervise.WithBackoff(time.Millisecond, time.Millisecond))
	fmt.Println("ended:", app.Run(context.Background()))
	for {
		e, err := app.Events().TryRecv()
		if err != nil {
			return
		}
		if e.Kind != supervise.KindRestarting { // its text has the wait, which is random
			fmt.Println(e)
		}
	}
	// Output:
	// ended: <nil>
	// app: feed started
	// app: feed failed: connection lost
	// app: feed started
	// app: feed failed: connection lost
	// app: feed started
	// app: feed ended
}

// The cache depends on the database: when the database fails, both are restarted. The database always fails, so the
// supervisor gives up.
func ExampleWithStrategy() {
	app := supervise.New([]supervise.Child{
		{Name: "db", Run: func(ctx context.Context) error { return errors.New("disk is full") }},
		{Name: "cache", Run: coir.WaitCancel},
	},
		supervise.WithName("app"),
		supervise.WithStrategy(supervise.StrategyRestForOne),
		supervise.WithIntensity(2, time.Minute),
		supervise.WithBackoff(time.Millisecond, 2*time.Millisecond))
	fmt.Println(app.Run(context.Background()))
	// Output:
	// supervise: app gave up after 2 restarts within 1m0s: db failed: disk is full
}

// A supervisor can be the child of another one.
func ExampleSupervisor_Run() {
	tries := 0
	storage := supervise.New([]supervise.Child{{Name: "disk", Run: func(ctx context.Context) error {
		if tries++; tries <= 2 {
			return errors.New("not ready")
		}
		return coir.WaitCancel(ctx)
	}}}, supervise.WithName("storage"), supervise.WithIntensity(0, time.Minute)) // gives up at the first failure
	app := supervise.New([]supervise.Child{{Name: "storage", Run: storage.Run}}, supervise.WithName("app"),
		supervise.WithBackoff(0, 0))

	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("app", app.Run)
		for e, err := range app.Events().All(ctx) {
			if err != nil {
				return err
			}
			if fmt.Println(e); e.Restarts == 2 {
				break
			}
		}
		n.Cancel(nil)
		return nil
	})
	// Output:
	// app: storage started
	// app: storage failed: supervise: storage gave up after 0 restarts within 1m0s: disk failed: not ready
	// app: storage restarting in 0s, restart 1
	// app: storage started
	// app: storage failed: supervise: storage gave up after 0 restarts within 1m0s: disk failed: not ready
	// app: storage restarting in 0s, restart 2
}
