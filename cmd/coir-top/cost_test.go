package main

import (
	"bytes"
	"testing"

	"github.com/coir-go/coir/inspect"
)

// frame measures one frame of 10,000 fibers: handling a key, and drawing the screen after it.
func frame(b *testing.B, keys []string, key string) {
	m := showing(b, many(10_000))
	m.press(keys...)
	b.ReportAllocs()
	for b.Loop() {
		m.press(key)
		_ = m.View()
	}
}

func BenchmarkFrameOfGroups(b *testing.B)  { frame(b, nil, "down") }
func BenchmarkFrameOfFibers(b *testing.B)  { frame(b, []string{"g"}, "down") }
func BenchmarkFrameOfTree(b *testing.B)    { frame(b, []string{"2"}, "down") }
func BenchmarkFrameOfObjects(b *testing.B) { frame(b, []string{"3"}, "down") }
func BenchmarkFrameAfterSort(b *testing.B) { frame(b, []string{"g"}, "s") }

// BenchmarkFrameAfterSearch types a letter, and deletes it.
func BenchmarkFrameAfterSearch(b *testing.B) {
	m := showing(b, many(10_000))
	m.press("g", "/")
	b.ReportAllocs()
	for b.Loop() {
		m.press("q", "backspace")
		_ = m.View()
	}
}

// BenchmarkSnapshot reads 10,000 fibers, and shows them. In the program, the goroutine that draws does not read
// them.
func BenchmarkSnapshot(b *testing.B) {
	text := encoded(b, many(10_000))
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dump, err := inspect.Read(bytes.NewReader(text))
			if err != nil {
				b.Fatal(err)
			}
			newData(dump)
		}
	})
	b.Run("show", func(b *testing.B) {
		m := showing(b, many(10_000))
		d := newData(many(10_000))
		b.ReportAllocs()
		for b.Loop() {
			m.take(d, nil)
			_ = m.View()
		}
	})
}

// Only visible rows are drawn, so a frame of 10,000 fibers allocates about as much as one of 100.
func TestFramesDoNotGrow(t *testing.T) {
	cost := func(n int) float64 {
		m := showing(t, many(n))
		m.press("g", "end")
		return testing.AllocsPerRun(20, func() {
			m.press("up", "down")
			_ = m.View()
		})
	}
	if few, all := cost(100), cost(10_000); all > 1.5*few+50 {
		t.Errorf("a frame of 10,000 fibers makes %.0f allocations, one of 100 makes %.0f", all, few)
	}
}
