//go:build !race && !coirinvariants

package buf

// alwaysChecked is true in builds that check all regions.
const alwaysChecked = false
