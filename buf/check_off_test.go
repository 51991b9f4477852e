//go:build !race && !coirinvariants

package buf_test

// checkedBuild says that all regions are checked.
const checkedBuild = false
