package park

// Guest lets a plain goroutine wait as fibers do: the same word, but to be readied releases a one-place semaphore.
//
// Guests may be used again by other goroutines, one after the other. Tickets do not restart, so a waker that kept one
// from an earlier wait finds it stale.
type Guest struct {
	Parker
	sema chan struct{}
}

// Init readies the guest for its first use.
//
//go:norace
func (g *Guest) Init() {
	g.sema = make(chan struct{}, 1)
	g.Parker.Init(g)
}

// Ready implements Owner.
//
//go:norace
func (g *Guest) Ready(Place) { g.sema <- struct{}{} }

// Late implements Owner. Nobody counts for guests.
//
//go:norace
func (g *Guest) Late() {}

// Park blocks the goroutine until its armed wait has ended, or cancel is closed: then it tries to end the wait itself,
// for Cancelled. A nil cancel never comes.
//
// A goroutine blocks on its own stack, so it may commit itself: there is no switch to wait for.
//
// Spec: PK-38
//
//go:norace
func (g *Guest) Park(cancel <-chan struct{}) Reason {
	if g.Commit() {
		if cancel == nil {
			<-g.sema
		} else {
			select {
			case <-g.sema:
			case <-cancel:
				t, _ := g.Waiting()
				g.Wake(t, Cancelled, nil)
				<-g.sema // ours, or the winner's
			}
		}
	}
	return g.Reason()
}
