// Two goroutines time out on channels of their own. That they reuse the same guest orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	var done [2]chan struct{}
	for i, c := range []*coir.Chan[int]{coir.NewChan[int](0), coir.NewChan[int](0)} {
		done[i] = make(chan struct{})
		go func() {
			if i == 0 {
				x = 1
			}
			c.RecvTimeout(context.Background(), time.Millisecond)
			if i == 1 {
				x = 2
			}
			close(done[i])
		}()
		time.Sleep(10 * time.Millisecond)
	}
	<-done[0]
	<-done[1]
}
