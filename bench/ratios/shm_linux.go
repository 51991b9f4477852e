package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf/shm"
)

// Blocks of 64 KiB are sent to another process, by buf/shm and by a Unix socket of package net. A block is filled and
// summed, or only passed on. This process sends, and a process for each side receives. A round ends when all blocks
// have been received. When a side is closed both processes print how often they have woken the other.

const (
	shmReceiver = "shm-receiver/"
	fewBuffers  = 16  // for blocks that are written: they fit into a second-level cache of 2 MiB
	manyBuffers = 512 // for blocks that are not written, and so take no memory
)

func init() {
	table = append(table, comparison{
		name: "shm-filled", bound: 0.625, unit: "ns", rounds: longRounds, round: 300 * time.Millisecond,
		what:    "64 KiB filled here, sent through shared memory, and summed by another process",
		against: "a Unix socket",
		coir:    shmSide(true, fewBuffers), other: socketSide(true),
	}, comparison{
		name: "shm-handed", bound: 0.033, unit: "ns", rounds: longRounds, round: 300 * time.Millisecond,
		what:    "64 KiB sent through shared memory to another process, which does not look at them",
		against: "a Unix socket",
		coir:    shmSide(false, manyBuffers), other: socketSide(false),
	})
}

// connectTo starts a process that receives, and connects to it.
func connectTo(kind string) (*worker, net.Conn) {
	w := startWorker(shmReceiver + kind)
	c, err := net.Dial("unix", w.line())
	check(err)
	return w, c
}

// fillBlock writes a pattern to all words of a block.
func fillBlock(p []byte, with uint64) {
	for ; len(p) >= 8; p = p[8:] {
		binary.LittleEndian.PutUint64(p, with)
	}
}

func sumBlock(p []byte) (s uint64) {
	for ; len(p) >= 8; p = p[8:] {
		s += binary.LittleEndian.Uint64(p)
	}
	return s
}

func kindOf(filled bool) string {
	if filled {
		return "filled"
	}
	return "handed"
}

func shmSide(filled bool, buffers int) func() side {
	return func() side {
		w, c := connectTo("shm/" + kindOf(filled))
		s, err := shm.NewSender(context.Background(), c, block, buffers, shm.WithShared())
		check(err)
		return side{
			loop: func(n int) {
				check(coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
					for i := range n {
						b, err := s.Get(ctx)
						if err != nil {
							return err
						}
						b = b.Slice(0, block)
						if filled {
							fillBlock(b.Bytes(), uint64(i))
						}
						if err := s.Send(ctx, b); err != nil {
							return err
						}
					}
					return allBack(ctx, s)
				}))
			},
			close: func() {
				s.Close()
				printWakes("sender", kindOf(filled), s.Stats())
				w.end()
			},
		}
	}
}

// allBack waits until all buffers have come back.
func allBack(ctx context.Context, s *shm.Sender) error {
	for range s.Cap() {
		b, err := s.Get(ctx)
		if err != nil {
			return err
		}
		defer b.Release()
	}
	return nil
}

func printWakes(who, kind string, s shm.Stats) {
	fmt.Fprintf(os.Stderr, "%s of blocks that are %s: %d wake-ups of the other side for %d blocks, %.2f %%\n",
		who, kind, s.Wakes, s.Passed, 100*float64(s.Wakes)/float64(max(s.Passed, 1)))
}

func socketSide(filled bool) func() side {
	return func() side {
		w, c := connectTo("socket/" + kindOf(filled))
		b := make([]byte, block)
		ack := make([]byte, 1)
		return side{
			loop: func(n int) {
				for i := range n {
					if filled {
						fillBlock(b, uint64(i))
					}
					b[0] = 0
					if i == n-1 {
						b[0] = 1 // marks the last block of a round
					}
					_, err := c.Write(b)
					check(err)
				}
				_, err := io.ReadFull(c, ack)
				check(err)
			},
			close: func() { check(c.Close()); w.end() },
		}
	}
}

// shmReceiverMain is the main function of a receiving process.
func shmReceiverMain(what string) {
	kind, how, _ := strings.Cut(what, "/")
	filled := how == kindOf(true)
	dir, err := os.MkdirTemp("", "shm")
	check(err)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	check(err)
	fmt.Println(l.Addr())
	c, err := l.Accept()
	check(err)
	check(l.Close())
	check(os.RemoveAll(dir))
	var total uint64
	switch kind {
	case "discard":
		_, err := io.Copy(io.Discard, c)
		check(err)
	case "socket":
		b := make([]byte, block)
		for {
			if _, err := io.ReadFull(c, b); err != nil {
				break
			}
			if filled {
				total += sumBlock(b)
			}
			if b[0] == 1 {
				_, err := c.Write(b[:1])
				check(err)
			}
		}
	default:
		r, err := shm.NewReceiver(context.Background(), c, shm.WithShared())
		check(err)
		check(coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			for b, err := range r.All(ctx) {
				if err != nil {
					return err
				}
				if filled {
					total += sumBlock(b.Bytes())
				}
				b.Release()
			}
			return nil
		}))
		printWakes("receiver", how, r.Stats())
	}
	guarded[0] += int(total)
}
