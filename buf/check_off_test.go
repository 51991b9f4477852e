//go:build !race && !coirinvariants

package buf_test

// checkedBuild is true if all regions are checked.
const checkedBuild = false
