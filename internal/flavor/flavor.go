// Package flavor has what a channel keeps between a send and a receive: one file for each way of keeping.
//
// A kind of channel differs from the others in its Store and in nothing else. Waiting, closing, overflow and select are the
// channel's, and the same for all; a store is asked to put and to take, under the channel's lock, and knows of nobody.
//
//	Zero   keeps nothing: every put finds it full, so that values go from hand to hand (rendezvous)
//	Ring   keeps up to n, in the order of arrival (bounded; conflated is a Ring of 1 whose oldest is dropped)
//	List   keeps any number, and gives the memory back (unlimited)
package flavor

// Store keeps values in the order in which they came. Its channel's lock guards it.
type Store[T any] interface {
	// Spec: CH-01 (one channel type, four kinds)
	// Spec: CH-02 (kinds differ in what they store)
	// Spec: CH-21 (one sender's values stay in order)

	// Put keeps v as the newest value and returns how many there are now. 0 means that it is full, and that v was not kept.
	Put(v T) int
	// Take removes the oldest value. It reports false if there is none.
	Take() (T, bool)
	// Passed says that a value went past the empty store, from hand to hand. It is told in race builds alone, where it counts
	// which places a value would have had.
	Passed()
	// Len is how many values it holds.
	Len() int
}

// Zero keeps nothing.
type Zero[T any] struct {
	// Spec: CH-04 (rendezvous hands over directly)
}

// Put implements Store: there is no room.
func (Zero[T]) Put(T) int { return 0 }

// Take implements Store: there is nothing.
func (Zero[T]) Take() (v T, ok bool) { return v, false }

// Passed implements Store.
func (Zero[T]) Passed() {}

// Len implements Store.
func (Zero[T]) Len() int { return 0 }
