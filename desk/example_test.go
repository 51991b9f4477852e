package desk_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// A caller opens a ticket, sends its id with the request, and waits. The code that reads the replies resolves the id.
func Example() {
	type message struct {
		ID   string
		Text string
	}
	replies := desk.New[string](desk.WithName("replies"))
	requests := coir.NewChan[message](1)
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("server", func(ctx context.Context) error {
			m, err := requests.Recv(ctx)
			if err != nil {
				return err
			}
			id, err := desk.ParseID(m.ID) // the id is untrusted text
			if err != nil {
				return err
			}
			return replies.Resolve(id, "hello "+m.Text)
		})
		n.Go("caller", func(ctx context.Context) error {
			t, err := replies.OpenTimeout(ctx, 5*time.Second)
			if err != nil {
				return err
			}
			defer t.Cancel()
			if err := requests.Send(ctx, message{t.ID().String(), "world"}); err != nil {
				return err
			}
			reply, err := t.Wait(ctx)
			fmt.Println(reply)
			return err
		})
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: hello world
}

// Answers that are late, duplicate, or for another desk are distinguished and counted.
func ExampleDesk_Resolve() {
	ctx := context.Background()
	replies, others := desk.New[int](desk.WithName("replies")), desk.New[int](desk.WithName("others"))
	for _, d := range []*desk.Desk[int]{replies, others} {
		t, err := d.Open(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(replies.Resolve(t.ID(), 1))
		fmt.Println(replies.Resolve(t.ID(), 1))
		t.Cancel()
	}
	s := replies.Stats()
	fmt.Println(s.Resolved, s.Duplicate, s.Foreign)
	// Output:
	// <nil>
	// desk: replies: the ticket has already been completed
	// desk: replies: the ticket belongs to another desk
	// desk: replies: the ticket belongs to another desk
	// 1 1 2
}

// A ticket may be completed with an error.
func ExampleDesk_Reject() {
	d := desk.New[int](desk.WithName("replies"))
	t, err := d.Open(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Reject(t.ID(), errors.New("no such user")))
	_, err = t.Wait(context.Background())
	fmt.Println(err)
	// Output:
	// <nil>
	// no such user
}

// When a connection is lost, FailAll wakes all callers that wait for replies.
func ExampleDesk_FailAll() {
	d := desk.New[int](desk.WithName("replies"))
	for i := range 2 {
		t, err := d.Open(context.Background(), coir.WithName(fmt.Sprint("request ", i)))
		if err != nil {
			fmt.Println(err)
			return
		}
		t.OnDone(func(_ int, err error) { fmt.Println(t.Name(), err) })
	}
	for t := range d.All() {
		fmt.Println(t)
	}
	fmt.Println(d.FailAll(errors.New("connection lost")), d)
	// Output:
	// desk.Ticket(request 0, not completed, 0 waiting)
	// desk.Ticket(request 1, not completed, 0 waiting)
	// request 0 connection lost
	// request 1 connection lost
	// 2 desk.Desk(replies, 0 open)
}

// Open waits if the desk is full, or fails.
func ExampleWithLimit() {
	d := desk.New[int](desk.WithName("replies"), desk.WithLimit(1), desk.WithOverflow(coir.OverflowFail))
	ctx := context.Background()
	first, err := d.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = d.Open(ctx)
	fmt.Println(errors.Is(err, coir.ErrWouldBlock), d.Len(), d.Cap())
	fmt.Println(first.Cancel())
	_, err = d.Open(ctx)
	fmt.Println(err)
	// Output:
	// true 1 1
	// true
	// <nil>
}

// A select waits for the first of several tickets to end.
func ExampleTicket_DoneCase() {
	d := desk.New[string](desk.WithName("replies"))
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		slow, err := d.Open(ctx)
		if err != nil {
			return err
		}
		quick, err := d.Open(ctx)
		if err != nil {
			return err
		}
		n.Go("server", func(context.Context) error { return d.Resolve(quick.ID(), "here") })
		var v string
		var fault error
		which, err := coir.Select(ctx, slow.DoneCase(&v, &fault), quick.DoneCase(&v, &fault))
		fmt.Println(which, v, fault)
		return err
	})
	fmt.Println(err, d.Len()) // the other ticket ended with the nursery
	// Output:
	// 1 here <nil>
	// <nil> 0
}
