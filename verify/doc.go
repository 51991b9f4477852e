// Package verify has the test suites that need dependencies, so that coir itself needs none. It has only tests. Except
// for the driver of chan_test.go (internal/history), the tests use only the exported API.
//
//   - leak_test.go: no goroutine is left after use (goleak), as a user's own tests would check.
//   - nursery_test.go: random trees of nurseries and fibers, checked against what must hold for every tree (rapid).
//   - limit_test.go: the same for nurseries with a limit.
//   - linear_*_test.go: histories of channels and selects, checked against a sequential specification (porcupine).
//   - chan_test.go: random scripts on channels, compared with the model step by step (rapid).
//   - mixed: programs of goroutines and fibers, for coir test.
//   - iodb: the code of the guide to I/O that needs a database, with a PostgreSQL server.
//   - sim_test.go: schedules of a simulation that rapid draws and shrinks.
package verify
