package shm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
)

// childRole is the environment variable that makes this binary the other process of a test.
const childRole = "COIR_SHM_CHILD"

func TestMain(m *testing.M) {
	switch role := os.Getenv(childRole); role {
	case "":
		os.Exit(m.Run())
	default:
		if err := child(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// child sends or receives over the connection that is its descriptor 3, until it is killed.
func child(role string) error {
	conn, err := net.FileConn(os.NewFile(3, "conn"))
	if err != nil {
		return err
	}
	return coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		if role == "receive" {
			r, err := NewReceiver(ctx, conn)
			if err != nil {
				return err
			}
			return consume(ctx, r, -1)
		}
		s, err := NewSender(ctx, conn, 4096, 8)
		if err != nil {
			return err
		}
		return produce(ctx, s, -1)
	})
}

// produce sends n buffers, or an endless number of them. All words of a buffer have its number.
func produce(ctx context.Context, s *Sender, n int) error {
	for i := 0; i != n; i++ {
		b, err := s.Get(ctx)
		if err != nil {
			return err
		}
		b = b.Slice(0, s.Size())
		fill(b.Bytes(), byte(i))
		if err := s.Send(ctx, b); err != nil {
			b.Release()
			return err
		}
	}
	return nil
}

func fill(p []byte, with byte) {
	for i := range p {
		p[i] = with
	}
}

// consume receives n buffers, or an endless number of them, and checks that they are complete and in order.
func consume(ctx context.Context, r *Receiver, n int) error {
	for i := 0; i != n; i++ {
		b, err := r.Recv(ctx)
		if err != nil {
			return err
		}
		for at, c := range b.Bytes() {
			if c != byte(i) {
				return fmt.Errorf("byte %d of buffer %d is %d, want %d", at, i, c, byte(i))
			}
		}
		if b.Len() != r.Size() {
			return fmt.Errorf("buffer %d has %d bytes, want %d", i, b.Len(), r.Size())
		}
		b.Release()
	}
	return nil
}

// pair returns the two ends of a Unix socket without a name.
func pair(t testing.TB) (ours net.Conn, theirs *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "ours")
	defer f.Close()
	if ours, err = net.FileConn(f); err != nil {
		t.Fatal(err)
	}
	return ours, os.NewFile(uintptr(fds[1]), "theirs")
}

// held counts what a link must not leave behind: open descriptors, and mappings of shared memory.
func held(t testing.TB) (files, mappings int) {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return len(names), strings.Count(string(maps), "memfd:coir-shm")
}

// leavesNothing fails the test if it ends with more of these than it started with.
func leavesNothing(t testing.TB) {
	t.Helper()
	warm, other := link(t, 1) // opens the descriptors of the pollers
	warm.Close()
	other.Close()
	files, mappings := held(t)
	goroutines := runtime.NumGoroutine()
	t.Cleanup(func() {
		until(t, "all is given back", func() bool {
			f, m := held(t)
			return f <= files && m <= mappings && runtime.NumGoroutine() <= goroutines
		})
	})
}

// The other process is killed at random times, also during the handshake. This side notices within 100 ms, after it has
// received everything that was sent, and nothing is left behind.
func TestKill(t *testing.T) {
	rounds := 20
	if soak.On() {
		rounds = 1000
	}
	leavesNothing(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var took, reaped, after []time.Duration
	for i := range rounds {
		role := []string{"send", "receive"}[i%2]
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			noticed, gone, err := killOne(ctx, t, n, role, rng)
			took, reaped, after = append(took, noticed), append(reaped, gone), append(after, max(noticed-gone, 0))
			return err
		})
		if err != nil {
			t.Fatalf("round %d, the other side is to %s: %v", i, role, err)
		}
	}
	t.Logf("the end was seen after %v", spread(took))
	t.Logf("meanwhile, the kernel reaped the process after %v", spread(reaped))
	t.Logf("the end was seen later than the kernel reaped the process by %v", spread(after))
	if median := took[len(took)/2]; median > 100*time.Millisecond { // the maximum depends on the load of the machine
		t.Errorf("the end is seen after %v, which is too late", median)
	}
}

// spread sorts times, and returns the median, the 99th percentile and the longest as text.
func spread(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("%v (median), %v (99th percentile), %v (worst)", d[len(d)/2], d[(len(d)-1)*99/100], d[len(d)-1])
}

// killOne starts a process, exchanges some buffers with it, and kills it. It returns how long after the kill this side
// noticed, and how long after the kill the kernel reported the end of the process. On a busy machine both times are
// long, because the kernel must run the process once more to end it, and then this side.
func killOne(ctx context.Context, t *testing.T, n *coir.Nursery, role string, rng *rand.Rand) (
	seen, gone time.Duration, err error,
) {
	ours, theirs := pair(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role)
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	_ = theirs.Close()
	some, spin, early := rng.IntN(50), rng.IntN(20_000), rng.IntN(10) == 0
	killed := coir.NewPromise[time.Time]()
	kill := func() {
		for range spin {
			runtime.Gosched()
		}
		at := time.Now()
		_ = cmd.Process.Kill()
		killed.Resolve(at)
	}
	reaped := coir.NewPromise[time.Time]()
	exchanging := coir.NewEvent()
	n.Go("kill", func(ctx context.Context) error {
		if !early { // otherwise at any time during the start
			_ = exchanging.Wait(ctx)
		}
		kill()
		_ = cmd.Wait()
		reaped.Resolve(time.Now())
		return nil
	})
	defer exchanging.Set()
	err = exchange(ctx, ours, role, some, exchanging)
	noticed := time.Now()
	if early && err != nil && !errors.Is(err, coir.ErrClosed) {
		err = nil // the constructor failed with an error of the socket
	} else if errors.Is(err, coir.ErrClosed) && errors.Is(err, ErrGone) {
		err = nil
	} else {
		return 0, 0, fmt.Errorf("%w, want ErrGone", err)
	}
	exchanging.Set()
	at, waited := killed.Wait(ctx)
	if waited != nil {
		return 0, 0, waited
	}
	end, waited := reaped.Wait(ctx)
	return noticed.Sub(at), end.Sub(at), waited
}

// exchange is the counterpart of the other process. It sets exchanging after some buffers, and continues until an
// error.
func exchange(ctx context.Context, conn net.Conn, role string, some int, exchanging *coir.Event) error {
	if role == "send" {
		r, err := NewReceiver(ctx, conn)
		if err != nil {
			return err
		}
		defer r.Close()
		if err := consume(ctx, r, some); err != nil {
			return err
		}
		exchanging.Set()
		for {
			b, err := r.Recv(ctx)
			if err != nil {
				return err
			}
			b.Release()
		}
	}
	s, err := NewSender(ctx, conn, 4096, 8)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := produce(ctx, s, some); err != nil {
		return err
	}
	exchanging.Set()
	return produce(ctx, s, -1)
}

// Buffers that are held when the other process dies stay readable, and their memory is unmapped with the last one.
func TestHeldBuffersOutliveTheSender(t *testing.T) {
	leavesNothing(t)
	ctx := t.Context()
	s, r := link(t, 2)
	if err := s.Send(ctx, with(ctx, t, s, "kept")); err != nil {
		t.Fatal(err)
	}
	b, err := r.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	unsent := with(ctx, t, s, "unsent")
	cut(s)
	if _, err := r.Recv(ctx); !errors.Is(err, ErrGone) {
		t.Fatal(err)
	}
	s.Close()
	if string(b.Bytes()) != "kept" || string(unsent.Bytes()) != "unsent" {
		t.Errorf("the buffers are %q and %q", b.Bytes(), unsent.Bytes())
	}
	b.Release()
	unsent.Release()
}

// The memory of the other side cannot be written, and memory that could shrink is refused.
func TestMemoryIsSealed(t *testing.T) {
	file, mem, err := newMemory(4096)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Munmap(mem) }()
	defer syscall.Close(file)
	if err := syscall.Ftruncate(file, 0); err == nil {
		t.Error("the memory can be truncated")
	}
	if m, err := syscall.Mmap(file, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err == nil {
		_ = syscall.Munmap(m)
		t.Error("the memory can be mapped for writing by the other side")
	}
	m, err := openMemory(file, 4096)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Munmap(m)
	if _, err := openMemory(file, 8192); !errors.Is(err, ErrProtocol) {
		t.Errorf("memory of another length: %v", err)
	}
	plain, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := plain.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := openMemory(int(plain.Fd()), 4096); !errors.Is(err, ErrProtocol) {
		t.Errorf("a file: %v", err)
	}
}

// A received buffer cannot be written by its methods.
func TestReceivedBuffersAreReadOnly(t *testing.T) {
	s, r := link(t, 2)
	ctx := t.Context()
	if err := s.Send(ctx, with(ctx, t, s, "text")); err != nil {
		t.Fatal(err)
	}
	b, err := r.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if r.Stats().Copied > 0 {
		t.Skip("the region is checked: the buffer is a copy")
	}
	defer func() {
		if recover() == nil {
			t.Error("Fill has written")
		}
	}()
	_, _ = b.Fill(func(p []byte) (int, error) { return copy(p, "more"), nil })
}
