//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A mailbox wakes its readers through a channel with room for one note. Two letters that come in a row leave one
// note. If two readers have looked in vain before that and are about to wait, one takes the note and one letter, and
// the other waits for ever beside the second letter.
//
// Class: lost
// Expect: deadlock

type mailbox struct {
	mu      sync.Mutex
	letters []string
	note    chan struct{}
}

func newMailbox() *mailbox {
	return &mailbox{note: make(chan struct{}, 1)}
}

func (m *mailbox) notify() {
	select {
	case m.note <- struct{}{}:
	default:
	}
}

func (m *mailbox) put(letter string) {
	m.mu.Lock()
	m.letters = append(m.letters, letter)
	m.mu.Unlock()
	m.notify()
}

// pop returns the oldest letter, if any, and how many are left.
func (m *mailbox) pop() (letter string, ok bool, left int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.letters) == 0 {
		return "", false, 0
	}
	letter, m.letters = m.letters[0], m.letters[1:]
	return letter, true, len(m.letters)
}

func (m *mailbox) get() string {
	for {
		if letter, ok, _ := m.pop(); ok {
			return letter
		}
		<-m.note
	}
}

func (m *mailbox) getFixed() string {
	for {
		if letter, ok, left := m.pop(); ok {
			if left > 0 {
				m.notify()
			}
			return letter
		}
		<-m.note
	}
}

func runMailbox(t *testing.T, get func(*mailbox) string) {
	m := newMailbox()
	var got [2]string
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = get(m) })
	}
	m.put("a")
	m.put("b")
	wg.Wait()
	if got[0]+got[1] != "ab" && got[0]+got[1] != "ba" {
		t.Errorf("got %q, want both letters", got)
	}
}

func TestBugMailbox(t *testing.T) {
	runMailbox(t, (*mailbox).get)
}

func TestFixedMailbox(t *testing.T) {
	runMailbox(t, (*mailbox).getFixed)
}
