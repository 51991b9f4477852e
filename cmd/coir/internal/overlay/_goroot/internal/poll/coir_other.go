//go:build !unix

package poll

func coirLocks(*FD, bool) {}
