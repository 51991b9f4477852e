// Package invariant holds checks that vanish in release builds. The build tag coirinvariants puts them in.
package invariant
