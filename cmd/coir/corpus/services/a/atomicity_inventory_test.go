//go:build corpus

package a

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// An inventory keeps one record for each product, with its stock and its price, and is served over TLS. The handler
// of a sale and the handler of a new price each read the whole record, change their own field and write the whole
// record back. If one writes between the read and the write of the other, its change is lost.
//
// Class: atomicity
// Expect: fail
type inventoryStore struct {
	mu      sync.Mutex
	records map[string]inventoryRecord
}

type inventoryRecord struct {
	Stock, Price int
}

func (s *inventoryStore) get(id string) inventoryRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[id]
}

func (s *inventoryStore) put(id string, rec inventoryRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[id] = rec
}

// change reads, changes and writes in three steps.
func (s *inventoryStore) change(id string, f func(*inventoryRecord)) {
	rec := s.get(id)
	f(&rec)
	s.put(id, rec)
}

// update reads, changes and writes in one step.
func (s *inventoryStore) update(id string, f func(*inventoryRecord)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.records[id]
	f(&rec)
	s.records[id] = rec
}

type inventoryEdit func(s *inventoryStore, id string, f func(*inventoryRecord))

func inventoryHandler(s *inventoryStore, edit inventoryEdit) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /product/{id}", func(w http.ResponseWriter, r *http.Request) {
		rec := s.get(r.PathValue("id"))
		fmt.Fprintf(w, "stock %d price %d", rec.Stock, rec.Price)
	})
	number := func(f func(rec *inventoryRecord, n int)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.PathValue("n"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			edit(s, r.PathValue("id"), func(rec *inventoryRecord) { f(rec, n) })
			io.WriteString(w, "ok")
		}
	}
	mux.Handle("POST /product/{id}/sale/{n}", number(func(rec *inventoryRecord, n int) { rec.Stock -= n }))
	mux.Handle("POST /product/{id}/price/{n}", number(func(rec *inventoryRecord, n int) { rec.Price = n }))
	return mux
}

func inventoryCall(t *testing.T, c *http.Client, method, url string) string {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

func inventoryScene(t *testing.T, edit inventoryEdit) {
	s := &inventoryStore{records: map[string]inventoryRecord{"lamp": {Stock: 10, Price: 100}}}
	srv := httptest.NewTLSServer(inventoryHandler(s, edit))
	defer srv.Close()
	var wg sync.WaitGroup
	for _, path := range []string{"/product/lamp/sale/2", "/product/lamp/price/120"} {
		wg.Go(func() {
			if got := inventoryCall(t, srv.Client(), "POST", srv.URL+path); got != "ok" {
				t.Errorf("%s: %s", path, got)
			}
		})
	}
	wg.Wait()
	got := inventoryCall(t, srv.Client(), "GET", srv.URL+"/product/lamp")
	if want := "stock 8 price 120"; got != want {
		t.Errorf("the lamp is %q, want %q", got, want)
	}
}

func TestBugInventory(t *testing.T) { inventoryScene(t, (*inventoryStore).change) }

func TestFixedInventory(t *testing.T) { inventoryScene(t, (*inventoryStore).update) }
