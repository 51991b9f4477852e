//go:build race || coirinvariants

package buf

// alwaysChecked says that the build checks all regions. The race detector does not see memory off the heap, where
// checked regions are never.
const alwaysChecked = true
