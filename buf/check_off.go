//go:build !race && !coirinvariants

package buf

// alwaysChecked says that the build checks all regions.
const alwaysChecked = false
