// Package processes runs an example on a server of NATS, in processes of its own.
package processes

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Main is the TestMain of an example: it runs the tests, or main in a process of Start.
func Main(m *testing.M, main func()) {
	if os.Getenv("NATS_URL") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Start starts a server for the time of the test. It returns a function that returns a process of the example with
// arguments, which is not started.
func Start(t *testing.T) (process func(args ...string) *exec.Cmd) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), "NATS_URL="+s.ClientURL())
		cmd.Stderr = os.Stderr
		return cmd
	}
}
