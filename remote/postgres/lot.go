package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// How requests become statements.
//
// A statement costs a round trip and, if it stores something, a sync of the server's disk. So requests of one kind
// share statements: while a statement is on its way, new requests gather in a lot, and the next statement carries them
// all.
//
// The callers whose requests a statement has answered often make their next requests all at once. If the first of these
// requests began the next statement, it would go alone, and the others after it: two statements instead of one. So the
// next statement waits until it has as many requests as the last one had, for at most a tenth of the time that the last
// one took. After a statement with one request, the next does not wait.
//
// A statement runs in a goroutine, and does not end with the contexts of its requests. A request whose context ends
// before it was sent is withdrawn. If it was sent, its outcome is not known.
//
// Rejected: a statement that ends with the context of its request. pgx would close the connection, while the server
// might still wait for a lock on it. Attempts of 250 ms, each with a new connection, would use up the connections of
// the server.

const (
	statementTime = 10 * time.Second // time limit of a statement
	lotMost       = 500              // largest number of requests of a statement
	lotBytes      = 4 << 20          // largest size, unless one request is larger: the server has a limit
)

// lot gathers requests.
type lot[Q, A any] struct {
	t    *Transport
	what string
	do   func(ctx context.Context, qs []Q) ([]A, error) // runs a statement, and returns the answers in the same order
	size func(q Q) int                                  // the bytes of a request; nil if they are few

	mu      sync.Mutex
	waiting []*entry[Q, A]
	busy    bool          // a goroutine runs statements
	want    int           // requests that gather waits for; 0 if it does not wait
	enough  chan struct{} // closed when they have arrived
}

// entry is a request of a lot.
type entry[Q, A any] struct {
	q    Q
	done *coir.Promise[answer[A]] // nil if no caller waits
	sent bool
}

type answer[A any] struct {
	value A
	err   error
}

// ask makes a request, and waits for its answer.
func (l *lot[Q, A]) ask(ctx context.Context, q Q) (A, error) {
	var none A
	if err := coir.Ended(ctx); err != nil {
		return none, fmt.Errorf("postgres: %s: %w", l.what, err)
	}
	e := &entry[Q, A]{q: q, done: new(coir.Promise[answer[A]])}
	if !l.add(e) {
		return none, errClosed
	}
	a, err := e.done.Wait(ctx)
	switch {
	case err == nil:
		return a.value, a.err
	case l.withdraw(e):
		return none, fmt.Errorf("postgres: %s: %w", l.what, err)
	}
	return none, fmt.Errorf("postgres: %s: %w: %w", l.what, remote.ErrUnknown, err)
}

// len returns the number of requests that have not been sent.
func (l *lot[Q, A]) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// post makes a request, and does not wait for the answer.
func (l *lot[Q, A]) post(q Q) { l.add(&entry[Q, A]{q: q}) }

// add adds a request. It reports false if the transport was closed.
func (l *lot[Q, A]) add(e *entry[Q, A]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		if !l.t.begin() {
			return false
		}
		l.busy = true
		go l.run()
	}
	l.waiting = append(l.waiting, e)
	if l.want > 0 && len(l.waiting) >= l.want {
		l.want = 0
		close(l.enough)
	}
	return true
}

// withdraw takes back a request. It reports false if the request was sent.
func (l *lot[Q, A]) withdraw(e *entry[Q, A]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.sent {
		return false
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(x *entry[Q, A]) bool { return x == e })
	return true
}

// run runs statements while requests wait.
func (l *lot[Q, A]) run() {
	defer l.t.running.Done()
	for {
		es := l.take()
		if es == nil {
			return
		}
		qs := make([]Q, len(es))
		for i, e := range es {
			qs[i] = e.q
		}
		began := time.Now()
		as, err := l.statement(qs)
		took := time.Since(began)
		for i, e := range es {
			switch {
			case e.done == nil:
			case err != nil:
				e.done.Resolve(answer[A]{err: err})
			default:
				e.done.Resolve(answer[A]{value: as[i]})
			}
		}
		l.gather(len(es), took/10)
	}
}

// gather waits until n requests wait, for at most the given time.
func (l *lot[Q, A]) gather(n int, limit time.Duration) {
	l.mu.Lock()
	if n == 1 || len(l.waiting) >= n {
		l.mu.Unlock()
		return
	}
	enough := make(chan struct{})
	l.want, l.enough = n, enough
	l.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-enough:
	case <-timer.C:
		l.mu.Lock()
		l.want = 0
		l.mu.Unlock()
	}
}

func (l *lot[Q, A]) statement(qs []Q) ([]A, error) {
	ctx, cancel := context.WithTimeout(l.t.ctx, statementTime)
	defer cancel()
	as, err := l.do(ctx, qs)
	return as, outcome(l.what, err)
}

// fit returns the number of waiting requests that fit into a statement.
func (l *lot[Q, A]) fit() int {
	most := min(len(l.waiting), lotMost)
	for n, bytes := 0, 0; l.size != nil && n < most; n++ {
		if bytes += l.size(l.waiting[n].q); bytes > lotBytes && n > 0 {
			return n
		}
	}
	return most
}

// take returns the next requests. If there are none, it returns nil, and the goroutine ends.
func (l *lot[Q, A]) take() []*entry[Q, A] {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.fit()
	if n == 0 {
		l.busy = false
		return nil
	}
	es := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	for _, e := range es {
		e.sent = true
	}
	return es
}
