package desk_test

// These tests take minutes under make soak; an ordinary run does a small part.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// Parties race for each ticket: answers, a second answer, a cancellation, the end of its scope, its deadline, and from
// time to time FailAll. Each ticket ends in exactly one way, the desk is empty in the end, and memory does not grow: it
// is measured after a quarter of the run and at the end.
//
// Spec: TK-01 (anything may complete a ticket, once)
// Spec: TK-10 (cancel and completion share one claim)
// Spec: TK-19 (a million cycles leave memory flat)
func TestRacingPartiesEndATicketOnce(t *testing.T) {
	tickets := sized(20_000, 200_000, 10_000_000)
	const openers = 16
	d := desk.New[int](desk.WithName("replies"), desk.WithLimit(10_000))
	var values, errs atomic.Uint64 // counted by OnDone
	var twice, opened atomic.Int64
	part := func(share int) error {
		ids := coir.NewChan[*desk.Ticket[int]](1024)
		return coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			var left atomic.Int32
			left.Store(openers)
			for i := range openers {
				n.Go("opener", func(ctx context.Context) error {
					defer func() {
						if left.Add(-1) == 0 {
							ids.Close()
						}
					}()
					return openAll(ctx, d, share/openers, func(tk *desk.Ticket[int]) error {
						opened.Add(1)
						var called atomic.Uint32
						tk.OnDone(func(v int, err error) {
							if called.Add(1) > 1 {
								twice.Add(1)
							}
							switch {
							case err != nil && v == 0:
								errs.Add(1)
							case err == nil && v == 7:
								values.Add(1)
							default:
								t.Errorf("it ended with %d and %v", v, err)
							}
						})
						return ids.Send(ctx, tk)
					})
				}, coir.WithIndex(i))
			}
			for range 4 {
				n.Go("completer", func(ctx context.Context) error {
					for tk, err := range ids.All(ctx) {
						if err != nil {
							return err
						}
						switch rand.IntN(8) {
						case 0:
							tk.Cancel()
						case 1: // ended by its scope or its deadline
						case 2:
							_ = d.Resolve(tk.ID(), 7)
							if err := d.Resolve(tk.ID(), 7); err == nil {
								t.Error("resolved twice")
							}
						case 3:
							_ = d.Reject(tk.ID(), errLost)
						case 4:
							if rand.IntN(1000) == 0 {
								d.FailAll(errLost)
							}
							fallthrough
						default:
							_ = d.Resolve(tk.ID(), 7)
						}
					}
					return nil
				})
			}
			return nil
		})
	}
	var memory [2]uint64
	for i, share := range []int{tickets / 4, tickets - tickets/4} {
		if err := part(share); err != nil {
			t.Fatal(err)
		}
		memory[i] = inUse()
	}
	s := d.Stats()
	t.Logf("%+v; %d KiB in use after a quarter, %d KiB at the end", s, memory[0]>>10, memory[1]>>10)
	sum := s.Resolved + s.Rejected + s.Cancelled + s.TimedOut + s.Failed
	if s.Open != 0 || sum != s.Opened || int64(s.Opened) != opened.Load() || d.Len() != 0 {
		t.Errorf("%d opened, %d ended, %d open", s.Opened, sum, s.Open)
	}
	if twice.Load() > 0 || values.Load() != s.Resolved || values.Load()+errs.Load() != s.Opened {
		t.Errorf("%d ended twice; OnDone saw %d values and %d errors", twice.Load(), values.Load(), errs.Load())
	}
	if float64(memory[1]) > 1.1*float64(memory[0])+4<<20 {
		t.Errorf("memory grew from %d to %d bytes", memory[0], memory[1])
	}
	for range d.All() {
		t.Error("a ticket is open")
	}
}

// openAll opens n tickets, each in its own scope, in a shared scope, or with a deadline.
func openAll(ctx context.Context, d *desk.Desk[int], n int, opened func(*desk.Ticket[int]) error) error {
	for range (n + 99) / 100 {
		err := coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
			for i := range min(100, n) {
				var tk *desk.Ticket[int]
				var err error
				switch i % 4 {
				case 0:
					tk, err = d.OpenTimeout(ctx, rand.N(2*time.Millisecond)+1)
				case 1:
					in, cancel := coir.WithCancel(ctx)
					tk, err = d.Open(in)
					if err == nil {
						err = opened(tk)
					}
					cancel()
					if err != nil {
						return err
					}
					continue
				default:
					tk, err = d.Open(ctx)
				}
				if err != nil {
					return err
				}
				if err := opened(tk); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Goroutines and fibers race for tickets that were opened in contexts of package context.
func TestGoroutinesRaceForTickets(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range sized(100, 2_000, 100_000) {
				ctx, cancel := context.WithCancel(t.Context())
				var tk [3]*desk.Ticket[int]
				for i := range tk {
					tk[i] = open(t, ctx, d)
				}
				var race sync.WaitGroup
				race.Go(cancel)
				race.Go(func() { _ = d.Resolve(tk[0].ID(), 1) })
				race.Go(func() { tk[1].Cancel() })
				for i := range tk {
					v, err := tk[i].Wait(context.Background())
					if (v == 1) != (err == nil) || err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%d, %v", v, err)
					}
				}
				race.Wait()
			}
		})
	}
	all.Wait()
	if s := d.Stats(); s.Open != 0 || s.Resolved+s.Cancelled != s.Opened {
		t.Errorf("d.Stats() = %+v, want Open 0, Resolved + Cancelled = Opened", s)
	}
}

// An open ticket takes less than 300 bytes, with or without a deadline, and no processor time: a million of them under
// make soak.
func TestMemoryOfOpenTickets(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	n := sized(20_000, 100_000, 1_000_000)
	for name, opener := range map[string]func(*desk.Desk[int], context.Context) (*desk.Ticket[int], error){
		"plain": func(d *desk.Desk[int], ctx context.Context) (*desk.Ticket[int], error) { return d.Open(ctx) },
		"timed": func(d *desk.Desk[int], ctx context.Context) (*desk.Ticket[int], error) {
			return d.OpenTimeout(ctx, time.Hour)
		},
	} {
		d := desk.New[int](desk.WithName("replies"))
		run(t, func(ctx context.Context, _ *coir.Nursery) error {
			before := inUse()
			for range n {
				if _, err := opener(d, ctx); err != nil {
					return err
				}
			}
			each := float64(inUse()-before) / float64(n)
			t.Logf("%s: %d open, %.0f bytes each", name, d.Len(), each)
			if each > 300 {
				t.Errorf("%s: %.0f bytes a ticket", name, each)
			}
			return nil
		})
		if d.Len() != 0 {
			t.Errorf("%d are open after the end of their scope", d.Len())
		}
	}
}

// A ticket that has ended leaves nothing behind: no timer, although its deadline is far away, and no group in its
// scope.
func TestEndedTicketsLeaveNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	n := sized(20_000, 100_000, 1_000_000)
	d := desk.New[int](desk.WithName("replies"))
	run(t, func(ctx context.Context, _ *coir.Nursery) error {
		other, cancel := coir.WithCancel(ctx)
		defer cancel()
		before := inUse()
		for i := range n {
			in := ctx
			if i%2 == 0 {
				in = other // one group for each ticket
			}
			tk, err := d.OpenTimeout(in, time.Hour)
			if err != nil {
				return err
			}
			if err := d.Resolve(tk.ID(), i); err != nil {
				return err
			}
		}
		if after := inUse(); after > before+uint64(40*n) {
			t.Errorf("%d tickets have left %d bytes", n, after-before)
		}
		return nil
	})
}

// inUse returns the size of the heap and the stacks after garbage collection.
func inUse() uint64 {
	debug.FreeOSMemory()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
