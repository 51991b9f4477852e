package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// The report of a failure comes when the failure has been shrunk, which takes as long as -shrink says. If that is more
// than a moment, messages on standard error say what has failed, and on a terminal also how far shrinking has come. The
// process of the test writes both into files; see coir_shrink.go of the overlay.

// slowShrink is the time after which the messages about a failure begin.
const slowShrink = time.Second

// The names of the files that the process of a test writes, after that of its record: the failure as it was found, and
// the number of switches to which it has been shrunk so far.
const foundFile, shrunkFile = ".found", ".shrunk"

// shrinks shows the failures of a run that are being shrunk.
type shrinks struct {
	errs     io.Writer
	terminal bool
	width    int // of the terminal; 0: not known

	mu   sync.Mutex
	all  []*shrink // those being shrunk, the oldest first
	line string    // the last line of the terminal, if it shows one
}

// shrink is a failure that is being shrunk.
type shrink struct {
	test     string
	began    time.Time
	switches int
}

func newShrinks(errs io.Writer) *shrinks {
	s := &shrinks{errs: errs, terminal: isTerminal(errs)}
	if f, ok := errs.(*os.File); ok && s.terminal {
		s.width = terminalWidth(f)
	}
	return s
}

// follow shows the failure of a process while the process shrinks it. name is the name of its record, and of describes
// its test. before is the number of schedules that have run before the process. The caller calls stop when the process
// has ended.
func (s *shrinks) follow(name string, of *tested, dir string, before int) (stop func()) {
	if s == nil {
		return func() {}
	}
	done := make(chan bool)
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(slowShrink / 4)
		defer tick.Stop()
		var now *shrink
		defer func() { s.end(now) }()
		var began time.Time
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			switch {
			case now != nil:
				s.update(now, readSwitches(name+shrunkFile))
			case began.IsZero():
				if st, err := os.Stat(name + foundFile); err == nil {
					began = st.ModTime()
				}
			case time.Since(began) >= slowShrink:
				now = s.begin(name+foundFile, of, dir, before, began)
			}
		}
	})
	return func() {
		close(done)
		wait.Wait()
		for _, file := range []string{foundFile, shrunkFile} {
			_ = os.Remove(name + file)
		}
	}
}

// begin prints what has failed, as the file with the failure says.
func (s *shrinks) begin(file string, of *tested, dir string, before int, began time.Time) *shrink {
	now := &shrink{test: of.test, began: began}
	text, err := os.ReadFile(file)
	r := &result{record: record{tested: of}}
	if r.read(string(text)); err != nil || r.failure == nil || r.broken != "" {
		return now // without a message; the report will say more
	}
	now.switches = r.failure.switches
	r.failure.schedule += before
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLine()
	fmt.Fprintf(s.errs, "coir test: %s; shrinking it\n", r.foundText(dir))
	s.all = append(s.all, now)
	s.show()
	return now
}

// foundText returns one line about a failure that has not been shrunk yet.
func (r *record) foundText(dir string) string {
	r.failure.replayed = true // so the headline does not say that it is shrunk
	text := r.test + ": " + r.headline()
	var b strings.Builder
	r.explainFailure(&b, dir)
	if first, _, _ := strings.Cut(b.String(), "\n"); first != "" {
		text += ": " + oneLine(first)
	}
	return text
}

// update shows a failure with the present number of switches, or the former number if that is 0.
func (s *shrinks) update(of *shrink, switches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if switches > 0 {
		of.switches = switches
	}
	s.show()
}

// end removes a failure, which may be nil.
func (s *shrinks) end(of *shrink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.all {
		if x == of {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			break
		}
	}
	if s.clearLine(); len(s.all) > 0 {
		s.show()
	}
}

// show shows on a terminal the failure that has been shrunk for the longest time. s.mu is held.
func (s *shrinks) show() {
	if !s.terminal || len(s.all) == 0 {
		return
	}
	first := s.all[0]
	text := fmt.Sprintf("shrinking %s: %s, %.0f s", first.test, switchesText(first.switches),
		time.Since(first.began).Seconds())
	if n := len(s.all) - 1; n > 0 {
		text += fmt.Sprintf("; and %s", report.Count(n, "other"))
	}
	if s.width > 0 && len(text) >= s.width {
		text = text[:s.width-1]
	}
	if text != s.line {
		fmt.Fprintf(s.errs, "\r\x1b[K%s", text)
		s.line = text
	}
}

// clear removes the line about shrinking, so that something else can be printed. The line comes again.
func (s *shrinks) clear() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLine()
}

func (s *shrinks) clearLine() {
	if s.line != "" {
		fmt.Fprint(s.errs, "\r\x1b[K")
		s.line = ""
	}
}

// readSwitches returns the number in a file, or 0 if there is none. The file may be half written.
func readSwitches(name string) int {
	text, err := os.ReadFile(name)
	line, ok := strings.CutSuffix(string(text), "\n")
	if err != nil || !ok {
		return 0
	}
	n, _ := strconv.Atoi(line)
	return n
}

// switchesText returns a number of switches in words.
func switchesText(n int) string {
	if n == 1 {
		return "1 switch"
	}
	return chart.Grouped(n) + " switches"
}

// removeRecord removes the files that an earlier process of a test has written.
func removeRecord(name string) error {
	for _, file := range []string{"", foundFile, shrunkFile} {
		if err := os.Remove(name + file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
