package inspect

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// Var returns a variable for package expvar:
//
//	expvar.Publish("coir", inspect.Var(coir.Default()))
//
// The variable is JSON: the number of fibers in each state, the number of waits of each kind, and the age of the oldest
// wait. For a [coir.Runtime] it also has the counters of [coir.Runtime.Stats]. Reading it takes a snapshot, and readers
// that come at the same time share one.
//
// This package does not import expvar, which would add a handler to [net/http.DefaultServeMux].
func Var(of Source) fmt.Stringer { return &variable{of: of} }

type variable struct {
	of Source

	mu   sync.Mutex // held while a snapshot is taken
	text string
	made time.Time
}

// numbers is the content of a variable.
type numbers struct {
	Fibers map[snapshot.State]int    `json:"fibers"`
	Waits  map[snapshot.WaitKind]int `json:"waits"`
	Oldest float64                   `json:"oldest_wait_seconds"`
	Stats  *coir.Stats               `json:"stats,omitempty"`
}

func (v *variable) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.text == "" || time.Since(v.made) >= fresh {
		text, _ := json.Marshal(numbersOf(v.of)) // there is no error: numbers can be encoded
		v.text, v.made = string(text), time.Now()
	}
	return v.text
}

// numbersOf counts the fibers of a source.
func numbersOf(of Source) *numbers {
	n := &numbers{Fibers: map[snapshot.State]int{}, Waits: map[snapshot.WaitKind]int{}}
	var oldest time.Time
	c := collect{most: math.MaxInt, each: func(f *snapshot.Fiber) bool {
		n.Fibers[f.State]++
		switch len(f.Wait) {
		case 0:
		case 1:
			n.Waits[f.Wait[0].Kind]++
		default:
			n.Waits["select"]++
		}
		if f.State == snapshot.StateWaiting && !f.Since.IsZero() && (oldest.IsZero() || f.Since.Before(oldest)) {
			oldest = f.Since
		}
		return true
	}}
	s := c.from(of, false)
	if !oldest.IsZero() {
		n.Oldest = max(0, s.Taken.Sub(oldest).Seconds())
	}
	if of, ok := of.(interface{ Stats() coir.Stats }); ok {
		stats := of.Stats()
		n.Stats = &stats
	}
	return n
}
