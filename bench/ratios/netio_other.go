//go:build !linux

package main

// The comparisons of package netio run on Linux only: their client uses epoll. So do those of buf/shm.

const (
	echoServer = "echo-server/"
	echoClient = "echo-client/"

	shmReceiver = "shm-receiver/"
)

func echoServerMain(string) {}

func echoClientMain(string) {}

func shmReceiverMain(string) {}
