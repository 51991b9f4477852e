package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chromium"
)

type browser struct{ *chromium.Browser }

// These tests open the page in a real browser, and use it as a reader does, with keys and the mouse. With
// COIR_PICTURES=DIR they write pictures of each size to DIR, and a picture x.png of each page x.html that is in DIR.
// The pictures of the guide are made in this way.

// save writes a picture if COIR_PICTURES is set.
func save(t *testing.T, name string, data []byte) {
	t.Helper()
	dir := os.Getenv("COIR_PICTURES")
	if dir == "" {
		return
	}
	if strings.HasSuffix(name, ".png") {
		data = reduced(t, data)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Error(err)
	}
}

// reduced returns a picture with its most frequent colours only, which makes it a third as large.
func reduced(t *testing.T, data []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.Color]int{}
	b := from.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[from.At(x, y)]++
		}
	}
	all := slices.Collect(maps.Keys(count))
	slices.SortFunc(all, func(a, b color.Color) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	to := image.NewPaletted(b, color.Palette(all[:min(len(all), 128)]))
	index := map[color.Color]uint8{}
	for _, c := range all {
		index[c] = uint8(to.Palette.Index(c))
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			to.SetColorIndex(x, y, index[from.At(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// load writes a chart to a file, and opens the file.
func (b browser) load(c *Chart) {
	b.T.Helper()
	path := filepath.Join(b.T.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(written(b.T, c)), 0o600); err != nil {
		b.T.Fatal(err)
	}
	b.Visit("file://" + path)
}

// Expressions that return what the page shows.
const (
	chosen  = `(document.querySelector(".row.cur") || {}).textContent`
	stepAt  = `document.querySelector("#panel h2").firstChild.textContent`
	state   = `document.querySelector("#panel").innerText`
	inView  = `document.querySelectorAll("#rows .row").length`
	hits    = `document.querySelector("#hits").textContent`
	rowsAre = `Number(document.querySelector("#grid").getAttribute("aria-rowcount"))`
)

func (b browser) is(expression, want string) {
	b.T.Helper()
	if got := b.Text(expression); got != want {
		b.T.Errorf("%s is %q, want %q", expression, got, want)
	}
}

func (b browser) has(expression string, parts ...string) {
	b.T.Helper()
	got := b.Text(expression)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			b.T.Errorf("%s has no %q:\n%s", expression, part, got)
		}
	}
}

func (b browser) count(selector string) (n int) {
	b.T.Helper()
	b.Eval(fmt.Sprintf("document.querySelectorAll(%q).length", selector), &n)
	return n
}

func TestThePageIsDriven(t *testing.T) {
	if os.Getenv("COIR_PAGE") == "" && os.Getenv("COIR_PICTURES") == "" {
		t.Skip("it takes half a minute: it is run by make page, or with COIR_PAGE=1")
	}
	b := browser{chromium.Open(t)}
	for _, size := range []struct{ steps, actors int }{{20, 4}, {300, 12}, {5000, 100}} {
		c := sample(size.steps, size.actors)
		t.Run(fmt.Sprint(size.steps), func(t *testing.T) {
			b.T = t
			b.load(c)
			for _, scheme := range []string{"dark", "light"} {
				b.Prefer(scheme)
				b.is("document.documentElement.dataset.theme", scheme)
				save(t, fmt.Sprintf("%d-%s.png", size.steps, scheme), b.Picture())
			}
			b.steps(c)
			b.scrolls()
			b.legend(size.steps)
			b.folds()
			b.searches(c)
			b.pins()
			b.twins(c, size.steps)
			b.prints(size.steps)
			if size.steps == 5000 {
				b.speed()
			}
			b.Quiet()
		})
	}
	b.T = t
	var pages []string
	if dir := os.Getenv("COIR_PICTURES"); dir != "" {
		pages, _ = filepath.Glob(filepath.Join(dir, "*.html"))
	}
	for _, path := range pages {
		b.Visit("file://" + path)
		save(t, strings.TrimSuffix(filepath.Base(path), "html")+"png", b.Picture())
		b.Quiet()
	}
}

// steps tests the keys that choose a step.
func (b browser) steps(c *Chart) {
	b.T.Helper()
	n := len(c.Steps)
	b.has(chosen, "diverges here") // a page opens there
	b.Press("End")
	b.is(stepAt, "At the end")
	b.has(state, "2 wait", "worker[0]", "waits to lock stock, at shop/orders.go:62, since step "+Grouped(n-1),
		"held by worker[1]", "waits to lock: worker[0]")
	b.has(`document.querySelector("header").innerText`, "deadlock: no fiber can run", "-sim.replay=", "worker[1] waits to lock ledger")
	b.Press("ArrowUp")
	b.is(stepAt, "Step "+Grouped(n))
	b.Press("k", "k")
	b.is(stepAt, "Step "+Grouped(n-2))
	b.has(state, "worker[1]", "lock stock", "at shop/orders.go:71")
	b.Press("j", "ArrowDown")
	b.is(stepAt, "Step "+Grouped(n))
	b.Press("Home")
	b.is(stepAt, "Step 1")
	b.has(state, "go feed", "starts feed", "not started")
	b.Press("PageDown")
	down := b.Text(stepAt)
	b.Press("PageUp")
	if b.is(stepAt, "Step 1"); down == "Step 1" {
		b.T.Error("PageDown does nothing")
	}
	b.Press("n") // the next step of the ticker
	b.is(stepAt, "Step 2")
	b.Press("N")
	b.is(stepAt, "Step 1")
	b.Press("End", "ArrowUp", "O") // the last use of the ledger before
	b.is(stepAt, "Step "+Grouped(n-3))
	b.Press("End")
	b.is(stepAt, "At the end")
	if rows, _ := strconv.Atoi(b.Text(inView)); rows > 80 || rows < 10 {
		b.T.Errorf("%d rows are in the document", rows)
	}
	b.Press("d")
	b.is("document.documentElement.dataset.theme", "dark")
	b.Press("d")
}

// scrolls moves in all ways. It checks that each row in view is drawn once and in its place, and that only the lines of
// the chosen step are drawn.
func (b browser) scrolls() {
	b.T.Helper()
	const wrong = `(() => {
		const at = (selector) => document.querySelector(selector).getBoundingClientRect();
		const all = (selector) => [...document.querySelectorAll(selector)];
		const rows = all("#rows .row").map((r) => [Number(r.dataset.k), r.getBoundingClientRect()]);
		for (let i = 1; i < rows.length; i++) {
			const [k, place] = rows[i], [before, above] = rows[i - 1];
			if (k !== before + 1 || place.top !== above.bottom) return "row " + k + " follows row " + before;
		}
		const [first, top] = rows[0], [last, bottom] = rows[rows.length - 1];
		if (first > 0 && top.top > at("#heads").bottom) return "no row is above row " + first;
		const end = Number(document.querySelector("#grid").getAttribute("aria-rowcount")) - 1;
		if (last < end && bottom.bottom < at("#grid").bottom) return "no row is below row " + last;
		const marked = all("#rows .lifeSel").map((line) => line.getAttribute("d").split(" ")[0]);
		if (new Set(marked).size > 1) return "the lines of several actors are marked: " + marked;
		return "";
	})()`
	scroll := func(by int) {
		b.Eval(fmt.Sprintf(`document.querySelector("#grid").scrollTop += %d`, by), nil)
		b.Frame() // the page handles the event
		b.Frame()
	}
	for _, key := range strings.Fields("Home PageDown PageDown k PageUp PageDown End PageUp n k PageUp j") {
		b.Press(key)
		b.is(wrong, "")
		b.is(`document.querySelectorAll("#rows .cur").length`, "1")
	}
	for _, by := range []int{100, 30, -250, -1000, 430, 191, 1, -3000} {
		scroll(by)
		b.is(wrong, "")
	}
	b.Press("End")
}

// legend opens the legend. It checks that it explains every sign of the page: those of the style sheet, those in the
// texts of rows, and the colours and lines of the drawing.
func (b browser) legend(n int) {
	b.T.Helper()
	b.Press("?")
	b.is(`document.querySelector("#help").open`, "true")
	save(b.T, fmt.Sprintf("%d-legend.png", n), b.Picture())
	b.has(`document.querySelector("#help").innerText`, "◆", "↷", "▸ ▾", "✖ ✔", "=>", ">", "PageDown", "value sent", "can run")
	b.is(`[...document.styleSheets[0].cssRules].map((r) => (r.style ? r.style.content : "").replace(/["\s]/g, ""))`+
		`.filter((sign) => sign && !document.querySelector("#help").innerText.includes(sign)).join()`, "")
	b.is(`[...document.querySelectorAll("#rows path, #rows .box")].flatMap((e) => [...e.classList])`+
		`.filter((c) => /^(a\d|k\d|life|waits|hang|guess|stays)/.test(c) && !document.querySelector("#help ." + c)).join()`, "")
	b.Press("Escape")
	b.is(`document.querySelector("#help").open`, "false")
	b.Eval(`document.querySelector("#keys").click()`, nil)
	b.is(`document.querySelector("#help").open`, "true")
	b.Press("Escape")
}

// folds opens and closes repetitions.
func (b browser) folds() {
	b.T.Helper()
	rows := func() (n int) {
		b.Eval(rowsAre, &n)
		return n
	}
	closed := rows()
	if b.Text(`document.querySelector("#folds").hidden`) == "true" {
		b.T.Log("nothing repeats")
		return
	}
	b.Press("e")
	all := rows()
	if b.Text(`document.querySelector("#folds").textContent`) == "expand all" { // they were open
		b.Press("e")
		all, closed = rows(), all
	}
	if b.Press("e"); all <= closed || rows() != closed {
		b.T.Errorf("of %d rows are %d after all folds were opened, and %d after they were closed", closed, all, rows())
	}
	b.Press("Home")
	b.Eval(`(async () => { const seen = () => [...document.querySelectorAll(".fold")].some((e) => { const r = e.getBoundingClientRect(); `+
		`return r.top > document.querySelector("#heads").getBoundingClientRect().bottom && r.bottom < innerHeight; }); for (let i = 0; i < 3000 && !seen(); i++) { `+
		`dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown" })); await new Promise((ok) => requestAnimationFrame(ok)); } })()`, nil)
	b.Frame()
	b.Click(".fold .strip", "#heads")
	if n := rows(); n <= closed {
		b.T.Errorf("%d rows are %d after a click on a fold", closed, n)
	}
	b.is(`document.querySelector(".row.cur").getAttribute("aria-expanded")`, "true")
	b.Press("Enter")
	if n := rows(); n != closed {
		b.T.Errorf("%d rows are %d after the fold was closed again", closed, n)
	}
	b.is(`document.querySelector(".row.cur").getAttribute("aria-expanded")`, "false")
}

// searches looks for steps.
func (b browser) searches(c *Chart) {
	b.T.Helper()
	n := 0
	for _, s := range c.Steps {
		if strings.Contains(s.Text, "lock stock") {
			n++
		}
	}
	b.Press("Home", "/")
	b.Press(strings.Split("LOCK STOCK", "")...)
	b.is(hits, fmt.Sprintf("1 of %d", n))
	b.is(stepAt, "Step "+Grouped(len(c.Steps)-2))
	b.Press("Enter")
	b.is(hits, fmt.Sprintf("2 of %d", n))
	b.is(stepAt, "Step "+Grouped(len(c.Steps)-1))
	b.Press("Enter")
	b.is(hits, fmt.Sprintf("1 of %d", n))
	b.Press("x")
	b.is(hits, "none")
	b.Press("Escape")
	b.is(hits, "")
	// A hit in a fold opens it.
	b.Eval(`document.querySelector("#find").value = "would block"; document.querySelector("#find").dispatchEvent(new Event("input"))`, nil)
	b.Frame()
	b.has(hits, "1 of ")
	b.Press(",")
	b.has(state, "would block")
	b.Press("/", "Escape")
}

// pins pins a column.
func (b browser) pins() {
	b.T.Helper()
	left := `Math.round(document.querySelector("[data-actor='3']").getBoundingClientRect().left)`
	b.Press("End", "ArrowUp")
	before, _ := strconv.Atoi(b.Text(left))
	b.Press("p")
	after, _ := strconv.Atoi(b.Text(left))
	if b.is(`document.querySelectorAll(".head.pin").length`, "1"); after >= before {
		b.T.Errorf("the pinned column was at %d, and is at %d", before, after)
	}
	b.is(stepAt, "Step "+b.Text(`document.querySelector(".row.cur .gut").textContent.match(/[\d,]+(?=\s*orders)/)[0]`))
	b.Press("w", "w", "w") // another width: the pinned column stays
	b.Eval(`document.querySelector("#grid").scrollLeft = 100000`, nil)
	b.Frame()
	b.is(left, fmt.Sprint(after))
	save(b.T, "pinned.png", b.Picture())
	b.Eval(`document.querySelector("#grid").scrollLeft = 0`, nil)
	b.Press("w", "p")
	b.is(`document.querySelectorAll(".head.pin").length`, "0")
}

// twins shows the passing schedule.
func (b browser) twins(c *Chart, n int) {
	b.T.Helper()
	side := func(i int) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".row[data-side='%d']")].map((r) => r.textContent).join("\n")`, i)
	}
	b.Press("t")
	b.has(chosen, "diverges here")
	b.has(side(0), "diverges here")
	b.has(side(1), "diverges here")
	save(b.T, fmt.Sprintf("%d-twin.png", n), b.Picture())
	aligned := `(() => { const at = (i) => [...document.querySelectorAll(".row.step[data-side='" + i + "']")].map((r) => [r.getBoundingClientRect().top, r.textContent]);` +
		`const top = document.querySelector(".row.split").getBoundingClientRect().top; const before = (x) => x[0] < top;` +
		`return JSON.stringify(at(0).filter(before)) === JSON.stringify(at(1).filter(before)) && at(0).filter(before).length > 0; })()`
	b.is(aligned, "true")
	b.has(`getComputedStyle(document.querySelector(".row.cur .gut")).boxShadow`, "3px 0px") // the mark at the left edge
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	b.is(`(dispatchEvent(new Event("beforeprint")), [...document.querySelectorAll("#print .sheet:first-child .pane-name")].map((e) => {
		const r = e.getBoundingClientRect();
		return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2).textContent;
	}).join())`, "✖ fails,✔ passes")
	b.Eval(`dispatchEvent(new Event("afterprint"))`, nil)
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
	b.Frame()
	b.Press("j")
	b.is(stepAt, "Step "+Grouped(c.Twin.Here+1))
	b.Press("ArrowRight")
	b.is(`document.querySelector(".row.cur").dataset.side`, "1")
	b.Press("End")
	b.has(side(1), "this schedule passes")
	b.Press("t")
	b.is(`document.querySelectorAll(".row[data-side='1']").length`, "0")
	b.Press("End")
}

// prints prints the page.
func (b browser) prints(n int) {
	b.T.Helper()
	if n != 300 {
		return // a long page takes seconds to print, and a short one shows little
	}
	pdf := b.Bytes("Page.printToPDF", map[string]any{"preferCSSPageSize": true, "printBackground": true})
	if len(pdf) < 10000 {
		b.T.Errorf("the page is printed as %d bytes", len(pdf))
	}
	save(b.T, fmt.Sprintf("%d.pdf", n), pdf)
}

// speed measures how long a key and a scroll take, with all steps unfolded. It checks that
//
//   - 95 of 100 frames, and so their median, take at most two frames of a screen with 60 frames a second, if other
//     programs use at most a quarter of the machine. It measures up to three times before it reports an error. If other
//     programs use more, they may delay any frame, so the times are only logged;
//   - all processes of the browser together use no more processor time than that for a frame, and the thread of the
//     page no more than one frame of the screen. If other programs use more than a quarter of the machine, the limit is
//     four times as high, because the same work has taken several times as long then;
//   - a frame has one layout. The few others happen when the reader pauses.
func (b browser) speed() {
	b.T.Helper()
	const times, screen, rounds = 40, 1000.0 / 60, 3
	measure := func(what, act string) {
		for round := 1; ; round++ {
			var frames [3]float64
			before := b.Work()
			b.Eval(fmt.Sprintf(`(async () => {
				const grid = document.querySelector("#grid"), frames = [];
				const frame = () => new Promise((ok) => requestAnimationFrame(ok));
				let before = await frame();
				for (let i = 0; i < %[1]d; i++) {
					%[2]s
					const at = await frame();
					frames.push(at - before);
					before = at;
				}
				frames.sort((a, b) => a - b);
				return [0.5, 0.95, 1].map((part) => frames[Math.ceil(part * %[1]d) - 1]);
			})()`, times, act), &frames)
			w := b.Work().Since(before)
			page, all, layouts := w.Page/times, w.Browser/times, w.Layouts/times
			b.T.Logf("%s: a frame takes %.1f ms (median), %.1f ms (95 %%), %.1f ms (longest); the browser computes %.1f ms, "+
				"the page %.1f ms of them; %.1f layouts; others take %.0f %% of the machine",
				what, frames[0], frames[1], frames[2], all, page, layouts, 100*w.Others())
			inTime := frames[1] <= 2*screen+0.2 // the clock of frames is rounded
			most := screen
			if w.Others() > 0.25 {
				inTime, most = true, 4*screen
			}
			if inTime && all <= 2*most && page <= most && layouts < 1.2 {
				return
			}
			if round == rounds {
				b.T.Errorf("%s is too slow", what)
				return
			}
		}
	}
	key := func(name string) string {
		return `dispatchEvent(new KeyboardEvent("keydown", { key: "` + name + `" }));`
	}
	b.Press("Home", "e")
	for _, twin := range []string{"", " with the twin"} {
		if twin != "" {
			b.Press("t", "Home")
		}
		measure("a step"+twin, key("ArrowDown"))
		measure("a page"+twin, key("PageDown"))
		measure("a scroll"+twin, "grid.scrollTop -= 400;")
		measure("a small scroll"+twin, "grid.scrollTop += 60;")
		measure("a jump"+twin, "dispatchEvent(new KeyboardEvent('keydown', { key: i % 2 ? 'Home' : 'End' }));")
	}
	b.Press("t", "e")
	if rows, all := b.count("#rows .row"), b.count("#rows *"); all > 7*rows {
		b.T.Errorf("%d rows have %d elements", rows, all)
	}
}
