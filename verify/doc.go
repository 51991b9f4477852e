// Package verify holds the suites that need test dependencies, so that coir
// itself needs none. It has no code of its own, only tests, and but for the
// driver of chan_test.go (internal/history) the tests use nothing of coir but what
// every user can use.
//
//   - leak_test.go: no goroutine outlives its use (goleak), seen as a user's own
//     tests would see it.
//   - nursery_test.go: random trees of nurseries and fibers against what must
//     hold for every tree (rapid).
//   - limit_test.go: the same for nurseries with a limit.
//   - linear_*_test.go: histories of channels and selects against a sequential
//     specification (porcupine).
//   - chan_test.go: random scripts on channels, step by step against the model
//     (rapid).
//   - mixed: programs of goroutines and fibers, for coir test.
//   - iodb: the code of the guide to I/O that needs a database, with a PostgreSQL.
//   - sim_test.go: schedules of a simulation that rapid makes up, and shrinks.
package verify
