//go:build corpus

package corpus

import (
	"context"
	"sync"
	"testing"
)

// A mailer sends what comes in on a channel until its context is cancelled. It checks the context between two mails,
// but not while it waits for one. If the context is cancelled when the mailer waits or is about to, it never ends.
//
// Class: context
// Expect: deadlock

type mailSender struct {
	mails chan string
	sent  []string
}

func (m *mailSender) run(ctx context.Context) {
	for ctx.Err() == nil {
		mail := <-m.mails
		m.sent = append(m.sent, mail)
	}
}

func (m *mailSender) runFixed(ctx context.Context) {
	for {
		select {
		case mail := <-m.mails:
			m.sent = append(m.sent, mail)
		case <-ctx.Done():
			return
		}
	}
}

func runMailSender(t *testing.T, run func(*mailSender, context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &mailSender{mails: make(chan string)}
	var wg sync.WaitGroup
	wg.Go(func() { run(m, ctx) })
	m.mails <- "welcome"
	m.mails <- "invoice"
	cancel()
	wg.Wait()
	if len(m.sent) != 2 {
		t.Errorf("sent %q, want two mails", m.sent)
	}
}

func TestBugMailSender(t *testing.T) {
	runMailSender(t, (*mailSender).run)
}

func TestFixedMailSender(t *testing.T) {
	runMailSender(t, (*mailSender).runFixed)
}
