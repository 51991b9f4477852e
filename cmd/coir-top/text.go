package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// age returns a duration in at most six columns: 120ms, 3.1s, 12s, 4m5s, 3h, 2d4h, 120d.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second:
		return strconv.Itoa(int(d/time.Millisecond)) + "ms"
	case d < 10*time.Second:
		return d.Truncate(100 * time.Millisecond).String()
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return two(d, time.Hour, "h", time.Minute, "m")
	case d < 10*day:
		return two(d, day, "d", time.Hour, "h")
	}
	return strconv.Itoa(int(d/day)) + "d"
}

// clock returns a time of day.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// two returns a duration in two units. It omits the smaller unit if its number is 0.
func two(d, large time.Duration, l string, small time.Duration, s string) string {
	text := strconv.Itoa(int(d/large)) + l
	if rest := d % large / small; rest > 0 {
		text += strconv.Itoa(int(rest)) + s
	}
	return text
}

// grouped returns a number with commas between thousands.
func grouped[T int | int64 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count[T int | int64 | uint64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// rate returns a number per second in at most five columns, or "" if it is unknown.
func rate(r float64) string {
	switch {
	case r < 0:
		return ""
	case r == 0:
		return "0"
	case r < 10:
		return strconv.FormatFloat(r, 'f', 1, 64)
	case r < 1e4:
		return strconv.FormatFloat(r, 'f', 0, 64)
	case r < 1e6:
		return strconv.FormatFloat(r/1e3, 'f', 0, 64) + "k"
	}
	return strconv.FormatFloat(r/1e6, 'f', 0, 64) + "M"
}

// columns returns the number of columns that a text without escape sequences takes.
func columns(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return ansi.StringWidthWc(s)
		}
	}
	return len(s)
}

// cut returns the beginning of a text that fits in n columns.
func cut(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	return ansi.TruncateWc(s, max(0, n), "…")
}

// left returns a text cut and padded to n columns.
func left(s string, n int) string {
	s = cut(s, n)
	return s + strings.Repeat(" ", max(0, n-columns(s)))
}

// right is like left, but aligns the text to the right.
func right(s string, n int) string {
	s = cut(s, n)
	return strings.Repeat(" ", max(0, n-columns(s))) + s
}

// ends returns a line of n columns with l at the left end and r at the right end. If they do not fit, l is cut first.
func ends(l, r string, n int) string {
	r = cut(r, n)
	if r == "" {
		return left(l, n)
	}
	return left(l, n-columns(r)-1) + strings.Repeat(" ", min(1, n-columns(r))) + r
}

// wrap splits a text into lines of at most n columns. It breaks longer words.
func wrap(s string, n int) []string {
	n = max(1, n)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= n:
			line += " " + word
			continue
		default:
			lines = append(lines, line)
			line = word
		}
		for columns(line) > n {
			head := ansi.TruncateWc(line, n, "")
			if head == "" { // a wide character in one column
				return append(lines, "…")
			}
			lines = append(lines, head)
			line = line[len(head):]
		}
	}
	return append(lines, line)
}

// hang splits a text into lines of at most n columns. The first line begins with head, and the others are indented by
// its width.
func hang(head, s string, n int) []string {
	lines := wrap(s, n-columns(head))
	for i := range lines {
		lines[i] = head + lines[i]
		if i == 0 {
			head = strings.Repeat(" ", columns(head))
		}
	}
	return lines
}

// spark draws numbers as a curve one line high, from 0 to most. A number below 0 is a gap. The newest is at the right.
func spark(values []float64, most float64, width int) string {
	const steps = "▁▂▃▄▅▆▇█"
	marks := []rune(steps)
	if len(values) > width {
		values = values[len(values)-max(0, width):]
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case v < 0:
			b.WriteByte(' ')
		case v == 0 || most <= 0:
			b.WriteRune(marks[0])
		default:
			i := int(v / most * float64(len(marks)))
			b.WriteRune(marks[min(max(i, 1), len(marks)-1)])
		}
	}
	return b.String()
}
