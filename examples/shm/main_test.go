package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf/shm"
	"github.com/coir-go/coir/netio"
)

// The test binary is also the program: if this variable is set, it runs main with the arguments.
const program = "COIR_SHM_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(program) == "" {
		os.Exit(m.Run())
	}
	main()
}

// start starts the program.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "-every", "0s")...)
	cmd.Env = append(os.Environ(), program+"=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// socketPath returns a path that is short enough for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process is killed in another way")
	}
	dir, err := os.MkdirTemp("", "shm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// others is the other process, which is killed and started again. Each time is called a life.
type others struct {
	t     *testing.T
	args  []string
	lives int
	seen  int // frames in this life
	cmd   *exec.Cmd
	next  uint64 // the number of the first frame in this life, if numbers continue
	done  func()
}

func (o *others) start() {
	o.seen, o.cmd = 0, start(o.t, o.args...)
}

// frame kills the process while it is sending or receiving.
func (o *others) frame(uint64) {
	if o.seen++; o.seen == 20 {
		kill(o.cmd)
	}
}

// end checks the report of a life, and begins the next life.
func (o *others) end(r Report) {
	if !errors.Is(r.End, shm.ErrGone) || r.Frames < 20 || r.Broken > 0 || r.First != o.next {
		o.t.Errorf("life %d: %v", o.lives, r)
	}
	if o.lives++; o.lives == 3 {
		o.done()
		return
	}
	o.start()
}

// The producer is killed and started again. The consumer receives the frames that were sent, and then the frames of the
// new producer.
func TestProducerIsKilled(t *testing.T) {
	path := socketPath(t)
	l, err := netio.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		o := &others{t: t, args: []string{"-produce", "-socket", path}, next: 1, done: func() { n.Cancel(nil) }}
		o.start()
		return Consume(ctx, l.(*netio.Listener), Watch{o.frame, o.end})
	})
	if err != nil {
		t.Error(err)
	}
}

// The consumer is killed and started again. The producer continues with the next frame.
func TestConsumerIsKilled(t *testing.T) {
	path := socketPath(t)
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		o := &others{t: t, args: []string{"-consume", "-socket", path}, next: 1, done: func() { n.Cancel(nil) }}
		o.start()
		return Produce(ctx, dialer(path), 0, Watch{o.frame, func(r Report) {
			o.end(r)
			o.next = r.First + uint64(r.Frames)
		}})
	})
	if err != nil {
		t.Error(err)
	}
}
