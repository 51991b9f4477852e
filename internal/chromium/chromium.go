// Package chromium drives a headless Chromium, for the tests of pages.
package chromium

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Browser drives a headless Chromium through the DevTools protocol: JSON messages that end with a zero byte, over two
// pipes, which are the descriptors 3 and 4 of the browser.
type Browser struct {
	T       *testing.T // the test that drives it
	to      io.Writer
	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	session string
	events  chan string // names of the events that the test waits for
	faults  []string    // errors on the console, and exceptions
	gone    chan struct{}
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// Open starts a browser, or skips the test if there is none.
func Open(t *testing.T) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("chromium not found: the page is not driven; install the package chromium")
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--window-size=1280,860")
	cmd.ExtraFiles = []*os.File{theirs, write}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), write.Close()
	b := &Browser{T: t, to: ours, answers: map[int]chan answer{}, events: make(chan string, 64), gone: make(chan struct{})}
	go b.listen(read)
	t.Cleanup(func() {
		_ = b.send(0, "Browser.close", nil)
		_ = ours.Close()
		done := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		<-b.gone
		_ = cmd.Wait()
		done.Stop()
		_ = read.Close()
	})
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.Call(domain+".enable", nil, nil)
	}
	b.Call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	return b
}

// listen reads answers and events until the browser has ended.
func (b *Browser) listen(from io.Reader) {
	defer close(b.gone)
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			answer
			ID     int
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.answers[m.ID]; c != nil {
			c <- m.answer
			delete(b.answers, m.ID)
		}
		switch m.Method {
		case "Runtime.exceptionThrown":
			b.faults = append(b.faults, string(m.Params))
		case "Runtime.consoleAPICalled", "Log.entryAdded":
			if bytes.Contains(m.Params, []byte(`"error"`)) || bytes.Contains(m.Params, []byte(`"warning"`)) {
				b.faults = append(b.faults, string(m.Params))
			}
		case "Page.loadEventFired":
			b.events <- m.Method
		}
		b.mu.Unlock()
	}
}

func (b *Browser) send(id int, method string, params any) error {
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	domain, _, _ := strings.Cut(method, ".")
	if b.session != "" && domain != "Target" && domain != "Browser" && domain != "SystemInfo" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	return err
}

// Call calls a method of the browser.
func (b *Browser) Call(method string, params, result any) {
	b.T.Helper()
	b.mu.Lock()
	b.last++
	id, c := b.last, make(chan answer, 1)
	b.answers[id] = c
	b.mu.Unlock()
	if err := b.send(id, method, params); err != nil {
		b.T.Fatal(err)
	}
	select {
	case a := <-c:
		if a.Error != nil {
			b.T.Fatalf("%s: %s", method, a.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(a.Result, result); err != nil {
				b.T.Fatal(err)
			}
		}
	case <-b.gone:
		b.T.Fatal("the browser has ended")
	case <-time.After(30 * time.Second):
		b.T.Fatalf("%s: no answer", method)
	}
}

// Visit opens an address, and waits until it is loaded.
func (b *Browser) Visit(url string) {
	b.T.Helper()
	b.Call("Page.navigate", map[string]any{"url": url}, nil)
	select {
	case <-b.events:
	case <-time.After(30 * time.Second):
		b.T.Fatal("the page is not loaded")
	}
	b.Frame()
}

// Eval returns the value of an expression, which may be a promise.
func (b *Browser) Eval(expression string, result any) {
	b.T.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.T.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if result != nil && len(r.Result.Value) > 0 {
		if err := json.Unmarshal(r.Result.Value, result); err != nil {
			b.T.Fatalf("%s: %s: %v", expression, r.Result.Value, err)
		}
	}
}

// Text returns the value of an expression as text.
func (b *Browser) Text(expression string) (s string) {
	b.T.Helper()
	b.Eval("String("+expression+")", &s)
	return s
}

// Frame waits until the page has drawn the last change.
func (b *Browser) Frame() {
	b.T.Helper()
	b.Eval("new Promise((ok) => requestAnimationFrame(() => ok(1)))", nil)
}

// Press presses keys, by their names in KeyboardEvent.
func (b *Browser) Press(keys ...string) {
	b.T.Helper()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		if code := map[string]int{"Enter": 13, "Escape": 27}[key]; code > 0 {
			down["windowsVirtualKeyCode"] = code
		}
		if len([]rune(key)) == 1 {
			down["text"] = key
		}
		b.Call("Input.dispatchKeyEvent", down, nil)
		b.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	}
	b.Frame()
}

// Click clicks on the first element in sight, below the element head, that matches a selector.
func (b *Browser) Click(selector, head string) {
	b.T.Helper()
	var at [2]float64
	b.Eval(fmt.Sprintf("(() => { const r = [...document.querySelectorAll(%q)].map((e) => e.getBoundingClientRect())."+
		"find((r) => r.top >= document.querySelector(%q).getBoundingClientRect().bottom && r.bottom < innerHeight); "+
		"return [r.x + Math.min(r.width / 2, 200), r.y + r.height / 2]; })()", selector, head), &at)
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": what, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
	b.Frame()
}

// Prefer sets the colour scheme.
func (b *Browser) Prefer(scheme string) {
	b.T.Helper()
	b.Call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
	b.Frame() // the page handles the event
	b.Frame()
}

// Work is the processor time used so far, in milliseconds.
type Work struct {
	Page    float64 // by the thread of the page
	Browser float64 // by all processes of the browser
	Busy    float64 // by all programs; 0 if not known
	Idle    float64 // the idle time of all processors
	Layouts float64 // number of layouts of the page
}

// Work returns the processor time used so far.
func (b *Browser) Work() (w Work) {
	b.T.Helper()
	var r struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.Call("Performance.getMetrics", nil, &r)
	for _, m := range r.Metrics {
		switch m.Name {
		case "TaskDuration":
			w.Page = m.Value * 1000
		case "LayoutCount":
			w.Layouts = m.Value
		}
	}
	var all struct{ ProcessInfo []struct{ CPUTime float64 } }
	b.Call("SystemInfo.getProcessInfo", nil, &all)
	for _, p := range all.ProcessInfo {
		w.Browser += p.CPUTime * 1000
	}
	if w.Page == 0 || w.Layouts == 0 || w.Browser == 0 {
		b.T.Fatalf("the browser does not say how long it computes: %+v", w)
	}
	stat, _ := os.ReadFile("/proc/stat") // of Linux: user nice system idle iowait irq softirq steal, in 10 ms
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(field, 64)
		switch {
		case i == 4 || i == 5:
			w.Idle += n * 10
		case i >= 1 && i <= 8:
			w.Busy += n * 10
		}
	}
	return w
}

// Since returns the difference to an earlier measurement.
func (w Work) Since(before Work) Work {
	return Work{
		w.Page - before.Page, w.Browser - before.Browser, w.Busy - before.Busy, w.Idle - before.Idle,
		w.Layouts - before.Layouts,
	}
}

// Others returns the share of the machine that other programs used.
func (w Work) Others() float64 { return max(0, w.Busy-w.Browser) / max(1, w.Busy+w.Idle) }

// Picture returns a screenshot, as a PNG.
func (b *Browser) Picture() []byte {
	b.T.Helper()
	return b.Bytes("Page.captureScreenshot", map[string]any{"format": "png"})
}

// Bytes calls a method that returns data.
func (b *Browser) Bytes(method string, params any) []byte {
	b.T.Helper()
	var r struct{ Data string }
	b.Call(method, params, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		b.T.Fatal(err)
	}
	return data
}

// Quiet fails the test if the page has reported an error.
func (b *Browser) Quiet() {
	b.T.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.T.Errorf("the page reports an error: %s", fault)
	}
	b.faults = nil
}
