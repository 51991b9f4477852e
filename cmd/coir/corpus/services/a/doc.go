// Package a has services with one concurrency bug each, in the form of package corpus. The clients and servers of a
// test talk over the network of the kernel, on loopback addresses.
//
// Their authors had seen neither the tool nor the rest of the corpus. When the tool was first run on the services of
// packages a and b, it found all bugs but one: it did not report a deadlock of a test that polls forever, as
// http.Server.Shutdown does in b. Now it does.
package a
