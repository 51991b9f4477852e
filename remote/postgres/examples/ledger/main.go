// Command ledger books payments that other processes send: each exactly once, whichever process is killed when.
//
//	ledger drive -db postgres://... -kills 10
//
// starts senders and receivers as processes, kills them at random moments, starts them again, and then compares what
// was acknowledged with what was booked. Its other forms, send and receive, are those processes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	role := ""
	if len(args) > 0 {
		role = args[0]
		args = args[1:]
	}
	flags := flag.NewFlagSet("ledger "+role, flag.ContinueOnError)
	db := flags.String("db", "", "how to connect to PostgreSQL")
	kills := flags.Int("kills", 10, "of drive: how many processes are killed")
	first := flags.Int64("first", 0, "of send: the number of the first payment")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx := context.Background()
	switch role {
	case "drive":
		got, err := drive(ctx, *db, *kills)
		if err == nil {
			fmt.Println(got)
		}
		return err
	case "send":
		return process(ctx, *db, func(ctx context.Context, payments *remote.Chan[Payment]) error {
			return send(ctx, payments, *first, os.Stdout)
		})
	case "receive":
		return process(ctx, *db, receive)
	}
	return errors.New("want drive, send or receive")
}

// Payment is a value of the channel. Its number is its identity.
type Payment struct {
	Number int64
	Cents  int64
}

const (
	capacity  = 64
	senders   = 8                    // fibers of a process
	receivers = 4                    // the same
	lease     = 2 * time.Second      // after which a killed process's values are redelivered
	patience  = 1_000_000            // tries: a process that is killed counts as one
	accepted  = remote.MeaningStored // the server of the test need not have standbys
)

// open calls f with the channel of payments.
func open(ctx context.Context, pool *pgxpool.Pool,
	f func(ctx context.Context, payments *remote.Chan[Payment]) error,
) error {
	t, err := postgres.New(ctx, pool, postgres.WithLease(lease))
	if err != nil {
		return err
	}
	defer t.Close()
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		payments, err := remote.Durable[Payment](ctx, n, t, "payments", capacity,
			remote.WithMeaning(accepted), remote.WithTries(patience))
		if err != nil {
			return err
		}
		defer payments.Leave()
		return f(ctx, payments)
	})
}

// process runs f until standard input is closed, which means stop.
func process(ctx context.Context, db string,
	f func(ctx context.Context, payments *remote.Chan[Payment]) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	config, err := pgxpool.ParseConfig(db)
	if err != nil {
		return err
	}
	config.MaxConns = receivers + 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := open(ctx, pool, f); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// send sends payments, and writes the number of each that was acknowledged, until ctx ends.
func send(ctx context.Context, payments *remote.Chan[Payment], first int64, to io.Writer) error {
	numbers := coir.NewChan[int64](0)
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("numbers", func(ctx context.Context) error {
			for i := first; ; i++ {
				if err := numbers.Send(ctx, i); err != nil {
					return err
				}
			}
		})
		for i := range senders {
			n.Go("sender", func(ctx context.Context) error {
				for {
					number, err := numbers.Recv(ctx)
					if err == nil {
						err = payments.Send(ctx, Payment{Number: number, Cents: number%100 + 1})
					}
					if err == nil {
						_, err = fmt.Fprintln(to, number) // one write, so a line is never partial
					}
					if err != nil {
						return err
					}
				}
			}, coir.WithIndex(i))
		}
		return nil
	})
}

// receive books payments until the channel is closed.
func receive(ctx context.Context, payments *remote.Chan[Payment]) error {
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i := range receivers {
			n.Go("receiver", func(ctx context.Context) error {
				for {
					err := postgres.RecvTx(ctx, payments, book)
					switch {
					case err == nil:
					case errors.Is(err, coir.ErrClosed):
						return nil
					case errors.Is(err, remote.ErrUnknown) || errors.Is(err, remote.ErrUnavailable): // it is delivered again
					default:
						return err
					}
				}
			}, coir.WithGoroutine(), coir.WithIndex(i))
		}
		return nil
	})
}

// book is the effect of a payment. There is no unique key, so a second booking would be noticed.
func book(ctx context.Context, tx pgx.Tx, it *remote.Item[Payment]) error {
	_, err := tx.Exec(ctx, "insert into booking (payment, cents) values ($1, $2)", it.Value.Number, it.Value.Cents)
	if err == nil {
		_, err = tx.Exec(ctx, "update account set cents = cents + $1 where id = $2", it.Value.Cents, it.Value.Number%10)
	}
	return err
}
