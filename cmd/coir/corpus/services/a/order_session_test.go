//go:build corpus

package a

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A site gives each visitor a session, and a new session id at login, so that a person who knew the old id cannot use
// the session of the user. The login first writes the user into the session and then changes the id. A request with the
// old id that comes in between is answered as the user.
//
// Class: order
// Expect: fail
type sessionSite struct {
	rotate func(id, user string) string

	mu    sync.Mutex
	next  int
	users map[string]string // by session id; the empty string stands for a guest
}

func (s *sessionSite) create() string {
	s.next++
	id := fmt.Sprintf("s%d", s.next)
	s.users[id] = ""
	return id
}

func (s *sessionSite) setUser(id, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[id] = user
}

func (s *sessionSite) rename(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	renamed := s.create()
	s.users[renamed] = s.users[id]
	delete(s.users, id)
	return renamed
}

// loginThenRename logs in and changes the id in two steps.
func (s *sessionSite) loginThenRename(id, user string) string {
	s.setUser(id, user)
	return s.rename(id)
}

// renameThenLogin logs in under the new id only.
func (s *sessionSite) renameThenLogin(id, user string) string {
	renamed := s.rename(id)
	s.setUser(renamed, user)
	return renamed
}

func (s *sessionSite) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/visit", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		io.WriteString(w, s.create())
	})
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, s.rotate(r.Header.Get("Session"), r.URL.Query().Get("user")))
	})
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, "user=%s", s.users[r.Header.Get("Session")])
	})
	mux.HandleFunc("/logout", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.users, r.Header.Get("Session"))
	})
	return mux
}

func sessionScene(t *testing.T, s *sessionSite) {
	srv := httptest.NewServer(s.handler())
	defer srv.Close()
	get := func(path, session string) string {
		req, err := http.NewRequest(http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Error(err)
			return ""
		}
		req.Header.Set("Session", session)
		resp, err := srv.Client().Do(req)
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
	planted := get("/visit", "")
	var wg sync.WaitGroup
	wg.Go(func() {
		id := get("/login?user=alice", planted)
		if got := get("/whoami", id); got != "user=alice" {
			t.Errorf("alice is %s after the login", got)
		}
		get("/logout", id)
	})
	wg.Go(func() {
		if got := get("/whoami", planted); got != "user=" {
			t.Errorf("the session id planted before the login is %s", got)
		}
	})
	wg.Wait()
}

func TestBugSession(t *testing.T) {
	s := &sessionSite{users: map[string]string{}}
	s.rotate = s.loginThenRename
	sessionScene(t, s)
}

func TestFixedSession(t *testing.T) {
	s := &sessionSite{users: map[string]string{}}
	s.rotate = s.renameThenLogin
	sessionScene(t, s)
}
