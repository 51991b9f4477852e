package coro

import (
	"runtime"
	"strings"
	"testing"
)

func TestGoroutineIdentity(t *testing.T) {
	me := G()
	var deep func(int) uintptr
	deep = func(n int) uintptr {
		var pad [1024]byte
		pad[n%1024] = 1
		if n == 0 {
			return G()
		}
		return deep(n - 1)
	}
	if deep(1000) != me {
		t.Fatal("identity changed when the stack moved")
	}
	other := make(chan uintptr)
	go func() { other <- G() }()
	if <-other == me {
		t.Fatal("two goroutines, one identity")
	}
}

//go:noinline
func whereFrom() uintptr {
	pc := CallerPC()
	sink++ // keep a frame
	deeper()
	return pc
}

var sink int

//go:noinline
func deeper() { sink++ }

func TestCallerPC(t *testing.T) {
	pc := whereFrom()
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if !strings.HasSuffix(frame.Function, "TestCallerPC") || !strings.HasSuffix(frame.File, "identity_test.go") {
		t.Fatalf("called from %s in %s", frame.Function, frame.File)
	}
}

func TestGoroutineID(t *testing.T) {
	if parseID([]byte("goroutine 4711 [running]:\nmain.main()")) != 4711 {
		t.Fatal("number not read")
	}
	if GoroutineID() == 0 {
		t.Fatal("no number")
	}
}

func BenchmarkG(b *testing.B) {
	var x uintptr
	for range b.N {
		x ^= G()
	}
	_ = x
}

// NumberOf finds the number of any goroutine, from anywhere.
func TestNumberOf(t *testing.T) {
	if got, want := NumberOf(G()), GoroutineID(); got != want {
		t.Errorf("this goroutine has the number %d, not %d", want, got)
	}
	type one struct {
		g  uintptr
		id uint64
	}
	found, end := make(chan one), make(chan struct{})
	for range 100 {
		go func() {
			found <- one{G(), GoroutineID()}
			<-end
		}()
	}
	for range 100 {
		if o := <-found; NumberOf(o.g) != o.id {
			t.Errorf("goroutine %d has the number %d", o.id, NumberOf(o.g))
		}
	}
	close(end)
}
