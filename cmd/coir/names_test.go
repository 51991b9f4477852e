package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

const named = `package p

func f(from, to *account, jobs []chan int) {
	from.mu.Lock()
	to.mu.Lock(); from.mu.Lock()
	(&to.mu).RLock()
	c.Wait()
	jobs[0] <- <-results
	for v := range results {
	}
	close(done)
	select {
	case <-time.After(time.Second):
	case s.out <- 1:
	case v, ok := <-ctx.Done():
	case s.log <- 2:
	}
	func() chan int { return nil }() <- 1
	atomic.AddInt64(&s.n, 1)
	s.closed.Store(true)
	wg.Go(func() { wg.Wait() })
}
`

// An object is called by the expression at the line of its operation, if there is only one that fits.
func TestExpressionsOfOperations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(named), 0o600); err != nil {
		t.Fatal(err)
	}
	f := readSource(path)
	for _, c := range []struct {
		line, op  int
		via, want string
	}{
		{4, coir.OpLock, "sync.(*Mutex).Lock", "from.mu"},
		{4, coir.OpUnlock, "sync.(*Mutex).Unlock", ""}, // deferred, and run there
		{4, coir.OpLock, "io.(*pipe).write", ""},       // another lock
		{5, coir.OpLock, "sync.(*Mutex).Lock", ""},
		{6, coir.OpRLock, "sync.(*RWMutex).RLock", "to.mu"},
		{7, coir.OpCondWait, "sync.(*Cond).Wait", "c"},
		{7, coir.OpUnlock, "sync.(*Cond).Wait", ""},
		{8, coir.OpSend, "", "jobs[0]"},
		{8, coir.OpRecv, "", "results"},
		{8, coir.OpSend, "os/signal.Stop", ""},
		{9, coir.OpRecv, "", "results"},
		{11, coir.OpClose, "", "done"},
		{18, coir.OpSend, "", ""},
		{19, coir.OpAtomicAdd, "sync/atomic.AddInt64", "s.n"},
		{20, coir.OpAtomicStore, "sync/atomic.(*Bool).Store", "s.closed"},
		{21, coir.OpAdd, "sync.(*WaitGroup).Go", "wg"},
		{21, coir.OpWait, "sync.(*WaitGroup).Wait", "wg"},
		{99, coir.OpLock, "sync.(*Mutex).Lock", ""},
	} {
		if got := f.nameOf(c.line, c.op, c.via); got.text != c.want {
			t.Errorf("line %d, %s: %q, want %q", c.line, coir.Ops[c.op].Name, got.text, c.want)
		}
	}
	for i, want := range []string{"s.out", "s.log", "ctx.Done()", "time.After(time.Second)", ""} {
		if got := f.caseOf(12, &selectCase{n: i, send: i < 2}); got.text != want {
			t.Errorf("case %d: %q, want %q", i, got.text, want)
		}
	}
	if got := f.caseOf(12, &selectCase{n: 0}); got.text != "" { // the source is not that of the test
		t.Error(got.text)
	}
}

// An expression is the name of an object, with a number if that is not clear.
func TestNamesOfObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(named), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := func() (all []step) {
		for i, s := range []step{
			{op: coir.OpClose, object: 40, place: place{line: 11}},
			{op: coir.OpLock, object: 60, place: place{line: 4}, via: "sync.(*Mutex).Lock"},
			{op: coir.OpRLock, object: 70, place: place{line: 6}, via: "sync.(*RWMutex).RLock"},
			{op: coir.OpLock, object: 61, place: place{line: 4}, via: "sync.(*Mutex).Lock"},
			{op: coir.OpUnlock, object: 61, place: place{line: 5}, via: "sync.(*Mutex).Unlock"},
			{op: coir.OpWait, object: 50, place: place{line: 21}, via: "sync.(*WaitGroup).Wait"},
			{op: coir.OpDone, object: 50},
			{op: coir.OpSend, object: 41, place: place{line: 8}},
			{op: coir.OpRecv, object: 41, place: place{line: 8}},
			{op: coir.OpLock, object: 62, place: place{line: 5}, via: "sync.(*Mutex).Lock"},
		} {
			s.n, s.g, s.done = i+1, 2, i+1
			if s.place.line > 0 {
				s.place.file = path
			}
			all = append(all, s)
		}
		return all
	}
	words := func(built time.Time) string {
		of := &tested{built: built}
		r := &record{tested: of, known: steps(), actors: map[int]*actor{2: {id: 2}}, failure: &failure{}, steps: 8}
		r.twin = &twin{record: &record{tested: of, known: steps()[1:2], actors: map[int]*actor{}}}
		r.name()
		var all []string
		for _, s := range append(r.known, r.twin.known...) {
			all = append(all, r.words(s))
		}
		return strings.Join(all, "; ")
	}
	if got, want := words(time.Now().Add(time.Hour)), "close done; lock from.mu#1; rlock to.mu; lock from.mu#2; "+
		"unlock from.mu#2; wait wg; done wg; send jobs[0] (chan#1); recv results (chan#1); lock mutex#1; "+
		"lock from.mu#1"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if got, want := words(time.Time{}), "close chan#1; lock mutex#1; rlock rwmutex#1; lock mutex#2; unlock mutex#2; "+
		"wait waitgroup#1; done waitgroup#1; send chan#2; recv chan#2; lock mutex#3; "+
		"lock mutex#1"; got != want { // the source is younger
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

const twoTypes = `package p

func (s *server) close() {
	s.mu.Lock()
	s.all[0].mu.Lock()
	s.Lock()
}

func (s *session[K]) close() {
	s.mu.Lock()
	t := s.conn()
	t.mu.Lock()
	u, err := &pool.Session{}, error(nil)
	u.mu.Lock()
	func(s store) { s.mu.Lock() }(store{})
	mu := sync.Mutex{}
	mu.Lock()
	v := open()
	v.mu.Lock()
	shared.mu.Lock()
	select {
	case <-s.done:
	}
}

func open() *server { return nil }

var shared = new(server)
`

// The type of a variable is known where the source says it.
func TestTypesOfVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(twoTypes), 0o600); err != nil {
		t.Fatal(err)
	}
	f := readSource(path)
	for line, want := range map[int]string{
		4: "server.mu", 5: "server.all[0].mu", 6: "server", 10: "session.mu", 12: "", 14: "pool.Session.mu", 15: "store.mu",
		17: "", 19: "server.mu", 20: "server.mu",
	} {
		if got := f.nameOf(line, coir.OpLock, "sync.(*Mutex).Lock"); got.typed != want || got.text == "" {
			t.Errorf("line %d: %+v, want the type of %q", line, got, want)
		}
	}
	if got := f.caseOf(21, &selectCase{}); got.typed != "session.done" {
		t.Errorf("the case is of %+v", got)
	}
}

// Two locks that the source calls by the same expression have the names of their types, and a number only if two of
// them have the same type.
func TestLocksOfTwoTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(twoTypes), 0o600); err != nil {
		t.Fatal(err)
	}
	of := &tested{built: time.Now().Add(time.Hour)}
	r := &record{tested: of, actors: map[int]*actor{2: {id: 2}}, failure: &failure{}, steps: 4}
	for i, s := range [][2]int{{4, 60}, {10, 70}, {4, 61}, {19, 62}} {
		r.known = append(r.known, step{
			n: i + 1, g: 2, done: i + 1, op: coir.OpLock, object: s[1], place: place{file: path, line: s[0]},
			via: "sync.(*Mutex).Lock",
		})
	}
	var all []string
	for _, s := range r.known {
		all = append(all, r.words(s))
	}
	if got, want := strings.Join(all, "; "), "lock server.mu#1; lock session.mu; lock server.mu#2; lock v.mu"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
