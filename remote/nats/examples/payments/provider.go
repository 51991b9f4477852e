package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/ticket"
)

// ledger is what the outside parties know about the payments.
type ledger struct {
	mu       sync.Mutex
	payments map[string]*payment
	forged   int            // callbacks with forged tokens
	replies  map[string]int // what replicas have said to callbacks, in total
}

// payment is what is known about one payment.
type payment struct {
	first, again result // what the customer was told, and what another replica says afterwards
	done         int    // callbacks that completed it
	same         int    // callbacks that were duplicates, including those of an attempt whose answer was lost
	stored       int    // callbacks that were stored: each may have come too late
}

// of returns the entry of a payment. The caller holds the lock.
func (l *ledger) of(id string) *payment {
	if l.payments[id] == nil {
		l.payments[id] = new(payment)
	}
	return l.payments[id]
}

// check returns an error if a payment has not ended exactly once.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.replies["403 none"]; n != l.forged {
		return fmt.Errorf("%d forged callbacks, and %d were refused", l.forged, n)
	}
	for id, p := range l.payments {
		switch {
		case p.first != p.again:
			return fmt.Errorf("payment %s: the customer was told %+v, and then %+v", id, p.first, p.again)
		case p.done > 1 || !p.first.Paid && p.done+p.same > 0 || p.first.Paid && p.done+p.same+p.stored == 0:
			return fmt.Errorf("payment %s: %+v", id, *p)
		case p.first.Paid && p.first.Number != "receipt "+id:
			return fmt.Errorf("payment %s has the receipt %q", id, p.first.Number)
		}
	}
	return nil
}

// String returns a summary.
func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	paid := 0
	for _, p := range l.payments {
		if p.first.Paid {
			paid++
		}
	}
	return fmt.Sprintf("%d payments: %d paid, %d not in time\ncallbacks, by what the replicas said: %v, %d of them forged",
		len(l.payments), paid, len(l.payments)-paid, l.replies, l.forged)
}

// customers make payments, and ask for each again when it has ended.
func customers(ctx context.Context, l *ledger, payments int, shop, provider string) error {
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Limit(64)
		for i := range payments {
			n.Go("customer", func(ctx context.Context) error {
				id := strconv.Itoa(i)
				first, err := request(ctx, http.MethodPost, shop+"/payments/"+id, provider)
				if err != nil {
					return err
				}
				again, err := request(ctx, http.MethodGet, shop+"/payments/"+id, provider)
				l.mu.Lock()
				defer l.mu.Unlock()
				l.of(id).first, l.of(id).again = first, again
				return err
			}, coir.WithGoroutine(), coir.WithIndex(i))
		}
		return nil
	})
}

// request is a request of a customer.
func request(ctx context.Context, method, address, provider string) (v result, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return v, err
	}
	req.Header.Set("Provider", provider)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return v, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return v, fmt.Errorf("payment: %s: %s", resp.Status, text)
	}
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

// provider is the payment provider: it accepts a payment, and calls back at a random time.
type provider struct {
	*ledger
	n         *coir.Nursery
	limit     time.Duration
	callbacks string
	calling   coir.Cond // guards calls
	calls     int       // calls that have not ended
}

// ServeHTTP accepts a payment.
func (p *provider) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	id, token := strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Token")
	delay := rand.N(p.limit / 2)
	if rand.IntN(10) == 0 {
		delay = p.limit + rand.N(p.limit/2) // late
	}
	p.call(id, token, delay)
	if rand.IntN(3) == 0 { // twice, at about the same time
		p.call(id, token, delay+rand.N(10*time.Millisecond))
	}
	if rand.IntN(3) == 0 { // a forger does not know the MAC
		other := []byte(token)
		other[40+rand.IntN(16)] ^= 1 // the changed character is another one of base64, or invalid
		p.mu.Lock()
		p.forged++
		p.mu.Unlock()
		p.call(id, string(other), rand.N(p.limit/2))
	}
}

// call calls back after a delay.
func (p *provider) call(id, token string, delay time.Duration) {
	p.calling.Lock()
	p.calls++
	p.calling.Unlock()
	p.n.Go("callback", func(ctx context.Context) error {
		defer func() {
			p.calling.Lock()
			defer p.calling.Unlock()
			p.calls--
			p.calling.Broadcast()
		}()
		if err := coir.Sleep(ctx, delay); err != nil {
			return err
		}
		for {
			again, err := p.callOnce(ctx, id, token)
			if err != nil || !again {
				return err
			}
			if err := coir.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	}, coir.WithGoroutine())
}

// callOnce calls back once, and reports whether the replica has asked to call again.
func (p *provider) callOnce(ctx context.Context, id, token string) (again bool, err error) {
	body := strings.NewReader(`{"Number": "receipt ` + id + `"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.callbacks, body)
	if err != nil {
		return false, err
	}
	req.Header.Set("Token", token)
	req.Header.Set("Event", "event "+id)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	said, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return false, err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return true, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replies == nil {
		p.replies = map[string]int{}
	}
	p.replies[strconv.Itoa(resp.StatusCode)+" "+string(said)]++
	switch string(said) {
	case ticket.OutcomeDone.String():
		p.of(id).done++
	case ticket.OutcomeDuplicate.String():
		p.of(id).same++
	case ticket.OutcomeStored.String():
		p.of(id).stored++
	}
	return false, nil
}

// wait waits until all callbacks have ended.
func (p *provider) wait(ctx context.Context) error {
	p.calling.Lock()
	defer p.calling.Unlock()
	for p.calls > 0 {
		if err := p.calling.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
