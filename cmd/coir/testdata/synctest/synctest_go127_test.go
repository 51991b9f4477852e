//go:build go1.27

package synctest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// The network of NewTestServer is in memory by itself.
func TestNewTestServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := httptest.NewTestServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(w, "ok")
		}))
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(text) != "ok" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}
