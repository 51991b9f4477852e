// Package flavor has what a channel keeps its values in between a send and a receive: one file for each way of keeping.
//
// A kind of channel differs from the others in its store, its limit and its overflow policy, and in nothing else.
// Waiting, closing, overflow and select are the channel's, and the same for all. The channel counts its values too: it
// puts a value into a store only if there is room, and takes one only if there is one.
//
//	Ring   keeps up to n values, in the order of arrival (bounded; conflated is a Ring of 1 that drops its oldest)
//	List   keeps any number, and gives the memory back (unlimited)
//
// A channel without room (rendezvous) has no store: values go from hand to hand. A channel holds a Ring by itself, so
// that the most usual kind is not called through an interface; every other kind is a Store.
package flavor

// Store keeps values in the order in which they came. Its channel's lock guards it.
type Store[T any] interface {
	// Spec: CH-01 (one channel type, four kinds)
	// Spec: CH-02 (kinds differ in what they store)
	// Spec: CH-21 (one sender's values stay in order)

	// Put keeps v as the newest value. The channel has found that there is room.
	Put(v T)
	// Take removes the oldest value. The channel has found that there is one.
	Take() T
}
