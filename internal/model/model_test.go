package model

// The model itself: its answers in simple cases, that it agrees with Go's own channels where those can do the same, and
// that it loses and invents nothing.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func sendOp(c *Chan, v int) *Op { return &Op{Clauses: []Clause{{Send, c, v}}} }

func recvOp(c *Chan) *Op { return &Op{Clauses: []Clause{{Recv, c, 0}}} }

// begin does the first clause that is ready, or waits.
func begin(op *Op) []Done {
	if ready := op.Ready(); len(ready) > 0 {
		return op.Do(ready[0])
	}
	op.Wait()
	return nil
}

// check compares the operations that have ended, and how, with those that are wanted.
func check(t *testing.T, got []Done, want ...Done) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("ended:\n%v, want\n%v", got, want)
	}
}

// sent and received are the usual ends of operations with one clause.
func sent(op *Op) Done { return Done{op, Result{}} }

func received(op *Op, v int) Done { return Done{op, Result{OK, 0, v}} }

func failed(op *Op, o Outcome) Done { return Done{op, Result{Outcome: o}} }

func TestRendezvous(t *testing.T) {
	c := New(0, Wait)
	s1, s2 := sendOp(c, 1), sendOp(c, 2)
	check(t, begin(s1))
	check(t, begin(s2))
	r := recvOp(c)
	check(t, begin(r), received(r, 1), sent(s1))
	check(t, begin(r), received(r, 2), sent(s2))
	check(t, begin(r))
	s3 := sendOp(c, 3)
	check(t, begin(s3), sent(s3), received(r, 3))
	if want := (Stats{Sent: 3, Received: 3}); c.Stats != want {
		t.Errorf("counted %+v, want %+v", c.Stats, want)
	}
}

func TestBounded(t *testing.T) {
	c := New(2, Wait)
	ops := []*Op{sendOp(c, 0), sendOp(c, 1), sendOp(c, 2), sendOp(c, 3)}
	check(t, begin(ops[0]), sent(ops[0]))
	check(t, begin(ops[1]), sent(ops[1]))
	check(t, begin(ops[2]))
	check(t, begin(ops[3]))
	r := recvOp(c)
	check(t, begin(r), received(r, 0), sent(ops[2]))
	check(t, []Done{ops[3].Cancel()}, failed(ops[3], Cancelled))
	check(t, begin(r), received(r, 1))
	check(t, begin(r), received(r, 2))
	check(t, begin(r))
	check(t, []Done{r.Expire()}, failed(r, TimedOut))
	want := Stats{High: 2, Sent: 3, Received: 3, Send: Failures{Cancelled: 1}, Recv: Failures{TimedOut: 1}}
	if c.Stats != want {
		t.Errorf("counted %+v, want %+v", c.Stats, want)
	}
}

// Which of the values 1, 2, 3 are held and which are lost, by kind and policy, and how the third send ends.
func TestOverflow(t *testing.T) {
	for _, row := range []struct {
		capacity   int
		policy     Policy
		held, lost []int
		third      Outcome
	}{
		{0, DropOldest, nil, []int{1, 2, 3}, OK},
		{0, DropNewest, nil, []int{1, 2, 3}, OK},
		{0, Fail, nil, nil, WouldBlock},
		{2, DropOldest, []int{2, 3}, []int{1}, OK},
		{2, DropNewest, []int{1, 2}, []int{3}, OK},
		{2, Fail, []int{1, 2}, nil, WouldBlock},
		{Unbounded, Fail, []int{1, 2, 3}, nil, OK},
		{Conflated, Wait, []int{3}, []int{1, 2}, OK},
	} {
		c := New(row.capacity, row.policy)
		var last []Done
		for v := range 3 {
			last = begin(sendOp(c, v+1))
		}
		if !slices.Equal(c.Values, row.held) || !slices.Equal(c.Undelivered, row.lost) || last[0].Outcome != row.third {
			t.Errorf("capacity %d, policy %d: holds %v, lost %v, the last send: %v; want %v, %v, %v",
				row.capacity, row.policy, c.Values, c.Undelivered, last[0].Outcome, row.held, row.lost, row.third)
		}
	}
}

func TestCloseAndAbort(t *testing.T) {
	c := New(1, Wait)
	s1, s2, s3 := sendOp(c, 1), sendOp(c, 2), sendOp(c, 3)
	begin(s1)
	begin(s2) // waits
	begin(s3)
	first, done := c.Close()
	check(t, done)
	again, _ := c.Close()
	if !first || again {
		t.Errorf("the first Close says %v, the second %v", first, again)
	}
	s4, r := sendOp(c, 4), recvOp(c)
	check(t, begin(s4), failed(s4, Closed))
	check(t, begin(r), received(r, 1), sent(s2))
	if first, done = c.Abort(); first {
		t.Error("Abort of what is closed says that it has closed it")
	}
	check(t, done, failed(s3, Aborted))
	if !slices.Equal(c.Undelivered, []int{2}) {
		t.Errorf("not delivered: %v", c.Undelivered)
	}
	check(t, begin(r), failed(r, Aborted))

	c = New(0, Wait)
	r = recvOp(c)
	check(t, begin(r))
	_, done = c.Close()
	check(t, done, failed(r, Closed))
	check(t, begin(r), failed(r, Closed))
}

func TestSelect(t *testing.T) {
	a, b := New(0, Wait), New(1, Wait)
	both := &Op{Select: true, Clauses: []Clause{{}, {Recv, a, 0}, {Send, b, 7}, {Send, a, 8}, {Kind: Later}}}
	if got := both.Ready(); !slices.Equal(got, []int{2}) {
		t.Fatalf("ready: %v", got)
	}
	check(t, begin(both), Done{both, Result{OK, 2, 0}})
	check(t, begin(both)) // it does not meet itself on a
	if s, r := a.Waiting(); s != 1 || r != 1 {
		t.Fatalf("on a wait %d and %d", s, r)
	}
	r := recvOp(b)
	check(t, begin(r), received(r, 7), Done{both, Result{OK, 2, 0}})
	if s, r := a.Waiting(); s != 0 || r != 0 {
		t.Fatalf("it has ended, and on a wait %d and %d", s, r)
	}
	check(t, begin(both))
	check(t, []Done{both.Expire()}, Done{both, Result{OK, 4, 0}})
	check(t, []Done{both.Cancel()}, Done{both, Result{Cancelled, -1, 0}})
	check(t, []Done{both.Refuse()}, Done{both, Result{WouldBlock, -1, 0}})
	both.Clauses = append(both.Clauses, Clause{Kind: Now})
	if got := both.Ready(); !slices.Equal(got, []int{5}) {
		t.Fatalf("ready: %v", got)
	}
}

// Operations that do not wait, compared with Go's own channels.
func TestAgainstGoChannels(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for capacity := range 4 {
		c, g := New(capacity, Wait), make(chan int, capacity)
		for step := range 1000 {
			if step == 900 {
				c.Close()
				close(g)
			}
			var got, want string
			if rnd.IntN(2) == 0 && step < 900 {
				got, want = try(sendOp(c, step)), "would block 0"
				select {
				case g <- step:
					want = "ok 0"
				default:
				}
			} else {
				got, want = try(recvOp(c)), "would block 0"
				select {
				case v, ok := <-g:
					want = fmt.Sprint("ok ", v)
					if !ok {
						want = "closed 0"
					}
				default:
				}
			}
			if got != want || len(c.Values) != len(g) {
				t.Fatalf("seed %d, capacity %d, step %d: %s, holds %d; Go: %s, holds %d", seed, capacity, step, got, len(c.Values), want, len(g))
			}
		}
	}
}

func try(op *Op) string {
	if ready := op.Ready(); len(ready) > 0 {
		d := op.Do(ready[0])[0]
		return fmt.Sprint(d.Outcome, " ", d.Value)
	}
	return fmt.Sprint(op.Refuse().Outcome, " 0")
}

// TestNothingIsLostOrInvented: in random histories of selects, closes and cancels, each value that has left its sender
// is in exactly one place: received once, in a channel, or among the undelivered. The counts agree, and no operation
// waits without need.
func TestNothingIsLostOrInvented(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		chans := []*Chan{New(rnd.IntN(6)-2, Policy(rnd.IntN(4))), New(rnd.IntN(6)-2, Policy(rnd.IntN(4)))}
		var waiting []*Op
		var got []int // everything that was received
		note := func(done []Done) {
			for _, d := range done {
				waiting = slices.DeleteFunc(waiting, func(op *Op) bool { return op == d.Op })
				if d.Outcome == OK && d.Op.Clauses[d.Clause].Kind == Recv {
					got = append(got, d.Value)
				}
			}
		}
		value := 0
		for range 60 {
			switch c := chans[rnd.IntN(2)]; rnd.IntN(12) {
			case 0:
				_, done := c.Close()
				note(done)
			case 1:
				_, done := c.Abort()
				note(done)
			case 2, 3:
				if len(waiting) > 0 {
					note([]Done{waiting[rnd.IntN(len(waiting))].Cancel()})
				}
			default:
				op := &Op{Select: true}
				for range 1 + rnd.IntN(3) {
					value++
					op.Clauses = append(op.Clauses, Clause{Send + Kind(rnd.IntN(2)), chans[rnd.IntN(2)], value})
				}
				waiting = append(waiting, op)
				note(begin(op))
			}
			all, sent, received := slices.Clone(got), uint64(0), uint64(0)
			for _, c := range chans {
				all = append(append(all, c.Values...), c.Undelivered...)
				sent, received = sent+c.Sent, received+c.Received
				if s, r := c.Waiting(); s > 0 && c.hasRoom() || r > 0 && (len(c.Values) > 0 || c.Closed) {
					t.Fatalf("seed %d: %d wait to send, %d to receive, on %+v", seed, s, r, c)
				}
				if len(c.Undelivered) != int(c.Dropped) {
					t.Fatalf("seed %d: %d dropped, %v not delivered", seed, c.Dropped, c.Undelivered)
				}
			}
			slices.Sort(all)
			if n := len(slices.Compact(slices.Clone(all))); n != len(all) || n != int(sent) || len(got) != int(received) {
				t.Fatalf("seed %d: %d were sent and %d received; there are %v", seed, sent, received, all)
			}
		}
	}
}
