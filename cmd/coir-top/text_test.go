package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", -time.Second: "0ms", 1234567: "1ms", 999 * time.Millisecond: "999ms", 9990 * time.Millisecond: "9.9s",
		3 * time.Second: "3s", 59999 * time.Millisecond: "59s", time.Minute: "1m",
		3599 * time.Second: "59m59s", time.Hour: "1h", 25*time.Hour - 1: "1d", 49 * time.Hour: "2d1h",
		240 * time.Hour: "10d", 1<<63 - 1: "106751d",
	} {
		if got := age(d); got != want {
			t.Errorf("the age %v is %s, want %s", d, got, want)
		}
	}
}

func TestRates(t *testing.T) {
	for r, want := range map[float64]string{
		-1: "", 0: "0", 0.25: "0.2", 9.96: "10.0", 12.4: "12", 9999: "9999", 12345: "12k", 1e6: "1M", 1.5e9: "1500M",
	} {
		if got := rate(r); got != want {
			t.Errorf("the rate %v is %s, want %s", r, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{cut("orders", 6), "orders"}, {cut("orders", 4), "ord…"}, {cut("orders", 0), ""}, {left("ab", 4), "ab  "},
		{right("ab", 4), "  ab"}, {left("日本語", 5), "日本…"}, {left("日本語", 4), "日… "},
		{ends("left", "right", 12), "left   right"}, {ends("left", "right", 8), "l… right"}, {ends("left", "right", 3), "ri…"},
		{ends("left", "", 6), "left  "},
		{spark([]float64{0, 1, -1, 4, 8}, 8, 10), "▁▂ ▅█"}, {spark([]float64{1, 2, 3}, 3, 2), "▆█"}, {spark(nil, 0, 5), ""},
		{spark([]float64{1}, 1, -1), ""}, {grouped(1234567), "1,234,567"}, {grouped(-1234), "-1,234"},
		{count(1, "fiber"), "1 fiber"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		n     int
		lines []string
	}{
		{"", 5, []string{""}}, {"a b c", 5, []string{"a b c"}}, {"aa bb cc", 5, []string{"aa bb", "cc"}},
		{"abcdefgh", 3, []string{"abc", "def", "gh"}}, {"a bcdefg h", 3, []string{"a", "bcd", "efg", "h"}},
		{"日本", 1, []string{"…"}}, {"日本 語", 2, []string{"日", "本", "語"}}, {"x", -3, []string{"x"}},
	} {
		if got := wrap(c.text, c.n); !slices.Equal(got, c.lines) {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.n, got, c.lines)
		}
	}
	if got := strings.Join(hang("ab: ", "one two three", 11), "|"); got != "ab: one two|    three" {
		t.Errorf("hang returns %q; want a second line below the text of the first", got)
	}
}
