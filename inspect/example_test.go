package inspect_test

import (
	"context"
	"expvar"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/trace"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// shop stands for a runtime. It always returns the same snapshot, so that the examples always have the same output.
type shop struct{}

func (shop) Snapshot(snapshot.Options) *snapshot.Snapshot {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	return &snapshot.Snapshot{
		Taken: now, Took: time.Millisecond,
		Process:   snapshot.Process{PID: 7, Program: "shop", Go: "go1.26", Coir: "v1.0.0", Live: 3, Spawned: 3},
		Nurseries: []snapshot.Nursery{{ID: 1, Owner: 1, Children: 2}},
		Fibers: []snapshot.Fiber{
			{ID: 1, Name: "main", Nursery: 1, Main: true, State: snapshot.StateWaiting, Since: now.Add(-time.Minute),
				Wait: []snapshot.Wait{{Kind: snapshot.WaitJoin, Text: "for its 2 children"}}},
			{ID: 2, Name: "feed[0]", Nursery: 1, State: snapshot.StateWaiting, Since: now.Add(-6 * time.Second),
				Spawned: "shop/main.go:15",
				Wait:    []snapshot.Wait{{Kind: snapshot.WaitSend, Text: "to send to orders (full, 64 of 64)", Object: 9}}},
			{ID: 3, Name: "feed[1]", Nursery: 1, State: snapshot.StateWaiting, Since: now.Add(-9 * time.Second),
				Spawned: "shop/main.go:15",
				Wait:    []snapshot.Wait{{Kind: snapshot.WaitSend, Text: "to send to orders (full, 64 of 64)", Object: 9}}},
		},
		Objects: []snapshot.Object{{ID: 9, Kind: "channel", Name: "orders", Len: 64, Cap: 64, Senders: 2,
			Oldest: now.Add(-9 * time.Second)}},
	}
}

// A program serves the page, and the text for curl, to this machine only.
func ExampleServe() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		if err := inspect.Serve(ctx, "localhost:7117"); err != nil {
			log.Print(err)
		}
	}()
	// The program.
}

// A program that has a server mounts the handler there. Without an option it shows the default runtime.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("/debug/coir/", inspect.Handler(inspect.WithSource(shop{})))
	server := httptest.NewServer(mux)
	defer server.Close()

	r, err := http.Get(server.URL + "/debug/coir/text")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, tree, _ := strings.Cut(string(text), "Nurseries and fibers\n")
	fmt.Print(tree)
	// Output:
	//   run 1, 2 fibers
	//     main #1: waits for its 2 children, for 1m
	//     2 x feed[...]: wait to send to orders (full, 64 of 64), the oldest #3 for 9s; from shop/main.go:15
	//
	// What they wait for
	//   channel orders #9: 64 of 64, 2 wait to send, the oldest for 9s
}

// A program that uses package expvar publishes the numbers there.
func ExampleVar() {
	expvar.Publish("coir", inspect.Var(shop{}))

	fmt.Println(expvar.Get("coir"))
	// Output:
	// {"fibers":{"waiting":3},"waits":{"join":1,"send":2},"oldest_wait_seconds":60}
}

// A tool writes a snapshot as text. With an earlier snapshot of the same runtime it says what is wrong too.
func ExampleWriteText() {
	later := shop{}.Snapshot(snapshot.Options{})
	if err := inspect.WriteText(os.Stdout, nil, later); err != nil {
		fmt.Println(err)
	}
	// Output:
	// shop, process 7: coir v1.0.0, go1.26
	// taken at 2026-11-18 12:00:00.000 UTC, in 1ms
	// 3 fibers, 3 spawned since the start: 3 waiting
	//
	// Nurseries and fibers
	//   run 1, 2 fibers
	//     main #1: waits for its 2 children, for 1m
	//     2 x feed[...]: wait to send to orders (full, 64 of 64), the oldest #3 for 9s; from shop/main.go:15
	//
	// What they wait for
	//   channel orders #9: 64 of 64, 2 wait to send, the oldest for 9s
}

// A tool reads a dump that was saved, and makes a page of it that needs no server.
func ExampleRead() {
	w := httptest.NewRecorder()
	inspect.Handler(inspect.WithSource(shop{})).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/dump", nil))

	d, err := inspect.Read(w.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Snapshot.Fibers[2].Name, "waits", d.Snapshot.Fibers[2].Wait[0].Text)
	var page strings.Builder
	if err := d.WritePage(&page); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.HasPrefix(page.String(), "<!DOCTYPE html>"))
	// Output:
	// feed[1] waits to send to orders (full, 64 of 64)
	// true
}

// A recorder keeps the last events of fibers. The file can be opened at ui.perfetto.dev; a Handler with WithRecorder
// serves the same as trace.json.
func ExampleRecorder() {
	recorder := inspect.NewRecorder(0)
	rt := coir.NewRuntime(coir.WithObserver(recorder)) // or coir.Configure, for the default runtime
	defer rt.Close(context.Background())
	_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		orders := coir.NewChan[int](0, coir.WithName("orders"))
		n.Go("shop", func(ctx context.Context) error { return orders.Send(ctx, 1) })
		n.Go("packer", func(ctx context.Context) error {
			_, err := orders.Recv(ctx)
			return err
		})
		return nil
	})
	var file strings.Builder
	if err := recorder.WriteTrace(&file, 0); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(file.String(), `"name":"waits for its children to end"`))
	// Output:
	// true
}

// A program watches itself. When something is wrong, it logs the explanation, and writes a dump and the content of its
// flight recorder to files.
func ExampleWatch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	flight := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 10 * time.Second})
	if err := flight.Start(); err != nil {
		log.Print(err)
	}
	defer flight.Stop()
	go func() {
		err := inspect.Watch(ctx, inspect.WithDir("/var/tmp/shop"), inspect.WithFlightRecorder(flight))
		if err != nil {
			log.Print(err)
		}
	}()
	// The program.
}
