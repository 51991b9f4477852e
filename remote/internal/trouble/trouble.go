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
		r.set(away + ": " + err.Error())
	case errors.Is(err, attempt.ErrUnknown):
		r.set("the broker does not answer: " + err.Error())
	}
}

// set sets the text. The time stays that of the first one.
func (r *Record) set(text string) {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = text
	if !r.bad.Swap(true) {
		r.since = time.Now()
	}
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

// Show adds the trouble to the description of the object.
func (r *Record) Show(o *snapshot.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Trouble, o.TroubleSince = r.text, r.since
}
