// Package hide keeps a pointer out of the sight of the compiler's escape analysis, for a function that calls through an
// interface but lets nobody keep what it was given. The pointer stays a pointer in every frame that it is in, so a stack
// that moves takes it along.
//
// The pure Go form hides nothing: what is passed through it is allocated.
package hide
