package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// ask sends a request to a handler without a network. Headers are pairs of a name and a value.
func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func handlerOf(of ...Source) *handler {
	h := newHandler(&settings{of: of})
	h.cache.explain = func(earlier, later *snapshot.Snapshot) []snapshot.Explanation { return whyDeadlock() }
	return h
}

// A request for an address has the same answer wherever the handler is mounted.
func TestMountedAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for prefix, mount := range map[string]func(*http.ServeMux, http.Handler){
			"": func(m *http.ServeMux, h http.Handler) { m.Handle("/", h) },
			"/debug/coir": func(m *http.ServeMux, h http.Handler) {
				m.Handle("/debug/coir/", http.StripPrefix("/debug/coir", h))
			},
			"/a/b/c": func(m *http.ServeMux, h http.Handler) { m.Handle("/a/b/c/", h) },
		} {
			mux := http.NewServeMux()
			mount(mux, handlerOf(&fake{s: deadlock()}))
			for path, want := range map[string]string{
				"/": "<!DOCTYPE html>", "/text": "worker[0]", "/snapshot.json": `"name":"worker[0]"`,
				"/dump": `"name":"worker[0]"`, "/fiber?id=2": `"name":"worker[0]"`,
			} {
				w := ask(mux, "GET", "http://localhost"+prefix+path)
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
					t.Errorf("%s%s: %d %.200s", prefix, path, w.Code, w.Body)
				}
			}
			for _, path := range []string{"/other", "/fiber?id=999", "/text?of=1", "/text?of=-1", "/text?of=x"} {
				if w := ask(mux, "GET", "http://localhost"+prefix+path); w.Code != http.StatusNotFound {
					t.Errorf("%s%s: %d", prefix, path, w.Code)
				}
			}
			if w := ask(mux, "GET", "http://localhost"+prefix+"/fiber"); w.Code != http.StatusBadRequest {
				t.Errorf("%s/fiber: %d", prefix, w.Code)
			}
		}
	})
}

// The links of the page are relative, so the address must end with a slash.
func TestMountedWithoutASlash(t *testing.T) {
	h := http.StripPrefix("/debug/coir", handlerOf(&fake{s: deadlock()}))
	w := ask(h, "GET", "http://localhost/debug/coir?x=1")
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "./coir/" {
		t.Errorf("%d %q", w.Code, w.Header().Get("Location"))
	}
}

func TestNothingIsWritten(t *testing.T) {
	source := &fake{s: deadlock()}
	h := handlerOf(source)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"} {
		for _, path := range []string{"/", "/text", "/snapshot.json", "/dump", "/fiber?id=2"} {
			w := ask(h, method, "http://localhost"+path)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
	for _, path := range []string{"/", "/text", "/snapshot.json", "/dump", "/fiber?id=2"} {
		if w := ask(h, "HEAD", "http://localhost"+path); w.Code != http.StatusOK || w.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
	if n := source.taken(); n != 0 {
		t.Errorf("%d snapshots were taken", n)
	}
}

// A page of another site cannot read the answers: neither by a request from that site, nor by a name that points here.
func TestOtherSitesAreRefused(t *testing.T) {
	source := &fake{s: deadlock()}
	h := newHandler(&settings{of: []Source{source}, hosts: []string{"ops.example"}})
	for _, c := range []struct {
		headers string
		code    int
	}{
		{"Host=localhost", 200},
		{"Host=localhost:7117", 200},
		{"Host=LOCALHOST.:7117", 200},
		{"Host=shop.localhost:7117", 200},
		{"Host=127.0.0.1:7117", 200},
		{"Host=127.8.9.1", 200},
		{"Host=[::1]:7117", 200},
		{"Host=[::1]", 200},
		{"Host=ops.example:443", 200},
		{"Host=evil.example", 403},
		{"Host=evil.example:7117", 403},
		{"Host=localhost.evil.example", 403},
		{"Host=127.0.0.1.evil.example", 403},
		{"Host=notlocalhost", 403},
		{"Host=192.0.2.1:7117", 403},
		{"Host=0.0.0.0:7117", 403},
		{"Host=", 403},
		{"Host=localhost Sec-Fetch-Site=same-origin", 200},
		{"Host=localhost Sec-Fetch-Site=none", 200},
		{"Host=localhost Sec-Fetch-Site=cross-site", 403},
		{"Host=localhost Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document", 403},
		{"Host=localhost Sec-Fetch-Site=same-site", 403},
		{"Host=localhost Sec-Fetch-Site=same-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=iframe", 403},
		{"Host=localhost Sec-Fetch-Site=same-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document", 200},
		{"Host=localhost Sec-Fetch-Site=unheard-of", 403},
		{"Host=localhost:7117 Origin=http://localhost:7117", 200},
		{"Host=localhost:7117 Origin=http://localhost:3000", 403},
		{"Host=localhost:7117 Origin=http://evil.example", 403},
		{"Host=localhost:7117 Origin=null", 403},
	} {
		var headers []string
		for header := range strings.FieldsSeq(c.headers) {
			name, value, _ := strings.Cut(header, "=")
			headers = append(headers, name, value)
		}
		w := ask(h, "GET", "http://localhost/", headers...)
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d", c.headers, w.Code, c.code)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: the answer has %s", c.headers, name)
			}
		}
	}
	before := source.taken()
	if w := ask(h, "GET", "http://localhost/snapshot.json", "Host", "evil.example"); w.Code != 403 ||
		source.taken() != before {
		t.Errorf("%d, and %d snapshots were taken", w.Code, source.taken()-before)
	}
}

func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(&fake{s: deadlock()})
		for _, path := range []string{"/", "/text", "/snapshot.json", "/dump", "/fiber?id=2", "/other"} {
			header := ask(h, "GET", "http://localhost"+path).Header()
			policy := header.Get("Content-Security-Policy")
			if header.Get("Cache-Control") != "no-store" || header.Get("X-Content-Type-Options") != "nosniff" ||
				header.Get("X-Frame-Options") != "DENY" ||
				!strings.HasPrefix(policy, "default-src 'none'") ||
				!strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: %v", path, header)
			}
		}
		d := ask(h, "GET", "http://localhost/dump").Header().Get("Content-Disposition")
		if !strings.HasPrefix(d, `attachment; filename="coir-2`) {
			t.Errorf("a dump has the disposition %q", d)
		}
	})
}

// The page loads nothing, and never turns text into HTML.
func TestThePartsOfThePage(t *testing.T) {
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
		"new Function", "localStorage", "import("} {
		if strings.Contains(pageJS, bad) {
			t.Errorf("the script has %s in it", bad)
		}
	}
	for _, bad := range []string{"https:", "src=", "@import", "url(", " style=", " onclick="} {
		if strings.Contains(livePage, bad) {
			t.Errorf("the page has %s in it", bad)
		}
	}
	if strings.Contains(livePage, "{{") {
		t.Error("a part of the page is not filled in")
	}
}

// Requests that come together share a snapshot. The first one takes another, because an explanation needs two.
func TestRequestsShareASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{s: deadlock()}
		h := handlerOf(source)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if w := ask(h, "GET", "http://localhost/snapshot.json"); w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		if n := source.taken(); n != 2 {
			t.Errorf("%d snapshots were taken, want 2", n)
		}
		time.Sleep(time.Second) // on the virtual clock
		ask(h, "GET", "http://localhost/snapshot.json")
		ask(h, "GET", "http://localhost/text")
		if n := source.taken(); n != 4 {
			t.Errorf("%d snapshots were taken, want 4", n)
		}
		time.Sleep(idle)
		synctest.Wait()
		if h.cache.kept[0].last != nil || cap(h.cache.kept[0].before.fibers) > 0 || len(h.cache.last) > 0 || h.cache.held > 0 {
			t.Error("the handler keeps a snapshot although no request comes")
		}
	})
}

// Explain gets two snapshots of the same source, the earlier one first.
func TestExplanationsComeFromTwoSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &fake{s: deadlock()}, &fake{s: many(10)}
		h := newHandler(&settings{of: []Source{one, two}})
		var got []string
		h.cache.explain = func(earlier, later *snapshot.Snapshot) []snapshot.Explanation {
			got = append(got, fmt.Sprint(earlier.Process.Program, len(earlier.Fibers), " ", later.Process.Program,
				len(later.Fibers)))
			if &earlier.Fibers[0] == &later.Fibers[0] || !reflect.DeepEqual(earlier.Fibers, later.Fibers) {
				t.Error("the snapshots share memory, or are not of the same fibers")
			}
			return whyDeadlock()
		}
		for _, path := range []string{"snapshot.json", "snapshot.json?of=1", "text?of=1", "text", "dump", "dump?stacks=1"} {
			if w := ask(h, "GET", "http://localhost/"+path); !strings.Contains(w.Body.String(), "orders is full") {
				t.Errorf("%s has no explanation", path)
			}
		}
		if want := "[shop112 shop112 many10 many10 many10 many10 shop112 shop112 shop112 shop112 shop112 shop112]"; fmt.Sprint(got) != want {
			t.Errorf("explained were %v, want %s", got, want)
		}
	})
}

// If requests follow each other in milliseconds, each is compared with a snapshot that is old enough, but not older
// than necessary.
func TestRequestsCloseTogetherAreExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(&timely{})
		var gaps []time.Duration
		h.cache.explain = func(earlier, later *snapshot.Snapshot) []snapshot.Explanation {
			gaps = append(gaps, later.Taken.Sub(earlier.Taken))
			return nil
		}
		for i, path := range slices.Repeat([]string{"text", "text?stacks=1", "snapshot.json", "dump"}, 500) {
			ask(h, "GET", "http://localhost/"+path)
			time.Sleep(time.Duration(1+i%40) * time.Millisecond) // on the virtual clock
		}
		if len(gaps) < 100 || slices.Min(gaps) < apart || slices.Min(gaps[100:]) < settled || slices.Max(gaps) > 3*settled {
			t.Errorf("%d snapshots were compared with others that were %v to %v older, later at least %v",
				len(gaps), slices.Min(gaps), slices.Max(gaps), slices.Min(gaps[100:]))
		}
	})
}

// timely is a source whose snapshots record the time at which they were taken.
type timely struct{}

func (*timely) Snapshot(snapshot.Options) *snapshot.Snapshot {
	return &snapshot.Snapshot{Taken: time.Now()}
}

// A request that ends while it waits for its turn leaves the handler usable.
func TestACancelledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(&fake{s: deadlock()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/text", nil).WithContext(ctx))
		}()
		synctest.Wait() // it waits between the two snapshots
		cancel()
		<-done
		if w := ask(h, "GET", "http://localhost/text"); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// slow is a reader that takes the first byte, and then nothing until it may continue.
type slow struct {
	header http.Header
	begun  func()
	wait   chan struct{}
	once   sync.Once
	code   int
	n      int
}

func (s *slow) Header() http.Header  { return s.header }
func (s *slow) WriteHeader(code int) { s.code = code }
func (s *slow) Write(b []byte) (int, error) {
	s.once.Do(func() { s.begun(); <-s.wait })
	s.n += len(b)
	return len(b), nil
}

// A thousand slow readers hold few snapshots, although they come one after the other, so that each could have its own.
func TestSlowReadersHoldFewSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fake{s: many(1000)}
		h := handlerOf(source)
		wait := make(chan struct{})
		var all sync.WaitGroup
		var readers []*slow
		var before, after runtime.MemStats
		documents := map[*document]bool{}
		for i := range 1000 {
			begun := make(chan struct{})
			s := &slow{header: http.Header{}, begun: func() { close(begun) }, wait: wait}
			readers = append(readers, s)
			r := httptest.NewRequest("GET", "http://localhost/snapshot.json", nil)
			if i%2 == 0 {
				r.Header.Set("Accept-Encoding", "gzip")
			}
			all.Go(func() { h.ServeHTTP(s, r) })
			<-begun
			h.cache.mu.Lock()
			documents[h.cache.last[key{}]] = true
			if h.cache.held > mostHeld || len(h.cache.last) > 1 {
				t.Fatalf("%d documents are held", h.cache.held)
			}
			h.cache.mu.Unlock()
			if i == 10 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
			time.Sleep(fresh) // on the virtual clock; the newest document is stale now
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := source.taken(); n > mostHeld+1 || len(documents) > mostHeld {
			t.Errorf("%d snapshots were taken, and there are %d documents", n, len(documents))
		}
		// A reader needs its goroutine and, if it does not accept gzip, the memory to unpack: not a snapshot of 500 kB.
		each := (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / 989
		t.Logf("a reader has %d bytes", each)
		if each > 200<<10 {
			t.Errorf("a reader has %d bytes", each)
		}
		// Meanwhile a request for a document of another kind is refused, because there is none to share.
		if w := ask(h, "GET", "http://localhost/text"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		close(wait)
		all.Wait()
		for _, s := range readers {
			if s.code != 0 && s.code != http.StatusOK || s.n < 1000 {
				t.Fatalf("a slow reader got %d bytes, and the status %d", s.n, s.code)
			}
		}
		if h.cache.held != 0 {
			t.Errorf("%d documents are held at the end", h.cache.held)
		}
		if w := ask(h, "GET", "http://localhost/text"); w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// The handler cuts off a reader that does not read, and releases its document.
func TestAReaderThatDoesNotRead(t *testing.T) {
	h := handlerOf(&fake{s: many(20_000)})
	h.limits.write = 50 * time.Millisecond
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := h.cache.get(r.Context(), key{})
		if err != nil {
			ended <- err
			return
		}
		h.cache.release(d)
		h.ServeHTTP(w, r)
		h.cache.mu.Lock()
		defer h.cache.mu.Unlock()
		if h.cache.held != 0 {
			err = fmt.Errorf("%d documents are held", h.cache.held)
		}
		ended <- err
	}))
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := io.WriteString(c, "GET /snapshot.json HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Names may contain anything. The text has no control characters, and lines of bounded length; texts in JSON are cut.
func TestHostileNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, bad := range []string{
			"<script>alert(1)</script>", "\x1b[2J\x1b]0;title\x07", "a\r\nb\x00\x7f\u0085\u2028", "\u202egpj.exe", "\xff\xfe\xc3",
			strings.Repeat("ä", 1<<19), strings.Repeat("\x1b", 1<<20), "", "[", "x[99999999999999999999999]",
		} {
			s := deadlock()
			s.Process.Program, s.Process.Go, s.Process.Coir = bad, bad, bad
			for i := range s.Fibers {
				f := &s.Fibers[i]
				f.Name, f.Spawned, f.At, f.Call, f.State = bad, bad, bad, bad, snapshot.State(bad)
				if i < 5 {
					f.Stack = bad
				}
				for k := range f.Wait {
					f.Wait[k].Text, f.Wait[k].Kind = bad, snapshot.WaitKind(bad)
				}
			}
			for i := range s.Objects {
				o := &s.Objects[i]
				o.Name, o.Kind, o.Ends = bad, bad, bad
			}
			for i := range s.Nurseries {
				s.Nurseries[i].Cause = bad
			}
			for i := range s.Workers {
				s.Workers[i].State = snapshot.WorkerState(bad)
			}
			h := newHandler(&settings{of: []Source{&fake{s: s}}})
			h.cache.explain = func(earlier, later *snapshot.Snapshot) []snapshot.Explanation {
				return []snapshot.Explanation{{Kind: snapshot.Problem(bad), Text: bad, Fibers: []uint64{1, 2}}}
			}
			text := ask(h, "GET", "http://localhost/text").Body.String()
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unprintable(r) }); i >= 0 {
				t.Errorf("the text for %.20q has %q", bad, text[i:min(len(text), i+10)])
			}
			for line := range strings.Lines(text) {
				if len(line) > 20_000 {
					t.Errorf("the text for %.20q has a line of %d bytes", bad, len(line))
				}
			}
			for _, path := range []string{"/snapshot.json", "/dump?stacks=1", "/fiber?id=2"} {
				w := ask(h, "GET", "http://localhost"+path)
				if !json.Valid(w.Body.Bytes()) || bytes.ContainsAny(w.Body.Bytes(), "<>\x1b") {
					t.Errorf("%s for %.20q is not JSON that a page may hold", path, bad)
				}
				if w.Body.Len() > 4<<20 {
					t.Errorf("%s for %.20q has %d bytes", path, bad, w.Body.Len())
				}
			}
			var page strings.Builder
			d := &Dump{Snapshot: s}
			if err := d.WritePage(&page); err != nil || strings.Count(page.String(), "<script") != 2 {
				t.Errorf("a page for %.20q has %d scripts: %v", bad, strings.Count(page.String(), "<script"), err)
			}
		}
	})
}

func TestGzip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(&fake{s: deadlock()})
		plain := ask(h, "GET", "http://localhost/snapshot.json").Body.String()
		for accept, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "": false, "br": false,
			"gzip;q=0": false} {
			w := ask(h, "GET", "http://localhost/snapshot.json", "Accept-Encoding", accept)
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
				t.Errorf("%q: compressed is %v", accept, got)
			}
			var body io.Reader = w.Body
			if packed {
				z, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			if text, err := io.ReadAll(body); err != nil || string(text) != plain {
				t.Errorf("%q: another text: %v", accept, err)
			}
		}
	})
}

func TestServe(t *testing.T) {
	for addr, remote := range map[string]bool{":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false,
		"localhost": true, "localhost:x": true} {
		var opts []Option
		if remote {
			opts = append(opts, WithRemote())
		}
		err := Serve(t.Context(), addr, opts...)
		if err == nil || !strings.HasPrefix(err.Error(), "inspect: ") {
			t.Errorf("Serve on %s returns %v", addr, err)
		}
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0", ":0"} {
		l, err := listen(addr, addr == ":0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- serve(ctx, l, handlerOf(&fake{s: deadlock()})) }()
		r, err := http.Get(fmt.Sprintf("http://localhost:%d/text", l.Addr().(*net.TCPAddr).Port))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(text), "worker[0]") {
			t.Errorf("%s: %v %s", addr, err, text)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// A request for the address at which it has arrived is allowed, because it does not use a name.
func TestTheAddressOfTheConnection(t *testing.T) {
	h := newHandler(&settings{})
	for local, want := range map[string]bool{"192.0.2.1:7117": true, "192.0.2.2:7117": false, "127.0.0.1:7117": false} {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "http://192.0.2.1:7117/", nil)
		if got := h.known(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))); got != want {
			t.Errorf("a request for 192.0.2.1 at %s is allowed: %v", local, got)
		}
	}
}

// Without a source, the handler shows the default runtime, and does not make it before the first request.
func TestTheDefaultRuntime(t *testing.T) {
	h := Handler()
	if of := h.(*handler).cache.of; len(of) != 0 {
		t.Error("the handler has used the default runtime before a request")
	}
	if w := ask(h, "GET", "http://localhost/snapshot.json"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// In a fiber, Serve ends with the fiber's context, and does not take a worker from other fibers.
func TestServeInAFiber(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rt := coir.NewRuntime(coir.WithWorkers(1))
	served := errors.New("not served")
	_ = rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { // it returns the cause of the cancel
		n.Go("inspect", func(ctx context.Context) error {
			served = Serve(ctx, "localhost:0", WithSource(&fake{s: deadlock()}))
			return served
		})
		n.Go("work", func(context.Context) error {
			cancel()
			return nil
		})
		return nil
	})
	if served != nil {
		t.Error(served)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
