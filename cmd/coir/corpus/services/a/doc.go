// Package a has services with one concurrency bug each, in the form of package corpus. The clients and servers of a test
// talk over the network of the kernel, on loopback addresses.
//
// Their authors had seen neither the tool nor the rest of the corpus. The services are not used to improve it.
package a
