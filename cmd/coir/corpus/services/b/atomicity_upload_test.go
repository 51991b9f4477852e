//go:build corpus

package b

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// An upload server stores a file in blocks of 8 bytes and drops a block that does not come in full. A client whose
// connection breaks goes on over a new one. It counts the bytes that Write took, which may be more than the server
// stored. If the connection breaks in the middle of a block, the file gets a hole of zeros. The corrected client asks
// the server where to go on. After four attempts or a timeout a client gives up, and a part of the file is stored.
//
// Class: atomicity
// Expect: fail
// Faults: net
type uploadServer struct {
	ln net.Listener
	wg sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
	files  map[string][]byte
}

func (s *uploadServer) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		if s.closed {
			conn.Close()
		}
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(conn) })
	}
}

// stored returns how much of a file is there.
func (s *uploadServer) stored(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.files[name])
}

func (s *uploadServer) store(name string, offset int, block []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.files[name]
	if missing := offset + len(block) - len(file); missing > 0 {
		file = append(file, make([]byte, missing)...)
	}
	copy(file[offset:], block)
	s.files[name] = file
}

func (s *uploadServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	header, err := in.ReadString('\n')
	if err != nil {
		return
	}
	var name string
	var size, offset int
	if _, err := fmt.Sscanf(header, "PUT %s %d %d\n", &name, &size, &offset); err != nil {
		return
	}
	if offset < 0 {
		offset = s.stored(name)
		fmt.Fprintf(conn, "FROM %d\n", offset)
	}
	for offset < size {
		block := make([]byte, min(8, size-offset))
		if _, err := io.ReadFull(in, block); err != nil {
			return
		}
		s.store(name, offset, block)
		offset += len(block)
	}
	fmt.Fprintln(conn, "OK")
}

// uploadOnce sends the data from the offset on over a new connection. It returns how many bytes were written.
func uploadOnce(addr, name, data string, offset int) (n int, err error) {
	conn, err := net.DialTimeout("tcp", addr, 30*time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(conn)
	if _, err := fmt.Fprintf(conn, "PUT %s %d %d\n", name, len(data), offset); err != nil {
		return 0, err
	}
	if offset < 0 {
		line, err := in.ReadString('\n') // a broken line must not count as a number
		if _, e := fmt.Sscanf(line, "FROM %d\n", &offset); err != nil || e != nil {
			return 0, errors.Join(err, e)
		}
	}
	if n, err = io.WriteString(conn, data[offset:]); err != nil {
		return n, err
	}
	if answer, err := in.ReadString('\n'); answer != "OK\n" {
		return n, fmt.Errorf("answer %q: %w", answer, err)
	}
	return n, nil
}

func uploadRun(t *testing.T, ask bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &uploadServer{ln: ln, files: map[string][]byte{}}
	s.wg.Go(s.accept)
	data, offset, err := "a file of 21 bytes...", 0, errors.New("no attempt")
	for range 4 {
		var n int
		if ask {
			_, err = uploadOnce(ln.Addr().String(), "f", data, -1)
		} else {
			n, err = uploadOnce(ln.Addr().String(), "f", data, offset)
			offset += n
		}
		var ne net.Error
		if err == nil || errors.As(err, &ne) && ne.Timeout() {
			break
		}
	}
	ln.Close()
	s.mu.Lock()
	s.closed = true
	for _, conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	if got := string(s.files["f"]); err == nil && got != data || !strings.HasPrefix(data, got) {
		t.Errorf("stored %q, error %v", got, err)
	}
}

func TestBugUploadResume(t *testing.T) { uploadRun(t, false) }

func TestFixedUploadResume(t *testing.T) { uploadRun(t, true) }
