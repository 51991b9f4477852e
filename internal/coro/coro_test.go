//go:build !race

package coro

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fiber is a minimal user of Coro: a coroutine that runs jobs in a loop and rests in between.
type fiber struct {
	Coro
	g    uintptr
	job  func(*fiber)
	back *Coro // what to pass control to when the job is done
}

func newFiber(job func(*fiber), back *Coro) *fiber {
	f := &fiber{job: job, back: back}
	f.Init(f.run)
	return f
}

func (f *fiber) run(yield func(struct{}) bool) {
	f.Begin(yield)
	f.g = G()
	f.serve()
}

func (f *fiber) serve() {
	returned := false
	defer func() {
		if !returned && !f.Leaving() && !f.Rest(f.back) { // Goexit: continue from here
			f.serve()
		}
	}()
	for {
		f.job(f)
		if f.Rest(f.back) {
			returned = true
			return
		}
	}
}

// goroutinesEnd waits until at most n goroutines are left, because an exit takes a moment.
func goroutinesEnd(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); runtime.Gosched() {
		if runtime.NumGoroutine() <= n {
			return
		}
	}
	t.Fatalf("%d goroutines left over", runtime.NumGoroutine()-n)
}

func release(fs []*fiber) {
	cs := make([]*Coro, len(fs))
	for i, f := range fs {
		cs[i] = &f.Coro
	}
	for len(cs) > 0 {
		cs = Release(cs)
	}
}

// Fibers pass control to one another in a wandering order, so that none is left in its birth slot; then all are
// released.
func TestReleaseAfterWandering(t *testing.T) {
	const n = 50
	before := runtime.NumGoroutine()
	var main Coro
	fs := make([]*fiber, n)
	suspended := make([]bool, n)
	hops := 0
	for i := range n {
		suspended[i] = true
		fs[i] = newFiber(func(f *fiber) {
			for hop := range 200 {
				j := (i*7 + hop*13 + 1) % n
				if j == i || !suspended[j] {
					continue
				}
				suspended[j], suspended[i] = false, true
				hops++
				Transfer(&f.Coro, &fs[j].Coro)
			}
			suspended[i] = true
		}, &main)
	}
	for range 5 {
		for i := range n {
			if suspended[i] {
				suspended[i] = false
				Transfer(&main, &fs[i].Coro)
			}
		}
	}
	if hops == 0 {
		t.Fatal("control never passed sideways")
	}
	for i := range n { // those left in the middle of a job finish it
		for !suspended[i] {
			Transfer(&main, &fs[i].Coro)
		}
	}
	release(fs)
	goroutinesEnd(t, before)
}

// Release keeps a coroutine whose birth slot holds a coroutine that is not in the list. Once that one is in the list
// too, both leave.
func TestReleaseKeepsWhatAStrangerSitsOn(t *testing.T) {
	before := runtime.NumGoroutine()
	var main Coro
	idle := func(*fiber) {}
	a, b := newFiber(idle, &main), newFiber(idle, &main)
	b.job = func(f *fiber) {
		f.job = idle
		Transfer(&f.Coro, &a.Coro) // b sits where a was
	}
	Transfer(&main, &b.Coro)
	kept := Release([]*Coro{&a.Coro})
	if len(kept) == 0 { // the trampoline keeps nothing
		kept = []*Coro{}
	}
	Transfer(&main, &b.Coro) // b finishes its job and rests
	for kept = append(kept, &b.Coro); len(kept) > 0; {
		kept = Release(kept)
	}
	goroutinesEnd(t, before)
}

// Spec: FB-26 (a coroutine after Goexit is tainted)
func TestGoexitServesOn(t *testing.T) {
	before := runtime.NumGoroutine()
	var main Coro
	var ran []string
	f := newFiber(nil, &main)
	other := newFiber(func(*fiber) {}, &main)
	Transfer(&main, &other.Coro)
	for _, step := range []string{"a", "b!", "c", "d!", "e!", "f"} {
		f.job = func(*fiber) {
			ran = append(ran, step)
			if strings.HasSuffix(step, "!") {
				runtime.Goexit()
			}
		}
		Transfer(&main, &f.Coro)
	}
	if len(ran) != 6 {
		t.Fatalf("ran %v", ran)
	}
	release([]*fiber{f, other}) // its Goexit passes on, and is survived
	goroutinesEnd(t, before)
}

func TestIdentityStaysWithACoroutineThatWanders(t *testing.T) {
	var main Coro
	ok := true
	var b *fiber
	a := newFiber(func(f *fiber) {
		ok = ok && G() == f.g
		Transfer(&f.Coro, &b.Coro)
		ok = ok && G() == f.g
	}, &main)
	b = newFiber(func(f *fiber) {
		ok = ok && G() == f.g && f.g != a.g
		Transfer(&f.Coro, &a.Coro)
		ok = ok && G() == f.g
	}, &main)
	Transfer(&main, &a.Coro)
	Transfer(&main, &b.Coro)
	if !ok {
		t.Fatal("a coroutine changed its identity")
	}
	release([]*fiber{a, b})
}

func TestInsideSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			var main Coro
			f := newFiber(func(f *fiber) {
				for range 3 {
					time.Sleep(time.Hour)
				}
			}, &main)
			Transfer(&main, &f.Coro)
			release([]*fiber{f})
		})
		wg.Wait()
		if d := time.Since(start); d != 3*time.Hour {
			t.Fatalf("virtual time went %v", d)
		}
	})
}

func BenchmarkTransfer(b *testing.B) {
	b.ReportAllocs()
	var main Coro
	stop := false
	f := newFiber(func(f *fiber) {
		for !stop {
			Transfer(&f.Coro, &main)
		}
	}, &main)
	for i := 0; i < b.N; i += 2 {
		Transfer(&main, &f.Coro)
	}
	stop = true
	Transfer(&main, &f.Coro)
	release([]*fiber{f})
}
