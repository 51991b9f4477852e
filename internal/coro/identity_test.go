package coro

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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

// ActivityOf tells what any goroutine does. If a release of Go keeps that elsewhere, it says that it does not know.
func TestActivities(t *testing.T) {
	if !Assembly {
		if got := ActivityOf(G()); got != Unknown {
			t.Errorf("without assembly the activity is %d", got)
		}
		return
	}
	if got := ActivityOf(G()); got != Running {
		t.Errorf("the activity of this goroutine is %d, not %d", got, Running)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	never := make(chan int)
	all := []struct {
		what string
		do   func()
		want Activity
	}{
		{"computes", func() {
			for !stop.Load() {
			}
		}, Running},
		{"reads from a pipe", func() { _, _ = from.Read(make([]byte, 1)) }, InIOWait},
		{"accepts", func() { _, _ = l.Accept() }, InIOWait},
		{"receives from a channel", func() { <-never }, InWait},
	}
	for _, a := range all {
		began := make(chan uintptr)
		go func() {
			began <- G()
			a.do()
		}()
		g := <-began
		got := ActivityOf(g)
		for begin := time.Now(); got != a.want && time.Since(begin) < 10*time.Second; got = ActivityOf(g) {
			runtime.Gosched()
		}
		if got != a.want {
			t.Errorf("the activity of a goroutine that %s is %d, not %d", a.what, got, a.want)
		}
	}
	stop.Store(true)
	close(never)
	if err := errors.Join(l.Close(), to.Close(), from.Close()); err != nil {
		t.Error(err)
	}
}
