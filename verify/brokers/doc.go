// Package brokers has tests of servers and clients of well-known libraries over loopback addresses: gRPC, websockets,
// an embedded NATS server, and a Redis server in memory. coir test explores them, and does the same in each process:
// see cmd/coir/measure/determinism.
package brokers
