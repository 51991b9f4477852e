// Package trouble records what is wrong with the broker, for snapshots.
package trouble

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/snapshot"
)

// Record is the trouble of an object. The zero value has none. To find that there is none takes one atomic load. The
// lock is not a coir.Cond, because a snapshot may be taken at any moment.
type Record struct {
	bad   atomic.Bool
	mu    sync.Mutex // guards the fields below; not held while anything waits
	text  string
	since time.Time
}

// most is the largest number of bytes of a text.
const most = 300

// Heard records what the error of a request in ctx says about the broker. away is what it says if the request could not
// be made. Heard does nothing if ctx has ended, because then the caller has given up, and the broker may be well.
func (r *Record) Heard(ctx context.Context, err error, away string) {
	switch {
	case err == nil:
		r.Clear()
	case coir.Ended(ctx) != nil:
	case errors.Is(err, attempt.ErrUnavailable):
		r.Set(away + ": " + err.Error())
	case errors.Is(err, attempt.ErrUnknown):
		r.Set("the broker does not answer: " + err.Error())
	}
}

// Set sets the text. The time stays that of the first one.
func (r *Record) Set(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = Cut(text)
	if !r.bad.Swap(true) {
		r.since = time.Now()
	}
}

// Cut returns the beginning of a text that may be long.
func Cut(text string) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Clear removes the trouble.
func (r *Record) Clear() {
	if !r.bad.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad.Store(false)
	r.text, r.since = "", time.Time{}
}

// Is reports whether there is trouble.
func (r *Record) Is() bool { return r.bad.Load() }

// Show adds the trouble to the description of the object. lost is the error of a transport that knows that it has lost
// its connection, and since is when that was. It is certain, and replaces what requests have shown.
func (r *Record) Show(o *snapshot.Object, since time.Time, lost error) {
	if o.TroubleCertain = lost != nil; o.TroubleCertain {
		o.Trouble, o.TroubleSince = Cut(lost.Error()), since
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Trouble, o.TroubleSince = r.text, r.since
}
