//go:build corpus

package a

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A profile service keeps profiles in a database and a cache in front of it. A GET that misses the cache reads the
// database and fills the cache. A PUT writes the database and then drops the entry of the cache. A GET that reads
// the old profile before the PUT writes, and fills the cache after the PUT has dropped the entry, leaves the old
// profile in the cache for ever.
//
// Class: order
// Expect: fail
type staleProfiles struct {
	guarded bool // fill the cache only if nothing was dropped since the read of the database began

	dbMu sync.Mutex
	db   map[string]string

	mu    sync.Mutex
	cache map[string]string
	drops map[string]int
}

func (s *staleProfiles) read(id string) string {
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	return s.db[id]
}

func (s *staleProfiles) write(id, text string) {
	s.dbMu.Lock()
	defer s.dbMu.Unlock()
	s.db[id] = text
}

// lookup returns the entry of the cache, and how often the entry was dropped up to now.
func (s *staleProfiles) lookup(id string) (text string, ok bool, drops int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.cache[id]
	return text, ok, s.drops[id]
}

func (s *staleProfiles) fill(id, text string, drops int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guarded && s.drops[id] != drops {
		return
	}
	s.cache[id] = text
}

func (s *staleProfiles) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cache, id)
	s.drops[id]++
}

func (s *staleProfiles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Path
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.write(id, string(body))
		s.drop(id)
		return
	}
	text, ok, drops := s.lookup(id)
	if !ok {
		text = s.read(id)
		s.fill(id, text, drops)
	}
	io.WriteString(w, text)
}

func staleCall(t *testing.T, c *http.Client, method, url, body string) string {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
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
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(answer)
}

func staleScene(t *testing.T, guarded bool) {
	s := &staleProfiles{
		guarded: guarded, db: map[string]string{"/ann": "lives in Rome"},
		cache: map[string]string{}, drops: map[string]int{},
	}
	srv := httptest.NewServer(s)
	defer srv.Close()
	var wg sync.WaitGroup
	wg.Go(func() { staleCall(t, srv.Client(), http.MethodGet, srv.URL+"/ann", "") })
	wg.Go(func() { staleCall(t, srv.Client(), http.MethodPut, srv.URL+"/ann", "lives in Oslo") })
	wg.Wait()
	if got := staleCall(t, srv.Client(), http.MethodGet, srv.URL+"/ann", ""); got != "lives in Oslo" {
		t.Errorf("after the update, ann %s", got)
	}
}

func TestBugStaleFill(t *testing.T) { staleScene(t, false) }

func TestFixedStaleFill(t *testing.T) { staleScene(t, true) }
