// Package left has tests that leave goroutines behind. TestLeftBehind of the command has what is told of them.
package left

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
)

// start starts goroutines, each of which waits for a channel of its own.
func start(n int) {
	for range n {
		c := make(chan int)
		go func() {
			<-c
		}()
	}
}

func TestTwelve(*testing.T) { start(12) }
func TestThree(*testing.T)  { start(3) }

func TestOther(*testing.T) {
	start(1)
	var wg sync.WaitGroup
	wg.Go(func() {})
	wg.Wait()
	go func() { select {} }()
}

type none struct{}

func (none) Connect(context.Context) (driver.Conn, error) { return nil, errors.ErrUnsupported }
func (none) Driver() driver.Driver                        { return nil }

// The go statement is in the standard library.
func TestLibrary(*testing.T) { sql.OpenDB(none{}) }

// The goroutine that calls the library has ended.
func TestLibraryOfAChild(*testing.T) {
	var wg sync.WaitGroup
	wg.Go(func() { sql.OpenDB(none{}) })
	wg.Wait()
}
