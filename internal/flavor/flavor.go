// Package flavor implements the stores in which channels keep their values between send and receive, one file each.
//
// Kinds of channels differ only in their store, their limit and their overflow policy. The channel implements waiting,
// closing, overflow and select in the same way for all kinds. The channel also counts its values: it puts a value into
// a store only if there is room, and takes one only if there is one.
//
//	Ring   keeps up to n values, in the order of arrival (bounded; conflated is a Ring of 1 that drops its oldest)
//	List   keeps any number, and gives the memory back (unbounded)
//
// A channel without room (rendezvous) has no store: values pass directly from sender to receiver. A channel has a Ring
// as a field, so that the most common kind needs no call through an interface. Every other kind has a Store.
package flavor

// Store keeps values in the order of arrival. Its channel's lock guards it.
type Store[T any] interface {
	// Spec: CH-01 (one channel type, four kinds)
	// Spec: CH-02 (kinds differ in what they store)
	// Spec: CH-21 (one sender's values stay in order)

	// Put adds v as the newest value. The caller has checked that there is room.
	Put(v T)
	// Take removes the oldest value. The caller has checked that there is one. Receives use it, and so do overflow
	// policies and aborts, which drop the oldest value.
	Take() T
}
