//go:build corpus

package corpus

import (
	"context"
	"testing"
)

// A goroutine keeps a fresh token ready until its context is cancelled. It checks the context before it makes a token,
// and then waits until a caller takes it. If the context is cancelled after that check, no caller takes the last token.
//
// Class: context
// Expect: leak

func tokenFeed(ctx context.Context) <-chan int {
	tokens := make(chan int)
	go func() {
		for token := 1; ctx.Err() == nil; token++ {
			tokens <- token
		}
	}()
	return tokens
}

func tokenFeedFixed(ctx context.Context) (<-chan int, <-chan struct{}) {
	tokens, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		for token := 1; ; token++ {
			select {
			case tokens <- token:
			case <-ctx.Done():
				return
			}
		}
	}()
	return tokens, done
}

func TestBugTokenFeed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tokens := tokenFeed(ctx)
	if a, b := <-tokens, <-tokens; a != 1 || b != 2 {
		t.Errorf("tokens %d and %d, want 1 and 2", a, b)
	}
	cancel()
}

func TestFixedTokenFeed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tokens, done := tokenFeedFixed(ctx)
	if a, b := <-tokens, <-tokens; a != 1 || b != 2 {
		t.Errorf("tokens %d and %d, want 1 and 2", a, b)
	}
	cancel()
	<-done
}
