//go:build corpus

package b

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// Two banks transfer money in two phases. The bank that pays asks the other one to prepare and then to commit, and
// holds the lock of its own accounts until both are answered. The bank that gets the money takes its lock for each
// phase. When each pays the other at the same time, both hold their own lock and wait for an answer that needs the
// other's.
//
// Class: abba
// Expect: deadlock
type bankService struct {
	peer   string
	client *http.Client

	mu       sync.Mutex
	balance  int
	prepared int
}

func (b *bankService) call(path string, amount int) error {
	resp, err := b.client.Post(b.peer+path+"?amount="+strconv.Itoa(amount), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return nil
}

func (b *bankService) bothPhases(amount int) error {
	if err := b.call("/prepare", amount); err != nil {
		return err
	}
	return b.call("/commit", amount)
}

func (b *bankService) transfer(amount int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance -= amount
	return b.bothPhases(amount)
}

// transferFixed holds the lock only while it takes the money.
func (b *bankService) transferFixed(amount int) error {
	b.mu.Lock()
	b.balance -= amount
	b.mu.Unlock()
	return b.bothPhases(amount)
}

func (b *bankService) handler(transfer func(b *bankService, amount int) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rates", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "1.0")
	})
	mux.HandleFunc("POST /transfer", func(w http.ResponseWriter, r *http.Request) {
		amount, _ := strconv.Atoi(r.FormValue("amount"))
		if err := transfer(b, amount); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	mux.HandleFunc("POST /prepare", func(w http.ResponseWriter, r *http.Request) {
		amount, _ := strconv.Atoi(r.FormValue("amount"))
		b.mu.Lock()
		defer b.mu.Unlock()
		b.prepared += amount
	})
	mux.HandleFunc("POST /commit", func(w http.ResponseWriter, r *http.Request) {
		amount, _ := strconv.Atoi(r.FormValue("amount"))
		b.mu.Lock()
		defer b.mu.Unlock()
		b.prepared -= amount
		b.balance += amount
	})
	return mux
}

func bankRun(t *testing.T, transfer func(b *bankService, amount int) error) {
	north, south := &bankService{balance: 100}, &bankService{balance: 100}
	northSrv := httptest.NewServer(north.handler(transfer))
	southSrv := httptest.NewServer(south.handler(transfer))
	north.peer, north.client = southSrv.URL, southSrv.Client()
	south.peer, south.client = northSrv.URL, northSrv.Client()

	var wg sync.WaitGroup
	wg.Go(func() { // a customer of north
		outside := bankService{peer: northSrv.URL, client: northSrv.Client()}
		if err := outside.call("/transfer", 30); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { // a customer of south, who looks at the rates of both banks first
		for _, srv := range []*httptest.Server{northSrv, southSrv, northSrv, southSrv, northSrv, southSrv} {
			resp, err := srv.Client().Get(srv.URL + "/rates")
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		}
		outside := bankService{peer: southSrv.URL, client: southSrv.Client()}
		if err := outside.call("/transfer", 20); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	northSrv.Close()
	southSrv.Close()
	if north.balance != 90 || south.balance != 110 {
		t.Errorf("balances %d and %d, want 90 and 110", north.balance, south.balance)
	}
}

func TestBugBankTransfer(t *testing.T) {
	bankRun(t, (*bankService).transfer)
}

func TestFixedBankTransfer(t *testing.T) {
	bankRun(t, (*bankService).transferFixed)
}
