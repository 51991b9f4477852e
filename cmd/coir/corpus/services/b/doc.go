// Package b has services with one concurrency bug each, like package a.
//
// Four of the bugs need a fault of the network, such as a connection that is reset in the middle of an answer. A line
// says so:
//
//	// Faults: net
package b
