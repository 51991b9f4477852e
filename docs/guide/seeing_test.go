package guide_test

// The code of seeing.md, but for the metrics, whose modules have it.

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

func named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pprof.Do(r.Context(), pprof.Labels("handler", r.Pattern), func(ctx context.Context) {
			h.ServeHTTP(w, r.WithContext(ctx))
		})
	})
}

// A snapshot names the goroutine of a handler that waits.
func TestNamed(t *testing.T) {
	orders := coir.NewChan[string](0, coir.WithName("orders"))
	mux := http.NewServeMux()
	mux.Handle("POST /order", named(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := orders.Recv(r.Context()); err != nil {
			t.Error(err)
		}
	})))
	done := make(chan struct{})
	go func() {
		defer close(done)
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/order", nil))
	}()
	rt := coir.NewRuntime()
	is := func(f snapshot.Fiber) bool { return strings.HasPrefix(f.Name, "handler=POST /order[") }
	for begin := time.Now(); !slices.ContainsFunc(rt.Snapshot(snapshot.Options{}).Fibers, is); runtime.Gosched() {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the snapshot has %+v", rt.Snapshot(snapshot.Options{}).Fibers)
		}
	}
	if err := orders.Send(t.Context(), "an order"); err != nil {
		t.Error(err)
	}
	<-done
}

// inspected is the beginning of a main function.
func inspected() {
	go func() {
		if err := inspect.Serve(context.Background(), "localhost:7117"); err != nil {
			log.Print(err)
		}
	}()
}

// labelled and recorded configure the default runtime at the beginning of a main function.
func labelled() error {
	if err := coir.Configure(coir.WithLabels()); err != nil {
		return err
	}
	return nil
}

func recorded(mux *http.ServeMux) error {
	recorder := inspect.NewRecorder(0)
	if err := coir.Configure(coir.WithObserver(recorder), coir.WithLabels()); err != nil {
		return err
	}
	mux.Handle("/debug/coir/", inspect.Handler(inspect.WithRecorder(recorder)))
	return nil
}

func watched(ctx context.Context) error {
	flight := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 10 * time.Second})
	if err := flight.Start(); err != nil {
		return err
	}
	defer flight.Stop()
	go func() {
		if err := inspect.Watch(ctx, inspect.WithDir("/var/tmp/shop"), inspect.WithFlightRecorder(flight)); err != nil {
			log.Print(err)
		}
	}()
	<-ctx.Done()
	return nil
}

func explained(rt *coir.Runtime) {
	earlier := rt.Snapshot(snapshot.Options{})
	time.Sleep(time.Second)
	for _, e := range snapshot.Explain(earlier, rt.Snapshot(snapshot.Options{})) {
		slog.Warn(e.Text, "kind", e.Kind, "certain", e.Certain)
	}
}

// These functions are only compiled: inspected listens on a port that may be taken, labelled and recorded configure a
// runtime that the other tests use, watched writes to a directory of the system, and explained sleeps.
var _ = []any{inspected, labelled, recorded, watched, explained}

func TestSeeingUnderAPath(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/debug/coir/", http.StripPrefix("/debug/coir", inspect.Handler()))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/debug/coir/", nil))
	if answer.Code != http.StatusOK {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}
