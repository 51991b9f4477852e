//go:build !linux

package main

// The comparisons of package netio run on Linux only: their client uses epoll.

const (
	echoServer = "echo-server/"
	echoClient = "echo-client/"
)

func echoServerMain(string) {}

func echoClientMain(string) {}
