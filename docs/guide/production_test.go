package guide_test

// The code of production.md.

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
)

func observe(dir string) error {
	if err := coir.Configure(coir.WithLabels()); err != nil { // profiles and crashes name fibers
		return err
	}
	coir.ListObjects(true) // snapshots also show named channels, made from now on, for which no fiber waits
	go func() {
		if err := inspect.Serve(context.Background(), "localhost:7117"); err != nil {
			slog.Error("inspector", "error", err)
		}
	}()
	go func() {
		if err := inspect.Watch(context.Background(), inspect.WithDir(dir)); err != nil {
			slog.Error("watch", "error", err)
		}
	}()
	return nil
}

var _ = observe // it would configure the runtime of all tests

func operatorsOnly(password string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(given), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "operators only", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func mount(mux *http.ServeMux, password string) {
	inspector := inspect.Handler(inspect.WithHost("shop.example.com"))
	mux.Handle("/debug/coir/", operatorsOnly(password, inspector))
}

func TestOperatorsOnly(t *testing.T) {
	mux := http.NewServeMux()
	mount(mux, "secret")
	for password, want := range map[string]int{"": http.StatusUnauthorized, "guess": http.StatusUnauthorized, "secret": http.StatusOK} {
		r := httptest.NewRequest(http.MethodGet, "https://shop.example.com/debug/coir/text", nil)
		if password != "" {
			r.SetBasicAuth("operator", password)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with the password %q: %d %s", password, w.Code, w.Body)
		}
	}
}

func limited(ctx context.Context, queue *coir.Chan[string], job string) error {
	ctx, cancel := coir.WithTimeout(ctx, 2*time.Second) // of all that this request does
	defer cancel()
	return queue.SendTimeout(ctx, job, 50*time.Millisecond) // a full queue refuses, and does not grow
}

func TestLimited(t *testing.T) {
	queue := coir.NewChan[string](1, coir.WithName("jobs"))
	if err := limited(t.Context(), queue, "a job"); err != nil || queue.Len() != 1 {
		t.Errorf("%d jobs, %v", queue.Len(), err)
	}
}
