package remote

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// deaf is a transport whose method Len is f.
type deaf struct {
	Transport
	f func() error
}

func (d deaf) Len(context.Context, string) (int, error) { return 0, d.f() }

// A question that gets no answer does not show that the broker is away, and the next question is asked. A question to a
// broker that cannot be reached shows that.
func TestTroubleAfterAQuestion(t *testing.T) {
	late := fmt.Errorf("len: %w", context.DeadlineExceeded)
	tests := []struct {
		name string
		f    func() error
		want string
	}{
		{"limit", func() error { return late }, ""},
		{"unknown", func() error { return fmt.Errorf("%w: %w", ErrUnknown, late) }, ""},
		{"Goexit", func() error { runtime.Goexit(); return nil }, ""},
		{
			"unavailable", func() error { return fmt.Errorf("%w: refused", ErrUnavailable) },
			"the broker is away: remote: not reachable now: refused",
		},
		{
			"unavailable at the limit", func() error { return fmt.Errorf("%w: %w", ErrUnavailable, late) },
			"the broker is away: remote: not reachable now: len: context deadline exceeded",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &Chan[int]{t: deaf{f: test.f}, name: "orders", stored: true}
			c.sight.asking = true
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.ask()
			}()
			<-ended
			var o snapshot.Object
			c.sight.trouble.Show(&o, time.Time{}, nil)
			if o.Trouble != test.want || c.sight.asking || c.sight.backlog != -1 {
				t.Errorf("after the question, trouble %q, asking %v, backlog %d; want %q, false, -1",
					o.Trouble, c.sight.asking, c.sight.backlog, test.want)
			}
		})
	}
}

// A question that calls runtime.Goexit does not stop later questions.
func TestQuestionsAfterGoexit(t *testing.T) {
	var q questions
	for range 2 * mostAsks {
		q.add(runtime.Goexit)
	}
	asked := make(chan struct{})
	q.add(func() { close(asked) })
	<-asked
}
