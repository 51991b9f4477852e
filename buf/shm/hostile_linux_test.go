package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/internal/soak"
)

// evil is an end of a link that follows the protocol until the link is established, and then writes anything.
type evil struct {
	sock *socket
	mem  []byte
	area area
}

const evilSize, evilCount = 100, 3

// evilLink returns the good end of a link, and the other end, which is evil.
func evilLink(t testing.TB, send bool, opts ...Option) (s *Sender, r *Receiver, e *evil) {
	t.Helper()
	ours, file := pair(t)
	theirs, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	defer theirs.Close()
	sock, err := socketOf(theirs, "evil")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	e = &evil{sock: sock}
	length := pages(areaLen(evilCount))
	if !send {
		length += evilCount * stride(evilSize)
	}
	fd, mem, err := newMemory(length)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	e.mem, e.area = mem, areaIn(mem, evilCount)
	// Both messages fit into the socket, so nothing waits here.
	err = sock.offer(ctx, hello{shared, evilSize, evilCount}, fd)
	if err == nil && send {
		s, err = NewSender(ctx, ours, evilSize, evilCount, opts...)
	} else if err == nil {
		r, err = NewReceiver(ctx, ours, opts...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, r, e
}

func (e *evil) end() {
	e.sock.close()
	_ = syscall.Munmap(e.mem)
}

// act performs one evil action.
func (e *evil) act(rng *rand.Rand) {
	words := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&e.mem[0])), len(e.mem)/8)
	at := &e.area.entries[rng.IntN(len(e.area.entries))]
	switch rng.IntN(10) {
	case 0, 1, 2:
		e.area.tail.Add(uint64(rng.IntN(3)))
	case 3, 4:
		at.at.Store(uint64(rng.IntN(evilSize+2))<<32 | uint64(rng.IntN(evilCount+1)))
		at.len.Store(uint64(rng.IntN(evilSize + 2)))
	case 5:
		at.at.Store(rng.Uint64())
		at.len.Store(rng.Uint64() >> rng.IntN(64))
	case 6:
		e.area.tail.Store(rng.Uint64() >> rng.IntN(64))
	case 7:
		e.area.wait.Store(rng.Uint64() >> rng.IntN(64))
		e.area.until.Store(rng.Uint64() >> rng.IntN(64))
		e.area.closed.Store(rng.Uint64() >> rng.IntN(64))
	case 8:
		words[rng.IntN(len(words))].Store(rng.Uint64())
	case 9:
		e.sock.wake()
	}
}

// victim is a good end that does what a program would do.
type victim struct {
	s     *Sender
	r     *Receiver
	held  []buf.Buf
	total int // sum of the bytes that were read
}

// act performs one operation, and returns its error.
func (v *victim) act(t testing.TB, rng *rand.Rand) error {
	if len(v.held) > 0 && rng.IntN(3) == 0 {
		v.held[0].Release()
		v.held = v.held[1:]
		return nil
	}
	if v.r != nil {
		b, err := v.r.TryRecv()
		if err != nil {
			return err
		}
		if b.Len() > evilSize || b.Cap() > evilSize {
			t.Fatalf("received %d bytes, with room for %d, of buffers of %d", b.Len(), b.Cap(), evilSize)
		}
		for _, c := range b.Bytes() {
			v.total += int(c)
		}
		v.held = append(v.held, b)
		if len(v.held) > evilCount {
			t.Fatalf("%d buffers are held, of %d", len(v.held), evilCount)
		}
		return nil
	}
	b, err := v.s.TryGet()
	if err != nil {
		return err
	}
	b = b.Slice(0, rng.IntN(evilSize+1))
	if err := v.s.TrySend(b); err != nil {
		b.Release()
		return err
	}
	return nil
}

func (v *victim) end() {
	if v.r != nil {
		v.r.Close()
	} else {
		v.s.Close()
	}
	for _, b := range v.held {
		b.Release()
	}
}

// harm runs rounds of actions of both ends on one link, until the victim has ended the link. It returns the number of
// rounds.
func harm(t testing.TB, rng *rand.Rand, rounds int) (n int) {
	var opts []Option
	if rng.IntN(4) == 0 {
		opts = append(opts, WithCopy())
	}
	s, r, e := evilLink(t, rng.IntN(2) == 0, opts...)
	v := &victim{s: s, r: r}
	defer func() { v.end(); e.end() }()
	for n = 0; n < rounds; n++ {
		e.act(rng)
		switch err := v.act(t, rng); {
		case err == nil || errors.Is(err, coir.ErrWouldBlock):
		case errors.Is(err, coir.ErrClosed):
			return n + 1
		default:
			t.Fatal(err)
		}
	}
	return n
}

// If the peer writes random bytes to its memory and sends random wake-ups, this side does not panic, read outside the
// buffers, loop forever, or leak.
func TestHostilePeer(t *testing.T) {
	rounds := 20_000
	if soak.On() {
		rounds = 1_000_000
	}
	if testing.Short() {
		rounds = 2_000
	}
	leavesNothing(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	links := 0
	for n := 0; n < rounds; links++ {
		n += harm(t, rng, min(100, rounds-n))
	}
	t.Logf("%d links", links)
}

// The same while the peer writes concurrently and this side waits.
func TestHostilePeerAtTheSameTime(t *testing.T) {
	leavesNothing(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 50 {
		s, r, e := evilLink(t, i%2 == 0)
		v := &victim{s: s, r: r}
		var stop atomic.Bool
		var done sync.WaitGroup
		other := rand.New(rand.NewPCG(seed, uint64(i)))
		done.Go(func() {
			for !stop.Load() {
				e.act(other)
			}
		})
		ctx, cancel := coir.WithTimeout(t.Context(), 5*time.Millisecond)
		var err error
		for n := 0; n < 1000 && !errors.Is(err, coir.ErrClosed); n++ {
			err = v.act(t, rng)
		}
		if v.r != nil {
			var b buf.Buf
			if b, err = v.r.Recv(ctx); err == nil {
				v.held = append(v.held, b)
			}
		} else {
			var b buf.Buf
			if b, err = v.s.Get(ctx); err == nil {
				b.Release()
			}
		}
		if err != nil && !errors.Is(err, coir.ErrClosed) && !errors.Is(err, coir.ErrTimeout) {
			t.Error(err)
		}
		cancel()
		stop.Store(true)
		done.Wait()
		v.end()
		e.end()
	}
}

// script is a source of random numbers. They are the bytes of a text, and then ordinary random numbers, because a draw
// from zeros may not terminate.
type script struct {
	text []byte
	then *rand.PCG
}

func (s *script) Uint64() uint64 {
	if len(s.text) == 0 {
		return s.then.Uint64()
	}
	var b [8]byte
	s.text = s.text[copy(b[:], s.text):]
	return binary.LittleEndian.Uint64(b[:])
}

// FuzzRing lets the input decide what the peer writes and what this side does.
func FuzzRing(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		text := make([]byte, 400)
		for i := range text {
			text[i] = byte(rng.Uint32())
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rounds := min(len(text)/16+1, 200)
		harm(t, rand.New(&script{text, rand.NewPCG(1, 1)}), rounds)
	})
}
