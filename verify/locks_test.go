package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Mutex and Semaphore are linearizable: whatever several clients do concurrently, there is an order in which the same
// operations, performed one after another, return the same results. A Mutex is a Semaphore with one permit. An
// operation that waits and then takes is one step, at a moment when there were enough permits. An operation that
// failed, because it did not wait, its context ended, or its select took another case, took nothing. A try may fail
// only if there were not enough permits, or another client was waiting. So the start of a wait is a step too, before
// the step that takes or leaves.
//
// The order in which waiters are served cannot be seen from outside. The tests of package locks check it against a
// model.

// lockOp is one operation of a client, or its first step if it waited.
type lockOp struct {
	what  string // take, try, put
	n     int
	ok    bool
	began bool // the step in which a wait may start
	id    int  // identifies the take to which the step belongs
}

// lockState has the number of free permits, and the waiting takes.
type lockState struct {
	free    int
	waiting string // a mark for each take: 0 not begun, 1 waiting, 2 ended
}

// lockModel returns the model of a semaphore of the given size, for a history with the given number of takes.
func lockModel(size, takes int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{size, strings.Repeat("0", takes)} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(lockState), input.(lockOp)
			marked := func(mark byte) string {
				b := []byte(s.waiting)
				b[op.id] = mark
				return string(b)
			}
			switch {
			case op.what == "put":
				s.free += op.n
				return s.free <= size, s
			case op.what == "take" && op.began: // from now on it may be waiting
				s.waiting = marked('1')
				return true, s
			case op.what == "take":
				if s.waiting[op.id] != '1' {
					return false, s
				}
				s.waiting = marked('2')
			case !op.ok: // a try
				return s.free < op.n || strings.Contains(s.waiting, "1"), s
			}
			if !op.ok {
				return true, s
			}
			s.free -= op.n
			return s.free >= 0, s
		},
		Equal: func(a, b any) bool { return a.(lockState) == b.(lockState) },
		DescribeOperation: func(input, _ any) string {
			op := input.(lockOp)
			return fmt.Sprintf("%s %d: %v (%v)", op.what, op.n, op.ok, op.began)
		},
	}
}

// permits is a Mutex or a Semaphore.
type permits struct {
	size     int
	take     func(ctx context.Context, n int) error
	try      func(n int) bool
	put      func(n int)
	takeCase func(n int) coir.Case
}

func mutexPermits() permits {
	m := new(locks.Mutex)
	return permits{
		1, func(ctx context.Context, _ int) error { return m.Lock(ctx) }, func(int) bool { return m.TryLock() },
		func(int) { m.Unlock() }, func(int) coir.Case { return m.LockCase() },
	}
}

func semaphorePermits() permits {
	s := locks.NewSemaphore(3)
	return permits{3, s.Acquire, s.TryAcquire, s.Release, s.AcquireCase}
}

// lockHistory runs clients, fibers and goroutines, on p and returns their operations.
func lockHistory(rt *coir.Runtime, p permits, seed uint64) (ops []porcupine.Operation, takes int, err error) {
	const clients, each = 4, 6
	var mu sync.Mutex
	var clock atomic.Int64
	add := func(client int, op lockOp, call int64) {
		ret := clock.Add(1)
		mu.Lock()
		defer mu.Unlock()
		if op.what == "take" { // two steps, both between call and return
			op.id = takes
			takes++
			begins := op
			begins.began = true
			// The client of a step is only for display. A client with two concurrent steps needs two numbers.
			ops = append(ops, porcupine.Operation{ClientId: clients + client, Input: begins, Call: call, Return: ret})
		}
		ops = append(ops, porcupine.Operation{ClientId: client, Input: op, Call: call, Return: ret})
	}
	var gate atomic.Int32
	var never = coir.NewChan[int](0)
	body := func(ctx context.Context, client int) {
		rnd := rand.New(rand.NewPCG(seed, uint64(client)))
		for gate.Add(1); gate.Load() < clients; {
			_ = coir.Yield(ctx)
			runtime.Gosched()
		}
		for range each {
			n := 1 + rnd.IntN(p.size)
			op := lockOp{what: "take", n: n}
			call := clock.Add(1)
			switch rnd.IntN(5) {
			case 0:
				op.what = "try"
				op.ok = p.try(n)
			case 1:
				op.what = "try"
				i, _ := coir.TrySelect(p.takeCase(n))
				op.ok = i == 0
			case 2:
				i, _ := coir.Select(ctx, p.takeCase(n), never.RecvCase(nil), coir.After(time.Duration(rnd.IntN(30))*time.Microsecond))
				op.ok = i == 0
			case 3:
				in, cancel := coir.WithTimeout(ctx, time.Duration(rnd.IntN(30))*time.Microsecond)
				op.ok = p.take(in, n) == nil
				cancel()
			default:
				op.ok = p.take(ctx, n) == nil
			}
			add(client, op, call)
			if !op.ok {
				continue
			}
			if rnd.IntN(2) == 0 {
				_ = coir.Yield(ctx)
			}
			call = clock.Add(1)
			p.put(n)
			add(client, lockOp{what: "put", n: n}, call)
		}
	}
	var goroutines sync.WaitGroup
	err = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range clients {
			if (seed>>i)&1 == 0 {
				goroutines.Go(func() { body(context.Background(), i) })
				continue
			}
			n.Go("client", func(ctx context.Context) error {
				body(ctx, i)
				return nil
			})
		}
		return nil
	})
	goroutines.Wait()
	if !p.try(p.size) {
		err = errors.Join(err, errors.New("not all is free in the end"))
	}
	return ops, takes, err
}

func TestLocksAreLinearizable(t *testing.T) {
	rts := newRuntimes(t)
	for name, of := range map[string]func() permits{"Mutex": mutexPermits, "Semaphore": semaphorePermits} {
		t.Run(name, func(t *testing.T) {
			tries, refused := 0, 0
			for seed := range uint64(histories() / 5) {
				p := of()
				ops, takes, err := lockHistory(rts[2+int(seed%3)], p, seed)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, op := range ops {
					if in := op.Input.(lockOp); in.what == "try" {
						if tries++; !in.ok {
							refused++
						}
					}
				}
				if got := porcupine.CheckOperationsTimeout(lockModel(p.size, takes), ops, time.Minute); got != porcupine.Ok {
					t.Fatalf("seed %d: %v\n%v", seed, got, ops)
				}
			}
			t.Logf("%d tries, %d of them refused", tries, refused)
		})
	}
}

// The specification rejects impossible histories.
func TestLockJudge(t *testing.T) {
	span := func(call, ret int64, op lockOp) porcupine.Operation {
		return porcupine.Operation{ClientId: int(call), Input: op, Call: call, Return: ret}
	}
	begins := func(id int) lockOp { return lockOp{what: "take", n: 1, id: id, began: true} }
	takes := func(id int, ok bool) lockOp { return lockOp{what: "take", n: 1, id: id, ok: ok} }
	put, try, refused := lockOp{what: "put", n: 1}, lockOp{what: "try", n: 1, ok: true}, lockOp{what: "try", n: 1}
	for _, c := range []struct {
		name string
		ops  []porcupine.Operation
		want bool
	}{
		{"one after the other", []porcupine.Operation{span(1, 2, begins(0)), span(1, 2, takes(0, true)), span(3, 4, put), span(5, 6, try)}, true},
		{"two hold it", []porcupine.Operation{span(1, 2, begins(0)), span(1, 2, takes(0, true)), span(3, 4, try), span(5, 6, put)}, false},
		{"refused when it is free", []porcupine.Operation{span(1, 2, refused)}, false},
		{"refused when it is held", []porcupine.Operation{span(1, 2, try), span(3, 4, refused), span(5, 6, put)}, true},
		{"refused when another one waits", []porcupine.Operation{span(1, 4, begins(0)), span(1, 4, takes(0, false)), span(2, 3, refused)}, true},
		{"refused when another one has left", []porcupine.Operation{span(1, 2, begins(0)), span(1, 2, takes(0, false)), span(3, 4, refused)}, false},
		{"put twice", []porcupine.Operation{span(1, 2, try), span(3, 4, put), span(5, 6, put)}, false},
	} {
		if got := porcupine.CheckOperations(lockModel(1, 1), c.ops); got != c.want {
			t.Errorf("%s: it happens: %v", c.name, got)
		}
	}
}
