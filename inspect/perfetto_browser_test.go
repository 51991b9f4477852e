package inspect

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/chromium"
)

// viewerPage loads a trace into the trace viewer of Chrome, which the Go distribution includes for "go tool trace".
const viewerPage = `<!DOCTYPE html><html><head><meta charset="utf-8"><script src="static/webcomponents.min.js"></script>
<link rel="import" href="static/trace_viewer_full.html"><script>
document.addEventListener("WebComponentsReady", async () => {
	const model = new tr.Model(), view = document.createElement("tr-ui-timeline-view");
	const box = document.createElement("track-view-container");
	const text = await (await fetch("trace.json")).text();
	await new tr.importer.Import(model).importTracesWithProgressDialog([text]);
	box.id = "track_view_container";
	view.track_view_container = box;
	Polymer.dom(view).appendChild(box);
	Polymer.dom(document.body).appendChild(view);
	view.model = model;
	window.model = model;
});
</script></head><body style="height: 800px"></body></html>`

// The trace viewer of Chrome reads a trace without a warning, and shows each slice and each arrow of it.
func TestThePageOfATrace(t *testing.T) {
	if os.Getenv("COIR_PAGE") == "" {
		t.Skip("it needs a browser: it is run by make page, or with COIR_PAGE=1")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(strings.TrimSpace(string(root)), "src/internal/trace/traceviewer/static")
	rt, r := recorded(t, 1000, coir.WithWorkers(2))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- busy(ctx, rt, "packer", `"</script>`+"\n\xff") }()
	for r.last.Load() < 5000 {
		runtime.Gosched()
	}
	var text bytes.Buffer
	err = r.WriteTrace(&text, 0)
	cancel()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	want, err := readTrace(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/static/", http.StripPrefix("/static/", http.FileServer(http.Dir(static))))
	mux.HandleFunc("/trace.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text.Bytes()) })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(viewerPage))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := browser{chromium.Open(t)}
	b.Visit(server.URL)
	b.until(`window.model`)
	var got struct {
		Slices, Arrows, Open int
		Threads, Warnings    []string
	}
	b.Eval(`(() => {
		const got = { Slices: 0, Open: 0, Arrows: 0, Threads: [], Warnings: model.importWarnings.map((w) => w.message) };
		for (const p of model.getAllProcesses()) for (const t of Object.values(p.threads)) {
			got.Threads.push(t.name || "");
			got.Slices += t.sliceGroup.slices.length;
			got.Open += t.sliceGroup.slices.filter((s) => s.didNotFinish).length;
		}
		got.Arrows = model.flowEvents.filter((f) => f.startSlice && f.endSlice && f.startSlice !== f.endSlice).length;
		return got;
	})()`, &got)
	threads := map[string]bool{}
	for _, x := range want.slices {
		threads[x.fiber] = true
	}
	if got.Slices != len(want.slices) || got.Arrows != len(want.arrows) || got.Open > 0 || len(got.Warnings) > 0 ||
		len(got.Threads) != len(threads) {
		t.Errorf("the viewer shows %d slices and %d arrows of %d threads, %d without an end, warnings %q; want %d, %d, %d",
			got.Slices, got.Arrows, len(got.Threads), got.Open, got.Warnings,
			len(want.slices), len(want.arrows), len(threads))
	}
	for _, name := range got.Threads {
		if !threads[name] {
			t.Errorf("there is no fiber %q", name)
		}
	}
}
