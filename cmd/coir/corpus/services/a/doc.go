// Package a has services with one concurrency bug each, in the form of package corpus. The clients and servers of a
// test talk over the network of the kernel, on loopback addresses.
//
// Their authors had seen neither the tool nor the rest of the corpus. When the tool first saw the services of packages
// a and b it found all bugs but one: it did not know a test that polls forever for a deadlock, as http.Server.Shutdown
// does in b. Since then it does.
package a
