//go:build corpus

package b

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// A board lets clients wait over HTTP/2 for a note that is newer than the last they know. The handler looks at the
// number of notes, and if there is none to send, it enters itself in the list of those to wake. A note that is posted
// between the look and the entry does not wake the client, which waits for ever.
//
// Class: lost
// Expect: deadlock
type pollBoard struct {
	wait func(b *pollBoard, known int) <-chan struct{}

	mu      sync.Mutex
	notes   []string
	waiters []chan struct{}
}

func (b *pollBoard) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.notes)
}

// enter returns a channel that the next post closes. The lock is held.
func (b *pollBoard) enter() <-chan struct{} {
	ch := make(chan struct{})
	b.waiters = append(b.waiters, ch)
	return ch
}

// pollWait returns a channel to wait for, or nil if there is a note to send.
func pollWait(b *pollBoard, known int) <-chan struct{} {
	if b.count() > known {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enter()
}

func pollWaitFixed(b *pollBoard, known int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.notes) > known {
		return nil
	}
	return b.enter()
}

func (b *pollBoard) post(note string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, note)
	for _, ch := range b.waiters {
		close(ch)
	}
	b.waiters = nil
}

func (b *pollBoard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		note, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.post(string(note))
		return
	}
	known, err := strconv.Atoi(r.FormValue("known"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if ch := b.wait(b, known); ch != nil {
		select {
		case <-ch:
		case <-r.Context().Done():
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprint(w, len(b.notes))
}

func pollRun(t *testing.T, wait func(b *pollBoard, known int) <-chan struct{}) {
	srv := httptest.NewUnstartedServer(&pollBoard{wait: wait})
	srv.EnableHTTP2 = true
	srv.StartTLS()
	var wg sync.WaitGroup
	wg.Go(func() {
		resp, err := srv.Client().Get(srv.URL + "/?known=0")
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if n, err := io.ReadAll(resp.Body); string(n) != "1" {
			t.Errorf("answer %q, %v", n, err)
		}
		if resp.ProtoMajor != 2 {
			t.Errorf("answer over %s", resp.Proto)
		}
	})
	resp, err := srv.Client().Post(srv.URL, "text/plain", http.NoBody)
	if err != nil {
		t.Error(err)
	} else {
		resp.Body.Close()
	}
	wg.Wait()
	srv.Close()
}

func TestBugLongPollWakeup(t *testing.T) {
	pollRun(t, pollWait)
}

func TestFixedLongPollWakeup(t *testing.T) {
	pollRun(t, pollWaitFixed)
}
