// Package invariant provides checks that are compiled in only with the build tag coirinvariants.
package invariant
