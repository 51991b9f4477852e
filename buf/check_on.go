//go:build race || coirinvariants

package buf

// alwaysChecked is true in builds that check all regions. The race detector does not see memory off the heap, and
// checked regions are always on the heap.
const alwaysChecked = true
