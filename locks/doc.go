// Package locks has locks whose waits end when their context does: a mutex, a readers-writer mutex, a weighted
// semaphore, an initialization that may be retried, and a barrier.
//
//	accounts := locks.NewMutex(coir.WithName("accounts"))
//	...
//	if err := accounts.Lock(ctx); err != nil {
//		return err // ctx ended first
//	}
//	defer accounts.Unlock()
//
// A fiber that waits for a lock does not block its worker, and may wait for a mutex or a semaphore and for other things
// in one [coir.Select]. A fiber may hold a lock while it waits for something else; with a lock of package sync, that
// would block the workers of fibers that want the lock. Goroutines may use the same locks.
//
// Waiters are served in the order of arrival. In a test under package sim each operation is a step, and a deadlock is
// reported with the names of the locks and of the fibers that hold them.
package locks
