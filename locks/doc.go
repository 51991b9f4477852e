// Package locks provides locks whose waits end when their context does: a mutex, a readers-writer mutex, a weighted
// semaphore, an initialisation that may be retried, and a barrier.
//
//	accounts := locks.NewMutex(coir.WithName("accounts"))
//	...
//	if err := accounts.Lock(ctx); err != nil {
//		return err // ctx ended first
//	}
//	defer accounts.Unlock()
//
// A fiber that waits for a lock does not block its worker. A mutex or a semaphore can be a case of a [coir.Select]. A
// fiber may hold a lock while it waits for something else; with a lock of package sync, that would block the workers of
// other fibers that want the lock. Goroutines may use the same locks.
//
// Waiters are served in the order of arrival. In a test under package sim each operation is a step, and the report of a
// deadlock names the locks and the fibers that hold them.
package locks
