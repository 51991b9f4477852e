package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
)

// Result holds the findings of the driver.
type Result struct {
	Kills        int
	Acknowledged int // payments whose Send returned nil
	Doubtful     int // booked payments whose sender ended before it could report them
}

// String returns the result as text.
func (r Result) String() string {
	return fmt.Sprintf("%d kills; %d payments were acknowledged, and each is booked once; %d more are booked once, "+
		"whose senders ended before they could say so", r.Kills, r.Acknowledged, r.Doubtful)
}

// tables holds the statements that create the tables of the effects.
const tables = `
	create table booking (payment bigint not null, cents bigint not null);
	create table account (id bigint primary key, cents bigint not null);
	insert into account select id, 0 from generate_series(0, 9) as id;`

// drive starts two senders and two receivers, repeatedly kills one of the four, and checks the books.
func drive(ctx context.Context, db string, kills int) (Result, error) {
	pool, err := pgxpool.New(ctx, db)
	if err != nil {
		return Result{}, err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, postgres.SQL("coir")+tables); err != nil {
		return Result{}, fmt.Errorf("make the tables, in a database that has none of them: %w", err)
	}
	d := &driver{db: db, acks: coir.NewChan[int64](coir.Unbounded), seen: map[int64]bool{}}
	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		d.n = n
		defer d.killAll()
		if err := d.disturb(ctx, kills); err != nil {
			return err
		}
		return d.finish(ctx, pool)
	})
	if err != nil {
		return Result{}, err
	}
	booked, err := d.check(ctx, pool)
	return Result{kills, len(d.seen), booked - len(d.seen)}, err
}

// driver runs the processes.
type driver struct {
	db   string
	n    *coir.Nursery
	next int64             // the first payment of the next sender
	all  [4]*child         // two senders, two receivers
	acks *coir.Chan[int64] // acknowledged payments, as reported by the senders
	seen map[int64]bool    // the acknowledged payments so far
}

// child is a process.
type child struct {
	cmd   *exec.Cmd
	in    io.Closer // its end ends the process
	ended coir.Promise[struct{}]
}

// start starts the process with the index.
func (d *driver) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"receive", "-db", d.db}
	if i < 2 {
		args = []string{"send", "-db", d.db, "-first", strconv.FormatInt(d.next, 10)}
		d.next += 1_000_000_000
	}
	c := &child{cmd: exec.Command(self, args...)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	d.all[i] = c
	d.n.Go("listen to "+args[0], func(context.Context) error {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			number, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err == nil {
				err = d.acks.TrySend(number)
			}
			if err != nil {
				return err
			}
		}
		if err := c.cmd.Wait(); err != nil {
			c.ended.Reject(fmt.Errorf("%s: %w", args[0], err))
		} else {
			c.ended.Resolve(struct{}{})
		}
		return nil
	}, coir.WithGoroutine(), coir.WithIndex(i))
	return nil
}

func (d *driver) killAll() {
	for _, c := range d.all {
		if c != nil {
			_ = c.cmd.Process.Kill() // it fails if the process has ended
		}
	}
}

// disturb starts the processes, and repeatedly kills one of them after a random number of payments.
func (d *driver) disturb(ctx context.Context, kills int) error {
	for i := range d.all {
		if err := d.start(i); err != nil {
			return err
		}
	}
	for range kills {
		for range 1 + rand.IntN(100) {
			number, err := d.acks.Recv(ctx)
			if err != nil {
				return err
			}
			d.seen[number] = true
		}
		i := rand.IntN(len(d.all))
		if err := d.all[i].cmd.Process.Kill(); err != nil {
			return fmt.Errorf("a process has ended by itself: %w", err)
		}
		if _, err := d.all[i].ended.Wait(ctx); coir.Ended(ctx) != nil {
			return err
		}
		if err := d.start(i); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the senders, closes the channel, and waits for the receivers, which book what is in it.
func (d *driver) finish(ctx context.Context, pool *pgxpool.Pool) error {
	for _, c := range d.all[:2] {
		if err := c.in.Close(); err != nil {
			return err
		}
		if _, err := c.ended.Wait(ctx); err != nil {
			return err
		}
	}
	for {
		number, err := d.acks.TryRecv()
		if errors.Is(err, coir.ErrWouldBlock) {
			break
		}
		if err != nil {
			return err
		}
		d.seen[number] = true
	}
	if err := open(ctx, pool, func(ctx context.Context, payments *remote.Chan[Payment]) error {
		return payments.Close(ctx)
	}); err != nil {
		return err
	}
	for _, c := range d.all[2:] {
		if _, err := c.ended.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// check compares what was acknowledged with what was booked. It returns how many payments were booked.
func (d *driver) check(ctx context.Context, pool *pgxpool.Pool) (booked int, err error) {
	rows, err := pool.Query(ctx, "select payment from booking")
	if err != nil {
		return 0, err
	}
	times := map[int64]int{}
	for rows.Next() {
		var payment int64
		if err := rows.Scan(&payment); err != nil {
			return 0, err
		}
		times[payment]++
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	var wrong []error
	for payment, n := range times {
		if n > 1 {
			wrong = append(wrong, fmt.Errorf("payment %d is booked %d times", payment, n))
		}
	}
	for payment := range d.seen {
		if times[payment] == 0 {
			wrong = append(wrong, fmt.Errorf("payment %d was acknowledged, and is not booked", payment))
		}
	}
	var differ bool
	err = pool.QueryRow(ctx, "select (select sum(cents) from account) <> (select sum(cents) from booking)").Scan(&differ)
	if differ {
		wrong = append(wrong, errors.New("the accounts differ from the bookings"))
	}
	return len(times), errors.Join(append(wrong, err)...)
}
