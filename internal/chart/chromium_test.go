package chart

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

// browser drives a headless Chromium through the DevTools protocol: JSON messages that end with a zero byte, over two
// pipes, which are the descriptors 3 and 4 of the browser.
type browser struct {
	t       *testing.T
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

// open starts a browser, or skips the test if there is none.
func open(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no chromium: the page is not driven; install the package chromium")
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
	b := &browser{t: t, to: ours, answers: map[int]chan answer{}, events: make(chan string, 64), gone: make(chan struct{})}
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
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	return b
}

// listen reads answers and events until the browser has ended.
func (b *browser) listen(from io.Reader) {
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

func (b *browser) send(id int, method string, params any) error {
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

// call calls a method of the browser.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.mu.Lock()
	b.last++
	id, c := b.last, make(chan answer, 1)
	b.answers[id] = c
	b.mu.Unlock()
	if err := b.send(id, method, params); err != nil {
		b.t.Fatal(err)
	}
	select {
	case a := <-c:
		if a.Error != nil {
			b.t.Fatalf("%s: %s", method, a.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(a.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-b.gone:
		b.t.Fatal("the browser has ended")
	case <-time.After(30 * time.Second):
		b.t.Fatalf("%s: no answer", method)
	}
}

// visit opens a file, and waits until it is loaded.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	select {
	case <-b.events:
	case <-time.After(30 * time.Second):
		b.t.Fatal("the page is not loaded")
	}
	b.frame()
}

// eval returns the value of an expression, which may be a promise.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if result != nil && len(r.Result.Value) > 0 {
		if err := json.Unmarshal(r.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %s: %v", expression, r.Result.Value, err)
		}
	}
}

func (b *browser) text(expression string) (s string) {
	b.t.Helper()
	b.eval("String("+expression+")", &s)
	return s
}

// frame waits until the page has drawn the last change.
func (b *browser) frame() {
	b.t.Helper()
	b.eval("new Promise((ok) => requestAnimationFrame(() => ok(1)))", nil)
}

// press presses keys, by their names in KeyboardEvent.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		if code := map[string]int{"Enter": 13, "Escape": 27}[key]; code > 0 {
			down["windowsVirtualKeyCode"] = code
		}
		if len([]rune(key)) == 1 {
			down["text"] = key
		}
		b.call("Input.dispatchKeyEvent", down, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	}
	b.frame()
}

// click clicks on the first row in view that matches a selector.
func (b *browser) click(selector string) {
	b.t.Helper()
	var at [2]float64
	b.eval(fmt.Sprintf("(() => { const r = [...document.querySelectorAll(%q)].map((e) => e.getBoundingClientRect())."+
		"find((r) => r.top > document.querySelector('#heads').getBoundingClientRect().bottom && r.bottom < innerHeight); "+
		"return [r.x + Math.min(r.width / 2, 200), r.y + r.height / 2]; })()", selector), &at)
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": what, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
	b.frame()
}

// prefer sets the color scheme.
func (b *browser) prefer(scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
	b.frame() // the page handles the event
	b.frame()
}

// work is the processor time used so far, in milliseconds.
type work struct {
	page    float64 // by the thread of the page
	browser float64 // by all processes of the browser
	busy    float64 // by all programs; 0 if not known
	idle    float64 // the idle time of all processors
	layouts float64 // number of layouts of the page
}

func (b *browser) work() (w work) {
	b.t.Helper()
	var r struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.call("Performance.getMetrics", nil, &r)
	for _, m := range r.Metrics {
		switch m.Name {
		case "TaskDuration":
			w.page = m.Value * 1000
		case "LayoutCount":
			w.layouts = m.Value
		}
	}
	var all struct{ ProcessInfo []struct{ CPUTime float64 } }
	b.call("SystemInfo.getProcessInfo", nil, &all)
	for _, p := range all.ProcessInfo {
		w.browser += p.CPUTime * 1000
	}
	if w.page == 0 || w.layouts == 0 || w.browser == 0 {
		b.t.Fatalf("the browser does not say how long it computes: %+v", w)
	}
	stat, _ := os.ReadFile("/proc/stat") // of Linux: user nice system idle iowait irq softirq steal, in 10 ms
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(field, 64)
		switch {
		case i == 4 || i == 5:
			w.idle += n * 10
		case i >= 1 && i <= 8:
			w.busy += n * 10
		}
	}
	return w
}

// since returns the difference to an earlier measurement.
func (w work) since(before work) work {
	return work{
		w.page - before.page, w.browser - before.browser, w.busy - before.busy, w.idle - before.idle,
		w.layouts - before.layouts,
	}
}

// others returns the share of the machine that other programs used.
func (w work) others() float64 { return max(0, w.busy-w.browser) / max(1, w.busy+w.idle) }

// picture returns a screenshot, as a PNG.
func (b *browser) picture() []byte {
	b.t.Helper()
	return b.bytes("Page.captureScreenshot", map[string]any{"format": "png"})
}

// bytes calls a method that returns data.
func (b *browser) bytes(method string, params any) []byte {
	b.t.Helper()
	var r struct{ Data string }
	b.call(method, params, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// quiet fails the test if the page has reported an error.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Errorf("the page reports an error: %s", fault)
	}
	b.faults = nil
}
