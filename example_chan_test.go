package coir_test

// Examples of channels and of the types built on them: short programs, each about one thing, with its output.
//
// Most need no fiber. An operation in a plain goroutine does the same, so context.Background() is enough.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
)

// With capacity 0 the send returns once a receiver has taken the value.
func ExampleNewChan() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		orders := coir.NewChan[string](0)
		n.Go("shop", func(ctx context.Context) error {
			defer orders.Close()
			return orders.Send(ctx, "two ropes")
		})
		order, err := orders.Recv(ctx)
		fmt.Println(order, err)
		_, err = orders.Recv(ctx)
		fmt.Println(errors.Is(err, coir.ErrClosed))
		return nil
	})
	// Output:
	// two ropes <nil>
	// true
}

// An unbounded channel keeps everything that is sent: a send never waits.
func ExampleNewChan_unbounded() {
	ctx := context.Background()
	c := coir.NewChan[int](coir.Unbounded)
	for i := range 100_000 {
		_ = c.Send(ctx, i)
	}
	first, _ := c.Recv(ctx)
	fmt.Println("first", first, "and", c.Len(), "more")
	// Output: first 0 and 99999 more
}

// A conflated channel keeps only the newest value, for a receiver that comes late.
func ExampleNewChan_conflated() {
	ctx := context.Background()
	level := coir.NewChan[string](coir.Conflated)
	for _, l := range []string{"quiet", "normal", "loud"} {
		_ = level.Send(ctx, l) // never waits
	}
	newest, _ := level.Recv(ctx)
	fmt.Println(newest)
	// Output: loud
}

// Errors of the channel show its name.
func ExampleWithName() {
	orders := coir.NewChan[int](8, coir.WithName("orders"))
	orders.Close()
	fmt.Println(orders.Send(context.Background(), 1))
	// Output: coir: send on orders: channel is closed
}

// A channel that drops the oldest value keeps the last few, and a sender never waits.
func ExampleWithOverflow() {
	ctx := context.Background()
	recent := coir.NewChan[int](3, coir.WithOverflow(coir.OverflowDropOldest))
	for i := range 10 {
		_ = recent.Send(ctx, i)
	}
	recent.Close()
	for v, err := range recent.All(ctx) {
		if err != nil {
			return
		}
		fmt.Println(v)
	}
	fmt.Println("dropped:", recent.Stats().Dropped)
	// Output:
	// 7
	// 8
	// 9
	// dropped: 7
}

// A channel that drops the newest value keeps the values that were sent first.
func ExampleWithOverflow_dropNewest() {
	ctx := context.Background()
	seats := coir.NewChan[string](2, coir.WithOverflow(coir.OverflowDropNewest))
	for _, guest := range []string{"Ada", "Ben", "Cleo"} {
		fmt.Println(guest, seats.Send(ctx, guest)) // a drop is no error
	}
	fmt.Println("seated:", seats.Len(), "turned away:", seats.Stats().Dropped)
	// Output:
	// Ada <nil>
	// Ben <nil>
	// Cleo <nil>
	// seated: 2 turned away: 1
}

// A channel with OverflowFail returns an error to the sender, which still has the value.
func ExampleWithOverflow_fail() {
	ctx := context.Background()
	queue := coir.NewChan[string](1, coir.WithOverflow(coir.OverflowFail))
	fmt.Println(queue.Send(ctx, "first"))
	err := queue.Send(ctx, "second")
	fmt.Println(errors.Is(err, coir.ErrWouldBlock))
	// Output:
	// <nil>
	// true
}

func ExampleOverflowPolicy() {
	fmt.Println(coir.OverflowWait, "|", coir.OverflowDropOldest, "|", coir.OverflowDropNewest, "|", coir.OverflowFail)
	// Output: wait | drop oldest | drop newest | fail
}

// Values that the channel accepted but will not deliver go to a handler.
func ExampleOnUndelivered() {
	ctx := context.Background()
	c := coir.NewChan[string](coir.Conflated, coir.OnUndelivered(func(s string) { fmt.Println("not delivered:", s) }))
	_ = c.Send(ctx, "draft")
	_ = c.Send(ctx, "final") // replaces the draft
	c.Abort(nil)
	// Output:
	// not delivered: draft
	// not delivered: final
}

// A timed channel records when it was used.
func ExampleWithTiming() {
	ctx := context.Background()
	c := coir.NewChan[int](1, coir.WithTiming())
	_ = c.Send(ctx, 1)
	_, _ = c.Recv(ctx)
	s := c.Stats()
	fmt.Println(!s.First.IsZero(), !s.Last.Before(s.First))
	// Output: true true
}

// If a send fails, the value still belongs to the sender.
func ExampleChan_Send() {
	ctx := context.Background()
	c := coir.NewChan[int](1)
	fmt.Println(c.Send(ctx, 1))
	c.Close()
	fmt.Println(c.Send(ctx, 2)) // an error, not a panic
	// Output:
	// <nil>
	// coir: channel is closed
}

// The values that a closed channel holds can still be received.
func ExampleChan_Recv() {
	ctx := context.Background()
	c := coir.NewChan[int](1)
	_ = c.Send(ctx, 1)
	c.Close()
	fmt.Println(c.Recv(ctx))
	fmt.Println(c.Recv(ctx))
	// Output:
	// 1 <nil>
	// 0 coir: channel is closed
}

func ExampleChan_TrySend() {
	c := coir.NewChan[int](1)
	fmt.Println(c.TrySend(1))
	fmt.Println(c.TrySend(2)) // full
	// Output:
	// <nil>
	// coir: would block
}

func ExampleChan_TryRecv() {
	c := coir.NewChan[int](1)
	_, err := c.TryRecv()
	fmt.Println(errors.Is(err, coir.ErrWouldBlock))
	_ = c.TrySend(1)
	fmt.Println(c.TryRecv())
	// Output:
	// true
	// 1 <nil>
}

func ExampleChan_SendTimeout() {
	c := coir.NewChan[int](0)
	err := c.SendTimeout(context.Background(), 1, time.Millisecond) // there is no receiver
	fmt.Println(errors.Is(err, coir.ErrTimeout))
	// Output: true
}

func ExampleChan_RecvTimeout() {
	c := coir.NewChan[int](0)
	_, err := c.RecvTimeout(context.Background(), time.Millisecond) // there is no sender
	fmt.Println(errors.Is(err, coir.ErrTimeout), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

func ExampleChan_SendMany() {
	ctx := context.Background()
	c := coir.NewChan[string](4)
	fmt.Println(c.SendMany(ctx, []string{"a", "b", "c"}))
	fmt.Println(c.Len())
	// Output:
	// 3 <nil>
	// 3
}

// RecvMany receives the available values, and does not wait until the slice is full.
func ExampleChan_RecvMany() {
	ctx := context.Background()
	c := coir.NewChan[int](coir.Unbounded)
	for i := range 5 {
		_ = c.Send(ctx, i)
	}
	c.Close()
	batch := make([]int, 3)
	for {
		n, err := c.RecvMany(ctx, batch)
		if err != nil {
			break
		}
		fmt.Println(batch[:n])
	}
	// Output:
	// [0 1 2]
	// [3 4]
}

// RecvBatch waits a little for more values, so that a slow operation, such as an insert into a database, runs once for
// many values.
func ExampleChan_RecvBatch() {
	rows := coir.NewChan[int](8)
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("source", func(ctx context.Context) error {
			defer rows.Close()
			for i := range 5 {
				if err := rows.Send(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
		n.Go("insert", func(ctx context.Context) error {
			batch := make([]int, 3)
			for {
				n, err := rows.RecvBatch(ctx, batch, time.Minute)
				if errors.Is(err, coir.ErrClosed) {
					return nil
				}
				if err != nil {
					return err
				}
				fmt.Println(batch[:n])
			}
		})
		return nil
	})
	fmt.Println(err)
	// Output:
	// [0 1 2]
	// [3 4]
	// <nil>
}

// The value is sent only if this case happens.
func ExampleChan_SendCase() {
	ctx := context.Background()
	full, free := coir.NewChan[int](0), coir.NewChan[int](1)
	i, err := coir.Select(ctx, full.SendCase(1), free.SendCase(2))
	fmt.Println(i, err, free.Len())
	// Output: 1 <nil> 1
}

func ExampleChan_RecvCase() {
	ctx := context.Background()
	names, numbers := coir.NewChan[string](1), coir.NewChan[int](1)
	_ = numbers.Send(ctx, 7)
	var name string
	var number int
	switch i, err := coir.Select(ctx, names.RecvCase(&name), numbers.RecvCase(&number)); {
	case err != nil:
		fmt.Println(err)
	case i == 0:
		fmt.Println("name", name)
	case i == 1:
		fmt.Println("number", number)
	}
	// Output: number 7
}

// Close is gentle: the values in the channel are still delivered.
func ExampleChan_Close() {
	ctx := context.Background()
	c := coir.NewChan[int](2)
	_, _ = c.SendMany(ctx, []int{1, 2})
	fmt.Println(c.Close(), c.Close()) // the second does nothing
	for v, err := range c.All(ctx) {
		if err != nil {
			return
		}
		fmt.Println(v)
	}
	// Output:
	// true false
	// 1
	// 2
}

// Abort is hard: no more values are delivered, and every operation returns the cause.
func ExampleChan_Abort() {
	ctx := context.Background()
	c := coir.NewChan[int](2)
	_ = c.Send(ctx, 1)
	broken := errors.New("the disk is full")
	c.Abort(broken)
	_, err := c.Recv(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, coir.ErrClosed), errors.Is(err, broken))
	// Output:
	// coir: channel was aborted: the disk is full
	// true true
}

func ExampleChan_All() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		squares := coir.NewChan[int](0)
		n.Go("squares", func(ctx context.Context) error {
			defer squares.Close()
			for i := range 4 {
				if err := squares.Send(ctx, i*i); err != nil {
					return err
				}
			}
			return nil
		})
		for s, err := range squares.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(s)
		}
		return nil // squares is closed, and all have come
	})
	// Output:
	// 0
	// 1
	// 4
	// 9
}

// A stream that is cut short does not look like a complete one: the last pair has the error.
func ExampleChan_All_aborted() {
	ctx := context.Background()
	lines := coir.NewChan[string](2)
	_ = lines.Send(ctx, "the first line")
	for line, err := range lines.All(ctx) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(line)
		lines.Abort(errors.New("the disk is full"))
	}
	// Output:
	// the first line
	// coir: channel was aborted: the disk is full
}

func ExampleChan_Len() {
	c := coir.NewChan[int](8)
	_ = c.TrySend(1)
	fmt.Println(c.Len(), "of", c.Cap())
	// Output: 1 of 8
}

func ExampleChan_Cap() {
	fmt.Println(coir.NewChan[int](8).Cap(), coir.NewChan[int](coir.Conflated).Cap())
	// Output: 8 1
}

func ExampleChan_Name() {
	fmt.Println(coir.NewChan[int](8, coir.WithName("orders")).Name())
	// Output: orders
}

// Stats shows how full a channel is, how many operations wait, and what went wrong.
func ExampleChan_Stats() {
	c := coir.NewChan[int](2, coir.WithName("orders"))
	for i := range 3 {
		_ = c.TrySend(i) // the third does not fit
	}
	_, _ = c.TryRecv()
	s := c.Stats()
	fmt.Printf("%s: %d of %d, %d at most\n", s.Name, s.Len, s.Cap, s.High)
	fmt.Printf("sent %d, received %d, found it full %d\n", s.Sent, s.Received, s.Send.WouldBlock)
	// Output:
	// orders: 1 of 2, 2 at most
	// sent 2, received 1, found it full 1
}

// Several fibers send, and none of them needs to know which is the last.
func ExamplePipe() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		w, r := coir.Pipe[int](8)
		for i := range 3 {
			w := w.Clone()
			n.Go("writer", func(ctx context.Context) error {
				defer w.Close() // the last Close closes the channel
				return w.Send(ctx, i)
			}, coir.WithIndex(i))
		}
		w.Close() // each fiber has its own writer
		sum := 0
		for v, err := range r.All(ctx) {
			if err != nil {
				return err
			}
			sum += v
		}
		fmt.Println("all writers are gone; the sum is", sum)
		return nil
	})
	// Output: all writers are gone; the sum is 3
}

// A writer has the sending half of a channel.
func ExampleWriter() {
	ctx := context.Background()
	w, r := coir.Pipe[int](4)
	_ = w.Send(ctx, 1)
	_ = w.TrySend(2)
	_ = w.SendTimeout(ctx, 3, time.Second)
	_, _ = w.SendMany(ctx, []int{4})
	fmt.Println(w.TrySend(5), w.Stats().Len)
	r.Close()
	// Output: coir: would block 4
}

func ExampleWriter_Clone() {
	ctx := context.Background()
	w, r := coir.Pipe[string](8)
	other := w.Clone()
	w.Close()
	fmt.Println(other.Send(ctx, "still open"))
	fmt.Println(r.Recv(ctx))
	// Output:
	// <nil>
	// still open <nil>
}

func ExampleWriter_Close() {
	ctx := context.Background()
	w, r := coir.Pipe[int](1)
	_ = w.Send(ctx, 1)
	w.Close()
	fmt.Println(r.Recv(ctx))
	_, err := r.Recv(ctx)
	fmt.Println(errors.Is(err, coir.ErrClosed))
	// Output:
	// 1 <nil>
	// true
}

// A writer that has nothing to send can still notice that the last reader has been closed.
func ExampleWriter_GoneCase() {
	ctx := context.Background()
	w, r := coir.Pipe[int](8)
	ticks := coir.NewChan[int](0) // the source of its values
	r.Close()
	var tick int
	i, err := coir.Select(ctx, ticks.RecvCase(&tick), w.GoneCase())
	fmt.Println(i, err)
	// Output: 1 <nil>
}

// A reader has the receiving half of a channel.
func ExampleReader() {
	ctx := context.Background()
	w, r := coir.Pipe[int](8)
	_, _ = w.SendMany(ctx, []int{1, 2, 3, 4, 5})
	w.Close()
	fmt.Println(r.Recv(ctx))
	fmt.Println(r.TryRecv())
	fmt.Println(r.RecvTimeout(ctx, time.Second))
	rest := make([]int, 8)
	n, err := r.RecvMany(ctx, rest)
	fmt.Println(rest[:n], err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// [4 5] <nil>
}

// Each reader gets a part of the values.
func ExampleReader_Clone() {
	ctx := context.Background()
	w, r := coir.Pipe[int](8)
	other := r.Clone()
	_, _ = w.SendMany(ctx, []int{1, 2})
	fmt.Println(r.Recv(ctx))
	r.Close()
	fmt.Println(other.Recv(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// After the last reader has been closed, writers get an error.
func ExampleReader_Close() {
	ctx := context.Background()
	w, r := coir.Pipe[int](8, coir.OnUndelivered(func(v int) { fmt.Println("nobody took", v) }))
	_ = w.Send(ctx, 1)
	r.Close()
	err := w.Send(ctx, 2)
	fmt.Println(errors.Is(err, coir.ErrClosed))
	// Output:
	// nobody took 1
	// true
}

func ExampleReader_GoneCase() {
	ctx := context.Background()
	w, r := coir.Pipe[int](8)
	_ = w.Send(ctx, 1)
	w.Close()
	i, err := coir.Select(ctx, r.GoneCase())
	fmt.Println(i, err)
	fmt.Println(r.Recv(ctx)) // values sent before can still be received
	// Output:
	// 0 <nil>
	// 1 <nil>
}

// The first case that can happen is performed, and the others have no effect.
func ExampleSelect() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		answers, questions := coir.NewChan[string](0), coir.NewChan[string](0)
		n.Go("oracle", func(ctx context.Context) error {
			if _, err := questions.Recv(ctx); err != nil {
				return err
			}
			return answers.Send(ctx, "42")
		})
		ask := questions.SendCase("what is six times seven?")
		var answer string
		for answer == "" {
			i, err := coir.Select(ctx, ask, answers.RecvCase(&answer), coir.After(time.Minute))
			if err != nil {
				return err
			}
			if i == 0 {
				ask = coir.Case{} // it was sent: the zero case never happens
			}
			fmt.Printf("case %d: %q\n", i, answer)
		}
		return nil
	})
	// Output:
	// case 0: ""
	// case 1: "42"
}

// The list of cases may be built at run time.
func ExampleSelect_list() {
	ctx := context.Background()
	inputs := make([]*coir.Chan[int], 10)
	cases := make([]coir.Case, len(inputs))
	var v int
	for i := range inputs {
		inputs[i] = coir.NewChan[int](1)
		cases[i] = inputs[i].RecvCase(&v)
	}
	_ = inputs[7].Send(ctx, 70)
	i, err := coir.Select(ctx, cases...)
	fmt.Println(i, v, err)
	// Output: 7 70 <nil>
}

// SelectPriority takes the first ready case in the list.
func ExampleSelectPriority() {
	ctx := context.Background()
	urgent, normal := coir.NewChan[string](8), coir.NewChan[string](8)
	_, _ = normal.SendMany(ctx, []string{"letter", "parcel"})
	_, _ = urgent.SendMany(ctx, []string{"telegram"})
	for range 3 {
		var item string
		_, err := coir.SelectPriority(ctx, urgent.RecvCase(&item), normal.RecvCase(&item))
		fmt.Println(item, err)
	}
	// Output:
	// telegram <nil>
	// letter <nil>
	// parcel <nil>
}

func ExampleTrySelect() {
	a, b := coir.NewChan[int](1), coir.NewChan[int](1)
	var v int
	i, err := coir.TrySelect(a.RecvCase(&v), b.RecvCase(&v))
	fmt.Println(i, errors.Is(err, coir.ErrWouldBlock))
	_ = b.TrySend(5)
	i, err = coir.TrySelect(a.RecvCase(&v), b.RecvCase(&v))
	fmt.Println(i, v, err)
	// Output:
	// -1 true
	// 1 5 <nil>
}

func ExampleAfter() {
	ctx := context.Background()
	news := coir.NewChan[string](0)
	var item string
	i, err := coir.Select(ctx, news.RecvCase(&item), coir.After(time.Millisecond))
	fmt.Println(i, err) // the timeout is a case like any other, not an error
	// Output: 1 <nil>
}

// The zero Case never happens, so it can stand for a disabled case.
func ExampleCase() {
	ctx := context.Background()
	in := coir.NewChan[int](1)
	_ = in.Send(ctx, 1)
	paused := true
	receive := in.RecvCase(nil)
	if paused {
		receive = coir.Case{}
	}
	i, err := coir.Select(ctx, receive, coir.After(time.Millisecond))
	fmt.Println(i, err, in.Len())
	// Output: 1 <nil> 1
}

// The end of a fiber is a case like any other.
func ExampleFiber_DoneCase() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		results := coir.NewChan[int](0)
		worker := n.Go("worker", func(ctx context.Context) error {
			return results.Send(ctx, 1)
		})
		for {
			var result int
			var failed error
			i, err := coir.Select(ctx, results.RecvCase(&result), worker.DoneCase(&failed))
			if err != nil {
				return err
			}
			if i == 1 {
				fmt.Println("ended:", failed)
				return nil
			}
			fmt.Println("result:", result)
		}
	})
	// Output:
	// result: 1
	// ended: <nil>
}

// A selector keeps its cases from one event to the next.
func ExampleSelector() {
	ctx := context.Background()
	s := coir.NewSelector()
	defer s.Clear()
	rooms := make([]*coir.Chan[string], 1000)
	said := make([]string, len(rooms))
	for i := range rooms {
		rooms[i] = coir.NewChan[string](8)
		s.Add(rooms[i].RecvCase(&said[i])) // its number is i
	}
	_ = rooms[700].Send(ctx, "hello")
	_ = rooms[30].Send(ctx, "anybody here?")
	for range 2 {
		i, err := s.Wait(ctx)
		fmt.Println(i, said[i], err)
	}
	// Output:
	// 700 hello <nil>
	// 30 anybody here? <nil>
}

// A receive stays registered until its channel is closed and holds no more values.
func ExampleSelector_Wait() {
	ctx := context.Background()
	s := coir.NewSelector()
	c := coir.NewChan[int](8)
	_, _ = c.SendMany(ctx, []int{1, 2})
	c.Close()
	var v int
	s.Add(c.RecvCase(&v))
	for s.Len() > 0 {
		i, err := s.Wait(ctx)
		if errors.Is(err, coir.ErrClosed) {
			fmt.Println(i, "is closed")
			continue
		}
		fmt.Println(i, v)
	}
	// Output:
	// 0 1
	// 0 2
	// 0 is closed
}

func ExampleSelector_Add() {
	s := coir.NewSelector()
	a, b := coir.NewChan[int](1), coir.NewChan[int](1)
	var v int
	fmt.Println(s.Add(a.RecvCase(&v)), s.Add(b.RecvCase(&v)), s.Add(coir.After(time.Hour)))
	fmt.Println(s.Len())
	s.Clear()
	// Output:
	// 0 1 2
	// 3
}

func ExampleSelector_Remove() {
	s := coir.NewSelector()
	defer s.Clear()
	c := coir.NewChan[int](1)
	id := s.Add(c.RecvCase(nil))
	fmt.Println(s.Remove(id), s.Remove(id), s.Len())
	_ = c.TrySend(1) // stays in the channel
	fmt.Println(c.Len())
	// Output:
	// true false 0
	// 1
}

func ExampleSelector_Clear() {
	s := coir.NewSelector()
	s.Add(coir.NewChan[int](1).RecvCase(nil))
	s.Clear()
	fmt.Println(s.Len())
	// Output: 0
}

// Tasks run concurrently, and their results come in the order of the tasks.
func ExampleOrdered() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		pages := coir.NewOrdered[string](4)
		n.Go("fetch all", func(ctx context.Context) error {
			defer pages.Close()
			for i := range 3 {
				err := pages.Go(ctx, n, "fetch", func(ctx context.Context) (string, error) {
					err := coir.Sleep(ctx, time.Duration(3-i)*time.Millisecond) // the first takes longest
					return fmt.Sprint("page ", i), err
				}, coir.WithIndex(i))
				if err != nil {
					return err
				}
			}
			return nil
		})
		for page, err := range pages.All(ctx) {
			fmt.Println(page, err)
		}
		return nil
	})
	// Output:
	// page 0 <nil>
	// page 1 <nil>
	// page 2 <nil>
}

// The error of a task is a result like any other.
func ExampleOrdered_Go() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		o := coir.NewOrdered[int](8)
		for i := range 3 {
			_ = o.Go(ctx, n, "divide", func(context.Context) (int, error) {
				if i == 1 {
					return 0, errors.New("does not divide")
				}
				return 10 * i, nil
			})
		}
		o.Close()
		for v, err := range o.All(ctx) {
			fmt.Println(v, err)
		}
		return nil
	})
	// Output:
	// 0 <nil>
	// 0 does not divide
	// 20 <nil>
}

func ExampleOrdered_Recv() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		o := coir.NewOrdered[string](8)
		_ = o.Go(ctx, n, "greet", func(context.Context) (string, error) { return "hello", nil })
		fmt.Println(o.Len(), "queued")
		fmt.Println(o.Recv(ctx))
		o.Close()
		_, err := o.Recv(ctx)
		fmt.Println(errors.Is(err, coir.ErrClosed))
		return nil
	})
	// Output:
	// 1 queued
	// hello <nil>
	// true
}

type conn struct{ id int }

// Several fibers share one connection. It is created on first use; a fiber waits while another uses it.
func ExamplePool() {
	made := 0
	pool := coir.NewPool(1, func(context.Context) (*conn, error) {
		made++
		return &conn{made}, nil
	}, nil)
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range 10 {
			n.Go("query", func(ctx context.Context) error {
				c, err := pool.Get(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = pool.Put(c) }() // gives it back
				return coir.Yield(ctx)             // asks the server
			}, coir.WithIndex(i))
		}
		return nil
	})
	fmt.Println(made, "made,", pool.Len(), "idle")
	// Output: 1 made, 1 idle
}

// reset prepares a returned value for reuse. If it returns an error, the pool discards the value.
func ExampleNewPool() {
	ctx := context.Background()
	made := 0
	pool := coir.NewPool(1, func(context.Context) (*conn, error) {
		made++
		return &conn{made}, nil
	}, func(c *conn) error {
		if c.id == 1 {
			return errors.New("broken")
		}
		return nil
	}, coir.OnUndelivered(func(c *conn) { fmt.Println("hang up", c.id) }))
	for range 3 {
		c, err := pool.Get(ctx)
		fmt.Println(c.id, err)
		_ = pool.Put(c)
	}
	// Output:
	// 1 <nil>
	// hang up 1
	// 2 <nil>
	// 2 <nil>
}

// The context limits how long to wait for a connection.
func ExamplePool_Get() {
	pool := coir.NewPool(1, func(context.Context) (*conn, error) { return &conn{1}, nil }, nil)
	c, err := pool.Get(context.Background())
	fmt.Println(c.id, err)
	ctx, cancel := coir.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = pool.Get(ctx) // the only one is lent
	fmt.Println(errors.Is(err, coir.ErrTimeout))
	// Output:
	// 1 <nil>
	// true
}

// Put returns a value to the pool, and the next Get returns it again.
func ExamplePool_Put() {
	ctx := context.Background()
	pool := coir.NewPool(2, func(context.Context) (*conn, error) { return new(conn), nil }, nil)
	first, _ := pool.Get(ctx)
	fmt.Println(pool.Put(first))
	again, _ := pool.Get(ctx)
	fmt.Println(again == first)
	_ = pool.Put(again)
	fmt.Println(pool.Put(again) != nil) // it has been given back
	// Output:
	// <nil>
	// true
	// true
}

// TryGet takes an idle connection, and does not create one.
func ExamplePool_TryGet() {
	pool := coir.NewPool(1, func(context.Context) (*conn, error) { return &conn{1}, nil }, nil)
	_, err := pool.TryGet() // none has been made
	fmt.Println(errors.Is(err, coir.ErrWouldBlock))
	c, _ := pool.Get(context.Background())
	_ = pool.Put(c)
	c, err = pool.TryGet()
	fmt.Println(c.id, err)
	// Output:
	// true
	// 1 <nil>
}

// If a value is lent when the pool is closed, it is discarded when it is returned.
func ExamplePool_Close() {
	ctx := context.Background()
	pool := coir.NewPool(1, func(context.Context) (*conn, error) { return &conn{1}, nil }, nil,
		coir.OnUndelivered(func(c *conn) { fmt.Println("hang up", c.id) }))
	c, _ := pool.Get(ctx)
	pool.Close()
	_, err := pool.Get(ctx)
	fmt.Println(errors.Is(err, coir.ErrClosed))
	fmt.Println(pool.Put(c))
	// Output:
	// true
	// hang up 1
	// <nil>
}

// A fiber sends a value without waiting, and continues before the value has been received.
func ExampleChan_SendAsync() {
	c := coir.NewChan[string](0)
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		sent := c.SendAsync(n, "first")
		c.SendAsync(n, "second")
		for range 2 {
			v, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			fmt.Println(v)
		}
		_, err := sent.Wait(ctx)
		return err
	})
	fmt.Println(err)
	// Output:
	// first
	// second
	// <nil>
}

// A receive calls a function when its value arrives, so that no fiber has to wait for it.
func ExampleChan_RecvAsync() {
	c := coir.NewChan[string](0)
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.RecvAsync(n).OnDone(func(v string, err error) { fmt.Println(v, err) })
		return c.Send(ctx, "hello")
	})
	fmt.Println(err)
	// Output:
	// hello <nil>
	// <nil>
}
