package ticket_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
)

// Two replicas of a service, which are parts of this example. One replica waits for a payment, and the callback of the
// provider reaches the other. The provider calls twice.
func ExampleDesk() {
	secret := []byte("of at least 32 bytes, and random")
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		broker := memory.New()
		var replicas []*ticket.Desk[string]
		for _, name := range []string{"one", "two"} {
			keys, err := ticket.NewKeys(1, secret)
			if err != nil {
				return err
			}
			d, err := ticket.New[string](ctx, n, broker.Node(name), "payments/webhook", keys)
			if err != nil {
				return err
			}
			defer d.Close()
			replicas = append(replicas, d)
		}

		t, err := replicas[0].Open(ctx, 15*time.Minute)
		if err != nil {
			return err
		}
		defer t.Cancel()
		text := t.Token(ticket.RightResolve).Reveal() // for the provider

		for range 2 {
			token, err := ticket.ParseToken(text)
			if err != nil {
				return err
			}
			outcome, err := replicas[1].Resolve(ctx, token, "event 1", "receipt 4711")
			fmt.Println(outcome, err)
		}

		receipt, err := t.Wait(ctx)
		fmt.Println(receipt, err)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// done <nil>
	// duplicate <nil>
	// receipt 4711 <nil>
}

// A token does not show its secret in logs. ParseToken refuses a text that is not a token.
func ExampleToken() {
	_, err := ticket.ParseToken("made up")
	fmt.Println(errors.Is(err, ticket.ErrToken))
	fmt.Println(ticket.Token{})
	// Output:
	// true
	// ticket.Token()
}

// The keys are replaced while the service runs: each step is done in all replicas before the next.
func ExampleKeys() {
	keys, err := ticket.NewKeys(1, []byte("the key of Monday, with 32 bytes"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(keys.Add(2, []byte("the key of Tuesday, of 32 bytes.")))
	fmt.Println(keys.Use(2))
	// After the last token that key 1 has signed has expired:
	fmt.Println(keys.Remove(1))
	fmt.Println(keys)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// ticket.Keys(1 keys, 2 signs)
}
