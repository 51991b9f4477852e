package buf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/desk"
)

// The corpus has programs that use a buffer incorrectly. In a checked region each ends with a message that names two
// places: where the buffer was made, handed over, released or shared, marked "1:", and where it was used after that,
// marked "2:". If only Close of the region can find the mistake, such as a leak, both marks are at the place that it
// names.
//
// In a region that is not checked, no program changes a buffer that belongs to another owner. This cannot be guaranteed
// for programs that keep a slice, so those run in checked regions only.

// program has the objects that an incorrect program uses.
type program struct {
	*buf.Pool
	t       *testing.T
	victims []buf.Buf
}

// victim makes another owner take all free buffers, and fill them.
func (p *program) victim() {
	for {
		b, err := p.TryGet()
		if err != nil {
			return
		}
		b = b.Slice(0, p.Size())
		for i := range b.Bytes() {
			b.Bytes()[i] = 0xAA
		}
		p.victims = append(p.victims, b)
	}
}

// full returns a buffer with eight bytes. Reports name the line that calls TryGet.
func full(b buf.Buf, _ error) buf.Buf { return b.Slice(0, 8) }

// wrong is an incorrect program. If slice is set, it keeps a slice, which only a checked region detects.
type wrong struct {
	name  string
	slice bool
	run   func(p *program)
}

var errNot = errors.New("not delivered")

var corpus = []wrong{
	{name: "use after release", run: func(p *program) {
		b := full(p.TryGet())
		b.Release() // 1:use after release
		p.victim()
		_ = append(b.Bytes(), 1) // 2:use after release
	}},
	{name: "double release", run: func(p *program) {
		b := full(p.TryGet())
		b.Release() // 1:double release
		p.victim()
		b.Release() // 2:double release
	}},
	{name: "release of a copy", run: func(p *program) {
		b := full(p.TryGet())
		c := b
		b.Release() // 1:release of a copy
		p.victim()
		c.Release() // 2:release of a copy
	}},
	{name: "release of a part", run: func(p *program) {
		b := full(p.TryGet())
		head := b.Slice(0, 2)
		head.Release() // 1:release of a part
		p.victim()
		b.Release() // 2:release of a part
	}},
	{name: "deferred release after a send", run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet())
		defer func() {
			r, _ := c.TryRecv()
			r.Release()
		}()
		defer b.Release()
		_ = c.Send(context.Background(), b) // 1:deferred release after a send
	}}, // 2:deferred release after a send
	{name: "use after a send", run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet())
		_ = c.Send(context.Background(), b) // 1:use after a send
		r, _ := c.TryRecv()
		p.victims = append(p.victims, fill(r))
		b.Bytes()[0] = 1 // 2:use after a send
	}},
	{name: "use before it is received", run: func(p *program) {
		c := buf.NewChan(1)
		defer c.Abort(nil)
		b := full(p.TryGet())
		_ = c.TrySend(b) // 1:use before it is received
		b.Bytes()[0] = 1 // 2:use before it is received
	}},
	{name: "sent twice", run: func(p *program) {
		c := buf.NewChan(2)
		defer c.Abort(nil)
		b := full(p.TryGet())
		_ = c.Send(context.Background(), b) // 1:sent twice
		_ = c.Send(context.Background(), b) // 2:sent twice
	}},
	{name: "append after a send", run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet())
		_ = c.SendTimeout(context.Background(), b, 0) // 1:append after a send
		r, _ := c.TryRecv()
		p.victims = append(p.victims, fill(r))
		_, _ = b.Append([]byte("more")) // 2:append after a send
	}},
	{name: "old copy after append", run: func(p *program) {
		b := full(p.TryGet())
		c, _ := b.Append(make([]byte, 100)) // 1:old copy after append
		p.victims = append(p.victims, fill(c))
		p.victim()
		_, _ = b.Append([]byte("more")) // 2:old copy after append
	}},
	{name: "write after a release", run: func(p *program) {
		b := full(p.TryGet())
		b.Release() // 1:write after a release
		p.victim()
		_, _ = b.Write([]byte("more")) // 2:write after a release
	}},
	{name: "read into a released buffer", run: func(p *program) {
		b := full(p.TryGet())
		b.Release() // 1:read into a released buffer
		p.victim()
		_, _ = b.Fill(bytes.NewReader([]byte("more")).Read) // 2:read into a released buffer
	}},
	{name: "released while it is read into", run: func(p *program) {
		b := full(p.TryGet()) // 1:released while it is read into
		defer b.Release()
		_, _ = b.Fill(func(room []byte) (int, error) {
			b.Release() // 2:released while it is read into
			return 0, nil
		})
	}},
	{name: "sent while it is written", run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet()) // 1:sent while it is written
		defer b.Release()
		_, _ = b.WriteTo(writerFunc(func([]byte) (int, error) {
			_ = c.TrySend(b) // 2:sent while it is written
			return 0, nil
		}))
	}},
	{name: "clone of a released buffer", run: func(p *program) {
		b := full(p.TryGet())
		b.Release()      // 1:clone of a released buffer
		_, _ = b.Clone() // 2:clone of a released buffer
	}},
	{name: "share of a released buffer", run: func(p *program) {
		b := full(p.TryGet())
		b.Release() // 1:share of a released buffer
		p.victim()
		s := b.Share() // 2:share of a released buffer
		s.Release()
	}},
	{name: "share released twice", run: func(p *program) {
		b := full(p.TryGet())
		s := b.Share()
		defer b.Release()
		s.Release() // 1:share released twice
		s.Release() // 2:share released twice
	}},
	{name: "owner released twice instead of its share", run: func(p *program) {
		b := full(p.TryGet())
		s := b.Share()
		defer s.Release()
		b.Release() // 1:owner released twice instead of its share
		b.Release() // 2:owner released twice instead of its share
	}},
	{name: "share sent and released", run: func(p *program) {
		c := buf.NewChan(1)
		defer c.Abort(nil)
		b := full(p.TryGet())
		defer b.Release()
		s := b.Share()
		_ = c.TrySend(s) // 1:share sent and released
		s.Release()      // 2:share sent and released
	}},
	{name: "read into a shared buffer", run: func(p *program) {
		b := full(p.TryGet())
		defer b.Release()
		s := b.Share() // 1:read into a shared buffer
		defer s.Release()
		_, _ = b.Fill(bytes.NewReader([]byte("more")).Read) // 2:read into a shared buffer
	}},
	{name: "use after an answer", run: func(p *program) {
		d := desk.New[buf.Buf]()
		tk, _ := d.Open(context.Background())
		b := full(p.TryGet())
		_ = buf.HandOver(b, func(b buf.Buf) error { return d.Resolve(tk.ID(), b) }) // 1:use after an answer
		r, _ := tk.Wait(context.Background())
		p.victims = append(p.victims, fill(r))
		b.Bytes()[0] = 1 // 2:use after an answer
	}},
	{name: "use of what came back", run: func(p *program) {
		var kept buf.Buf
		b := full(p.TryGet())
		_ = buf.HandOver(b, func(b buf.Buf) error { kept = b; return errNot }) // 1:use of what came back
		p.victims = append(p.victims, fill(b))
		kept.Bytes()[0] = 1 // 2:use of what came back
	}},
	{name: "delivered and denied", run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet())                       // 1:delivered and denied
		_ = buf.HandOver(b, func(b buf.Buf) error { // 2:delivered and denied
			_ = c.TrySend(b)
			r, _ := c.TryRecv()
			r.Release()
			p.victim()
			return errNot
		})
	}},
	{name: "used by a closure of a fiber", run: func(p *program) {
		var found string
		_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			c := buf.NewChan(0)
			b := full(p.TryGet())
			n.Go("receiver", func(ctx context.Context) error {
				r, err := c.Recv(ctx)
				if err == nil {
					p.victims = append(p.victims, fill(r))
				}
				return err
			})
			if err := c.Send(ctx, b); err != nil { // 1:used by a closure of a fiber
				return err
			}
			found = panicOf(func() { b.Bytes()[0] = 1 }) // 2:used by a closure of a fiber
			return nil
		})
		panic(found)
	}},
	{name: "used after the end of the pool", run: func(p *program) {
		b := full(p.TryGet())
		p.Close()
		b.Release()       // 1:used after the end of the pool
		_ = b.Slice(0, 1) // 2:used after the end of the pool
	}},
	{name: "leak", run: func(p *program) {
		_ = full(p.TryGet()) // 1:leak 2:leak
	}},
	{name: "leak after a receive", run: func(p *program) {
		c := buf.NewChan(1)
		_ = c.TrySend(full(p.TryGet())) // 1:leak after a receive 2:leak after a receive
		_, _ = c.TryRecv()
	}},
	{name: "leak in a channel", run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet()) // 1:leak in a channel
		_ = c.TrySend(b)      // 2:leak in a channel
	}},
	{name: "leak of a share", run: func(p *program) {
		b := full(p.TryGet())
		s := b.Share() // 1:leak of a share 2:leak of a share
		b.Release()
		_ = s
	}},
	{name: "slice written after release", slice: true, run: func(p *program) {
		b := full(p.TryGet()) // 1:slice written after release
		kept := b.Bytes()
		b.Release() // 2:slice written after release
		kept[0] = 1
	}},
	{name: "slice written after a send", slice: true, run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet()) // 1:slice written after a send
		kept := b.Bytes()
		_ = c.TrySend(b) // 2:slice written after a send
		kept[0] = 1
		r, _ := c.TryRecv()
		if r.Bytes()[0] != 0 {
			p.t.Error("the receiver sees what the sender has written too late")
		}
		r.Release()
	}},
	{name: "old slice written after append", slice: true, run: func(p *program) {
		b := full(p.TryGet()) // 1:old slice written after append
		kept := b.Bytes()
		c, _ := b.Append(make([]byte, 100)) // 2:old slice written after append
		kept[0] = 1
		c.Release()
	}},
	{name: "shared bytes written", slice: true, run: func(p *program) {
		b := full(p.TryGet())
		s := b.Share() // 1:shared bytes written
		b.Bytes()[0] = 1
		s.Release() // 2:shared bytes written
	}},
	{name: "select without HandOver", slice: true, run: func(p *program) {
		c := buf.NewChan(1)
		b := full(p.TryGet()) // 1:select without HandOver
		defer b.Release()
		_, _ = coir.TrySelect(c.SendCase(b)) // 2:select without HandOver
	}},
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// fill fills b as a buffer of another owner.
func fill(b buf.Buf) buf.Buf {
	b = b.Slice(0, b.Cap())
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xAA
	}
	return b
}

// In a checked region each program of the corpus is detected, and the report has both places.
//
// Spec: BU-05 (use after release is found)
func TestCorpusIsCaught(t *testing.T) {
	marks := marksOf(t, "corpus_test.go")
	for _, w := range corpus {
		t.Run(w.name, func(t *testing.T) {
			text := runWrong(t, w, buf.WithChecks())
			for _, n := range []string{"1:", "2:"} {
				line, ok := marks[n+w.name]
				if !ok {
					t.Errorf("there is no mark %s", n)
				}
				if !strings.Contains(text, fmt.Sprintf("/corpus_test.go:%d", line)) {
					t.Errorf("line %d (%s) is not named: %s", line, n, text)
				}
			}
			if !strings.HasPrefix(text, "buf: ") || strings.Count(text, "corpus_test.go:") < 1 {
				t.Errorf("the panic is %q, want one that begins with \"buf: \" and names a line of corpus_test.go", text)
			}
			t.Log(text)
		})
	}
	if len(corpus) < 20 {
		t.Error("too few programs")
	}
}

// In a region that is not checked, no program of the corpus changes or takes away a buffer of another owner.
//
// Spec: BU-01 (a buffer has one owner)
func TestCorpusCorruptsNothing(t *testing.T) {
	for _, w := range corpus {
		if !w.slice {
			t.Run(w.name, func(t *testing.T) { runWrong(t, w, buf.WithName("r")) })
		}
	}
}

// runWrong runs an incorrect program, checks its victims, and returns what was detected.
func runWrong(t *testing.T, w wrong, opt buf.Option) string {
	r, err := buf.NewRegion(4*64+4*256, opt)
	if err != nil {
		t.Fatal(err)
	}
	small, err := buf.NewPool(r, 64, 4, coir.WithName("frames"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buf.NewPool(r, 256, 4, coir.WithName("large")); err != nil {
		t.Fatal(err)
	}
	p := &program{Pool: small, t: t}
	text := panicOf(func() { w.run(p) })
	for _, b := range p.victims {
		if len(bytes.Trim(b.Bytes(), "\xAA")) > 0 {
			t.Errorf("a buffer of another owner was changed: %x", b.Bytes())
		}
		b.Release()
	}
	if err := r.Close(); err != nil && text == "" {
		text = err.Error()
	}
	return text
}

// marksOf returns the lines of the marks in a file.
func marksOf(t *testing.T, file string) map[string]int {
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]int)
	for i, line := range strings.Split(string(src), "\n") {
		_, comment, ok := strings.Cut(line, "// ")
		if !ok {
			continue
		}
		for _, n := range []string{"1:", "2:"} {
			if at := strings.Index(comment, n); at >= 0 {
				name, _, _ := strings.Cut(comment[at+2:], " 2:")
				lines[n+name] = i + 1
			}
		}
	}
	return lines
}
