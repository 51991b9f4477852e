//go:build corpus

package a

import (
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"testing"
)

// A bank serves two calls over net/rpc. Transfer locks the account it takes money from and then the other one. Merge
// locks the account that stays and then the one that is emptied into it. A transfer from the checking to the savings
// account and a merge of the checking into the savings account, at the same time, may each hold one lock and wait
// for ever for the other.
//
// Class: abba
// Expect: deadlock
type bankService struct {
	accounts map[string]*bankAccount
	ordered  bool // lock the account with the lower number first
}

type bankAccount struct {
	number  int
	mu      sync.Mutex
	balance int
}

// BankArgs names the accounts of a call.
type BankArgs struct {
	From, To string
	Amount   int
}

func (b *bankService) lock(first, second *bankAccount) {
	if b.ordered && first.number > second.number {
		first, second = second, first
	}
	first.mu.Lock()
	second.mu.Lock()
}

func (b *bankService) pair(args BankArgs) (from, to *bankAccount, err error) {
	from, to = b.accounts[args.From], b.accounts[args.To]
	if from == nil || to == nil || from == to {
		return nil, nil, fmt.Errorf("no such pair of accounts: %q and %q", args.From, args.To)
	}
	return from, to, nil
}

func (b *bankService) Transfer(args BankArgs, moved *int) error {
	from, to, err := b.pair(args)
	if err != nil {
		return err
	}
	b.lock(from, to)
	defer from.mu.Unlock()
	defer to.mu.Unlock()
	*moved = min(args.Amount, from.balance)
	from.balance -= *moved
	to.balance += *moved
	return nil
}

func (b *bankService) Merge(args BankArgs, moved *int) error {
	from, to, err := b.pair(args)
	if err != nil {
		return err
	}
	b.lock(to, from)
	defer from.mu.Unlock()
	defer to.mu.Unlock()
	*moved = from.balance
	to.balance += from.balance
	from.balance = 0
	return nil
}

func bankCall(t *testing.T, addr, method string, args BankArgs) int {
	client, err := rpc.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer client.Close()
	var moved int
	if err := client.Call(method, args, &moved); err != nil {
		t.Errorf("%s: %v", method, err)
	}
	return moved
}

func bankScene(t *testing.T, ordered bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bank := &bankService{ordered: ordered, accounts: map[string]*bankAccount{
		"checking": {number: 1, balance: 100},
		"savings":  {number: 2, balance: 500},
	}}
	server := rpc.NewServer()
	if err := server.RegisterName("Bank", bank); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { server.ServeConn(conn) })
		}
	})
	addr := ln.Addr().String()
	var wg sync.WaitGroup
	var transferred, merged int
	wg.Go(func() {
		transferred = bankCall(t, addr, "Bank.Transfer", BankArgs{From: "checking", To: "savings", Amount: 30})
	})
	wg.Go(func() { merged = bankCall(t, addr, "Bank.Merge", BankArgs{From: "checking", To: "savings"}) })
	wg.Wait()
	ln.Close()
	tasks.Wait()
	if transferred+merged != 100 {
		t.Errorf("%d transferred and %d merged out of 100", transferred, merged)
	}
}

func TestBugBank(t *testing.T) { bankScene(t, false) }

func TestFixedBank(t *testing.T) { bankScene(t, true) }
