package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// written writes a chart, and checks that it is well formed and needs nothing from elsewhere.
func written(t *testing.T, c *Chart) string {
	t.Helper()
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	rest, drawings := page, 0
	for {
		_, from, ok := strings.Cut(rest, "<svg ")
		if !ok {
			break
		}
		drawing, after, ok := strings.Cut(from, "</svg>")
		if !ok {
			t.Fatal("a drawing does not end in\n", page)
		}
		for d := xml.NewDecoder(strings.NewReader("<svg " + drawing + "</svg>")); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, drawing)
			}
		}
		rest = after
		drawings++
	}
	if drawings != 2 {
		t.Errorf("there are %d drawings: one of the heads, one of the rest", drawings)
	}
	for _, from := range []string{"http", "src=", "href=", "@import", "<script"} {
		if strings.Contains(page, from) {
			t.Errorf("the chart has %s in it", from)
		}
	}
	return page
}

func has(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the chart does not have %s:\n%s", text, page)
		}
	}
}

// two actors that lock a and b crosswise, after a value and a signal.
func crossed() *Chart {
	return &Chart{
		Title: "deadlock", Text: "who waits", Verdict: "all wait", Replay: "again", Actors: "goroutines",
		Of: []Actor{
			{Name: "main", Why: "waits to lock b", Since: 6}, {Name: "other", Title: "started at x.go:1", Why: "waits to lock a", Since: 5},
			{Name: "gone", Ended: true},
		},
		Steps: []Step{
			{Actor: 0, Number: 1, Text: "go"},
			{Actor: 0, Number: 2, Text: "send c", Kind: Channel, Switch: "another gets the turn"},
			{Actor: 1, Number: 3, Text: "recv c", Kind: Channel, At: time.Second, Title: "at x.go:7"},
			{Actor: 1, Number: 4, Text: "lock b", Kind: Lock},
			{Actor: 0, Number: 5, Text: "lock a", Kind: Lock},
			{Actor: 1, Number: 6, Text: "lock a", Kind: Lock},
			{Actor: 0, Number: 7, Text: "lock b", Kind: Lock},
			{Actor: 2, Number: 8, Text: "signal", Kind: Fault},
		},
		Starts: []Start{{0, 1}, {0, 2}},
		Arrows: []Arrow{{From: 1, To: 2, Text: "c"}, {From: 7, To: 3, Kind: Wake}, {From: 1, To: 4, Kind: HandOver, Guess: true}},
		Cycle:  []int{0, 1},
	}
}

func TestAChartHasAllOfIt(t *testing.T) {
	page := written(t, crossed())
	has(t, page, ">main<", ">recv c<", "at x.go:7", `class="wait"`, `class="hang"`, `class="lock"`, `class="chan"`, `class="fault"`,
		`class="msg"`, `class="wake"`, `class="hand guess"`, `class="spawn"`, ">switch<", "another gets the turn", ">1s<",
		"main waits for other", "other waits for main", ">waits to lock a<", "all wait", "<pre>again</pre>", "started at x.go:1",
		"value sent", "lock handed over", "woken", "the trace leaves that open")
	if n := strings.Count(page, `class="wait"`); n != 2 {
		t.Errorf("%d steps are marked as waits", n)
	}
	if strings.Contains(page, "channel closed") {
		t.Error("the legend has an arrow that is not there")
	}
}

// Names come from programs.
func TestTextIsEscaped(t *testing.T) {
	c := crossed()
	c.Title, c.Of[0].Name, c.Steps[0].Text, c.Arrows[0].Text = "<b>1", "<b>2", "<b>3\x1b\x00\xff", "<b>4"
	c.Of[1].Why, c.Steps[1].Switch, c.Steps[2].Title, c.Replay = "<b>5", "<b>6\"", "<b>7", "<b>8"
	page := written(t, c)
	for i := range 8 {
		has(t, page, fmt.Sprint("&lt;b&gt;", i+1))
	}
	for _, bad := range []string{"<b>", "\x1b", "\x00", "\xff"} {
		if strings.Contains(page, bad) {
			t.Errorf("the chart has %q", bad)
		}
	}
}

// Of many steps those that repeat are drawn once, and an arrow between two of them too. The beginning is left out of
// what is longer still, and says so.
func TestManyStepsAreFolded(t *testing.T) {
	c := &Chart{Actors: "fibers", Of: []Actor{{Name: "a"}, {Name: "b"}}}
	for i := range 900 {
		c.Steps = append(c.Steps, Step{Actor: i / 3 % 2, Number: i + 1, Text: fmt.Sprint("step ", i%3)})
		if i >= 3 {
			c.Arrows = append(c.Arrows, Arrow{From: i - 3, To: i, Text: "x"})
		}
	}
	page := written(t, c)
	has(t, page, "these 6, 149 times more")
	if n := strings.Count(page, `class="box"`); n != 6 {
		t.Errorf("%d boxes", n)
	}
	if n := strings.Count(page, `class="msg"`); n != 6 {
		t.Errorf("%d arrows", n)
	}
	for i := range 5000 {
		c.Steps = append(c.Steps, Step{Number: len(c.Steps) + 1, Text: fmt.Sprint("other ", i)})
	}
	page = written(t, c)
	has(t, page, "steps are left out here", ">other 4999<", ">5900<", "these 6, 149 times more")
	if n := strings.Count(page, `class="box"`); n > mostRows || n < mostRows-10 {
		t.Errorf("%d boxes", n)
	}
}

func TestManyActors(t *testing.T) {
	c := &Chart{Actors: "fibers"}
	for i := range 300 {
		a := Actor{Name: fmt.Sprintf("a_name_that_does_not_fit_into_the_width_of_a_column.go:%d", i), Ended: i%100 != 7, Since: -1}
		if i == 257 {
			a.Why = "waits at/a/path/that/is/longer/than/the/column/and/has/no/space.go:77"
		}
		c.Of = append(c.Of, a)
		c.Steps = append(c.Steps, Step{Actor: i, Number: i + 1, Text: "start"})
	}
	page := written(t, c)
	has(t, page, "236 fibers are left out", ":257<")
	why := ""
	for _, m := range regexp.MustCompile(`class="why"[^>]*>([^<]*)`).FindAllStringSubmatch(page, -1) {
		why += m[1]
	}
	if want := strings.ReplaceAll(c.Of[257].Why, " ", ""); why != want {
		t.Errorf("the wait is %s, want %s", why, want)
	}
	for _, name := range []string{">go:300<", "href"} {
		if strings.Contains(page, name) {
			t.Errorf("the chart has %s", name)
		}
	}
}

func TestAnEmptyChart(t *testing.T) {
	written(t, &Chart{Title: "nothing", Actors: "fibers"})
	written(t, &Chart{Of: []Actor{{Name: "a", Why: "waits", Since: -1}}})
}

func TestFold(t *testing.T) {
	same := func(a, b byte) bool { return a == b }
	for _, c := range []struct {
		text string
		want []Run
	}{
		{"", nil},
		{"abc", []Run{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}}},
		{"aab", []Run{{0, 1, 2}, {2, 1, 1}}},
		{"abab", []Run{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}}},
		{"xababab", []Run{{0, 1, 1}, {1, 2, 3}}},
		{"aaaa", []Run{{0, 1, 4}}},
		{"aabaabaabc", []Run{{0, 3, 3}, {9, 1, 1}}},
	} {
		if got := Fold([]byte(c.text), same); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.text, got, c.want)
		}
	}
}

// What an actor does again and again, waiting for time, is told once, though others act in between; and what is pinned
// stays.
func TestRowsFoldTickersFirst(t *testing.T) {
	var steps []Step
	add := func(actor int, text string, timed bool) {
		steps = append(steps, Step{Actor: actor, Number: len(steps) + 1, Text: text, Timed: timed})
	}
	for i := range 10 {
		add(0, "sleep", true)
		add(1, fmt.Sprint("work ", i), false)
		add(0, "try", false)
	}
	rows, rowOf := Rows(steps, func(i int) bool { return i == 27 }, 100)
	var got []string
	for _, r := range rows {
		text := steps[r.Step].Text
		if r.Again > 0 {
			text = fmt.Sprintf("%s: %d until %d", Texts(steps, r.Steps), r.Again, steps[r.Last].Number)
		}
		got = append(got, text)
	}
	want := "sleep/work 0/try/work 1/work 2/work 3/work 4/work 5/work 6/work 7/work 8/sleep, try: 8 until 27/sleep/work 9/try"
	if strings.Join(got, "/") != want {
		t.Errorf("%s, want %s", strings.Join(got, "/"), want)
	}
	if rowOf[0] != 0 || rowOf[24] != 0 || rowOf[26] != 2 || rowOf[29] != len(rows)-1 {
		t.Error(rowOf)
	}
}

// Of too many rows those at the end stay, and around what each actor did last.
func TestRowsAreThinned(t *testing.T) {
	var steps []Step
	for i := range 1000 {
		actor := 0
		if i == 300 || i == 500 {
			actor = i
		}
		steps = append(steps, Step{Actor: actor, Number: i + 1, Text: fmt.Sprint(i)})
	}
	rows, rowOf := Rows(steps, func(int) bool { return false }, 40)
	left, kept := 0, 0
	for _, r := range rows {
		if left += r.Left; r.Left == 0 {
			kept++
		}
	}
	if kept != 40 || left != 960 {
		t.Errorf("%d rows are kept, %d steps are left out", kept, left)
	}
	for _, i := range []int{0, 299, 300, 301, 499, 500, 501, 999} {
		if rowOf[i] < 0 {
			t.Errorf("step %d is left out", i)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestColumns(t *testing.T) {
	waits := func(i int) bool { return i >= 8 }
	acts := func(i int) bool { return i%2 == 0 }
	if got := Columns(10, 10, waits, acts); !slices.Equal(got, []int{0, 2, 4, 6, 8, 9}) {
		t.Error(got)
	}
	if got := Columns(10, 2, waits, acts); !slices.Equal(got, []int{0, 8}) {
		t.Error(got)
	}
}
