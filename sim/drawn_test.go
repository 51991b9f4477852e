package sim

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coir-go/coir"
)

// zero makes all decisions 0.
func zero(int) int { return 0 }

// FuzzSchedule lets the fuzzer generate schedules of a program with a mistake and of its corrected twin. If the program
// fails, which it need not, it fails by that mistake, and can be replayed. The twin never fails.
//
//	go test -run FuzzSchedule -v ./sim          prints what the kept schedules do go test -run '^$' -fuzz FuzzSchedule
//	./sim looks for more
//
// The fuzzer found the schedules in testdata, when a failure of the program was a failure of the test.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if f := Drawn(Bytes(data), lostUpdate(false)); f != nil {
			if f.Kind != KindError {
				t.Fatal(f)
			}
			again, err := Replay(f.Token, lostUpdate(false))
			sameRun(t, f, again, err)
			if testing.Verbose() {
				t.Log(f)
			}
		}
		if f := Drawn(Bytes(data), lostUpdate(true)); f != nil {
			t.Fatal(f)
		}
	})
}

// TestKeptSchedulesFail: the schedules that the fuzzer has found still fail.
func TestKeptSchedulesFail(t *testing.T) {
	kept, err := filepath.Glob("testdata/fuzz/FuzzSchedule/fails-*")
	if err != nil || len(kept) == 0 {
		t.Fatalf("none are kept: %v", err)
	}
	for _, path := range kept {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(string(text), "[]byte(")
		data, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if f := Drawn(Bytes([]byte(data)), lostUpdate(false)); f == nil || f.Kind != KindError {
			t.Errorf("%s: the schedule does not fail any more: %v", path, f)
		}
	}
}

// The same numbers give the same schedule, wherever they come from.
//
// Spec: SM-02 (a schedule is its decisions)
func TestDrawnIsTheScheduleThatWasDrawn(t *testing.T) {
	_, want := failing(lostUpdate(false))
	next := 0
	f := Drawn(func(n int) int {
		d := 0
		if next < len(want.script) {
			d = want.script[next]
		}
		next++
		if d >= n {
			t.Fatalf("decision %d of %d ways is %d", next, n, d)
		}
		return d
	}, lostUpdate(false))
	if f == nil {
		t.Fatal("it does not fail")
	}
	if f.Token != want.Token || f.Kind != want.Kind || f.hash != want.hash {
		t.Errorf("token %s, is %s: %v", want.Token, f.Token, f)
	}
}

// If choose draws no switch there is none, so a program that needs one does not fail; and Drawn does not shrink a
// failure.
func TestDrawnIsLeftAsItWasFound(t *testing.T) {
	if f := Drawn(zero, lostUpdate(false)); f != nil {
		t.Error(f)
	}
	last := func(n int) int { return n - 1 }
	f := Drawn(last, lostUpdate(false))
	if f == nil {
		t.Fatal("it does not fail")
	}
	if slices.Contains(f.script, 0) {
		t.Errorf("decisions %v, and never 0 was drawn", f.script)
	}
}

func TestDrawnTakesNumbersAndFaultsToo(t *testing.T) {
	var got int
	fn := func(_ context.Context, s *Sim) {
		if got = s.Intn(1000); s.Fault("late") {
			s.Errorf("late")
		}
	}
	f := Drawn(Bytes([]byte{1, 2, 1, 1}), fn, WithFaults("late"))
	if f == nil || f.Text != "late" || got != (1<<8|2)%1000 {
		t.Errorf("the number is %d, and the failure %v", got, f)
	}
	if f := Drawn(Bytes([]byte{255, 255, 1}), fn, WithFaults("late")); f != nil || got != (255<<8|255)%1000 {
		t.Errorf("the number is %d, and the failure %v", got, f)
	}
}

// A tool stops a run by a panic, or by runtime.Goexit. Drawn passes both on and leaves no goroutine behind, whichever
// fiber needed the decision: one before an operation, one that waits, one in a select.
func TestDrawnEndsAsTheDrawingDoes(t *testing.T) {
	type enough struct{ n int }
	before := runtime.NumGoroutine()
	for _, b := range corpus {
		for at := range 10 {
			asked := 0
			stop := func(end func()) func(int) int {
				return func(n int) int {
					if asked++; asked > at {
						end()
					}
					return (asked + at) % n
				}
			}
			var got any
			func() {
				defer func() { got = recover() }()
				_ = Drawn(stop(func() { panic(enough{at}) }), b.make(true), b.opts...)
			}()
			if asked > at && got != (enough{at}) {
				t.Fatalf("%s: the panic came out as %v", b.name, got)
			}
			if asked > at+1 {
				t.Fatalf("%s: it was asked %d times after its panic", b.name, asked-at-1)
			}
			asked = 0
			returned, ended := false, make(chan struct{})
			go func() {
				defer close(ended)
				_ = Drawn(stop(runtime.Goexit), b.make(true), b.opts...)
				returned = true
			}()
			<-ended
			if asked > at && returned {
				t.Fatalf("%s: the goroutine did not end", b.name)
			}
		}
	}
	for i := 0; runtime.NumGoroutine() > before+2; i++ { // goroutines of the last runtime may be about to end
		if i == 1_000_000 {
			t.Fatalf("%d goroutines were there before, and now %d", before, runtime.NumGoroutine())
		}
		runtime.Gosched()
	}
}

func TestDrawnRefusesAWayThatIsNone(t *testing.T) {
	for _, d := range []int{-1, 2} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "of 2 ways") || !strings.Contains(text, strconv.Itoa(d)) {
					t.Errorf("%d: %q", d, text)
				}
			}()
			_ = Drawn(func(int) int { return d }, func(_ context.Context, s *Sim) { s.Intn(2) })
			t.Errorf("%d was accepted", d)
		}()
	}
}

// The function that chooses may have memory of its own, and the fibers under test may share memory that a channel
// orders. The race detector reports neither.
func TestDrawnIsNoRace(t *testing.T) {
	asked, sum := 0, 0
	f := Drawn(func(n int) int { asked++; return asked % n }, func(ctx context.Context, s *Sim) {
		sum = 0
		token := coir.NewChan[bool](1, coir.WithName("token"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 3 {
				n.Go("adder", func(ctx context.Context) error {
					_ = token.Send(ctx, true)
					sum += s.Intn(1) + i
					_, err := token.Recv(ctx)
					return err
				}, coir.WithIndex(i))
			}
		})
	})
	if f != nil || sum != 3 || asked == 0 {
		t.Errorf("sum %d, asked %d times, %v", sum, asked, f)
	}
}
