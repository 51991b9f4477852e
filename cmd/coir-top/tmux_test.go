//go:build linux || darwin

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests in a real terminal run in tmux, whose screen can be read as text.

// terminal is a session of tmux with one program in it.
type terminal struct {
	*testing.T
	dir     string
	changes *os.File // readable after the screen has changed
}

const config = `set -g status off
set -g escape-time 0
`

// script runs a program, and then prints its exit code on the screen. tmux also reports the end, but not always the
// exit code.
const script = `"$0" "$@"; echo "ended with exit code $?"; read line`

// inTerminal runs coir-top in a terminal of 80x24.
func inTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts programs")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	dir, err := os.MkdirTemp("", "top") // short: the name of a socket has at most 100 characters
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{T: t, dir: dir}
	t.Cleanup(func() {
		x.tmux("kill-server")
		_ = os.RemoveAll(dir)
	})
	fifo := filepath.Join(dir, "changes")
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if x.changes, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.changes.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := strings.Fields("new-session -d -x 80 -y 24 -e TZ=UTC -e " + asTop + "=1")
	x.tmux(append(append(command, "sh", "-c", script, self), args...)...)
	x.tmux("pipe-pane", "-O", "cat >"+fifo)
	return x
}

// tmux runs a command of tmux.
func (x *terminal) tmux(args ...string) string {
	x.Helper()
	config, socket := filepath.Join(x.dir, "config"), filepath.Join(x.dir, "socket")
	c := exec.Command("tmux", append([]string{"-u", "-f", config, "-S", socket}, args...)...)
	c.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	out, err := c.CombinedOutput()
	if err != nil {
		x.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (x *terminal) keys(names ...string) {
	x.Helper()
	x.tmux(append([]string{"send-keys"}, names...)...)
}

func (x *terminal) screen() string {
	x.Helper()
	return x.tmux("capture-pane", "-p")
}

// until waits for a screen.
func (x *terminal) until(what string, ok func(screen string) bool) {
	x.Helper()
	_ = x.changes.SetReadDeadline(time.Now().Add(2 * time.Minute))
	b := make([]byte, 1<<16)
	for {
		screen := x.screen()
		if ok(screen) {
			return
		}
		if _, err := x.changes.Read(b); err != nil {
			x.Fatalf("the screen does not show %s: %v\n%s", what, err, screen)
		}
	}
}

// shows waits until the screen shows the texts.
func (x *terminal) shows(texts ...string) {
	x.Helper()
	x.until(strings.Join(texts, ", "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// built builds examples/stuck, and returns the path of the program.
var built = sync.OnceValues(func() (string, error) {
	name := filepath.Join(scratch, "stuck")
	out, err := exec.Command("go", "build", "-o", name, "github.com/coir-go/coir/examples/stuck").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return name, nil
})

// stuck starts examples/stuck, and returns its address.
func stuck(t *testing.T, bug string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts programs")
	}
	name, err := built()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("localhost:%d", l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	c := exec.Command(name, "-bug", bug, "-addr", at)
	c.Env = append(os.Environ(), "GOMAXPROCS=2")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("stuck -bug %s said: %s", bug, &out)
		}
	})
	return at
}

// steady replaces the parts of a screen that differ from run to run. Times become T, and numbers N. Columns become two
// spaces apart, because the lengths of numbers differ, and the explanations are wrapped again.
func steady(screen string) string {
	table := false
	var lines []string
	why := ""
	flush := func() {
		if why != "" {
			lines = append(lines, hang(why[:9], replace(why[9:]), 80)...)
		}
		why = ""
	}
	for line := range strings.SplitSeq(strings.TrimRight(screen, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "certain: ") || strings.HasPrefix(line, "likely:  "):
			flush()
			why = line
			continue
		case why != "" && strings.HasPrefix(line, "         "):
			why += " " + strings.TrimSpace(line)
			continue
		}
		flush()
		if table && len(line) > 9 && strings.TrimLeft(line[:3], ">!? ") == "" {
			line = line[:3] + right(replace(strings.TrimSpace(line[3:9])), 6) + "  " + strings.TrimLeft(replace(line[9:]), " ")
		} else {
			line = replace(line)
		}
		table = table || strings.Contains(line, "WHAT IT DOES")
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// replace replaces times and numbers, and puts columns two spaces apart.
func replace(text string) string {
	for _, r := range []struct{ from, to string }{
		{`process \d+`, "process N"}, {`localhost:\d+`, "localhost:N"}, {`\d\d:\d\d:\d\d`, "T"},
		{`; \d+ workers?, .*`, "; N workers"},
		{`\b\d+(\.\d+)?(ms|s|m\d+s|m)\b`, "T"}, {`\.go:\d+`, ".go:N"}, {`#\d+`, "#N"}, {`fiber \d+,`, "fiber N,"},
		{`worker\[\d\]`, "worker[N]"}, {`order\[\d+\]`, "order[N]"}, {`(\S) {2,}`, "$1  "},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	return text
}

// bugs lists the bugs of examples/stuck.
var bugs = []string{"locks", "pool", "pipeline", "gone", "full", "handlers", "native", "hog", "cancel", "all"}

// The first screen shows the reason of each hang.
func TestEachBugInATerminal(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			x := inTerminal(t, stuck(t, bug))
			x.shows("[1 fibers]")
			x.keys("s")
			if bug == "native" {
				x.keys("g") // the fibers of a group can be in different states
			}
			name := "stuck-" + bug + ".txt"
			want, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil && !*updating {
				t.Fatal(err)
			}
			last := ""
			same := 0
			x.until("what "+name+" has", func(screen string) bool {
				got := steady(screen)
				if !*updating {
					last = got
					return got == string(want)
				}
				if same++; got != last {
					last, same = got, 0
				}
				return same == 3 && strings.Contains(got, "by name") && strings.Contains(got, "5 wrong (1)")
			})
			golden(t, name, last)
		})
	}
}

// The keys, a resize and the end of a program, in a real terminal.
func TestATerminal(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, stuck(t, "locks"))
	x.shows("certain: [deadlock] transfer[0] waits to lock bob")
	x.keys("2")
	x.shows("[2 nurseries]", "- run ", "main #")
	x.keys("3", "s")
	x.shows("[3 objects]", "by name", "mutex alice", "held by transfer[0]")
	x.tmux("resize-window", "-x", "120", "-y", "40")
	x.until("the larger screen", func(screen string) bool {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		return len(lines) == 40 && len(lines[39]) > 110 && strings.HasSuffix(strings.TrimSpace(lines[39]), "q quit")
	})
	x.tmux("resize-window", "-x", "60", "-y", "12")
	x.until("the smaller screen", func(screen string) bool {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		return len(lines) == 12 && strings.HasSuffix(strings.TrimSpace(lines[11]), "q quit")
	})
	x.tmux("resize-window", "-x", "80", "-y", "24")
	x.keys("Enter")
	x.shows("objects > mutex alice", "the oldest for", "holds it, waits to lock bob")
	x.keys("Down", "Enter")
	x.shows("main wait for", "nursery", "spawned", "stack\n", "goroutine")
	x.keys("1", "/", "audit", "Enter")
	x.shows("audit #", "/audit")
	x.keys("Escape") // together with another key it would mean Alt with that key
	x.shows("heartbeat #")
	x.keys("Space")
	x.shows("PAUSED at")
	x.keys("?")
	x.shows("fibers > keys")
	x.keys("q")
	x.shows("ended with exit code 0")
}

// With NO_COLOR there are no colours, and the terminal is left as it was.
func TestColours(t *testing.T) {
	for _, no := range []string{"", "1"} {
		t.Run("NO_COLOR="+no, func(t *testing.T) {
			t.Setenv("NO_COLOR", no)
			t.Setenv("TERM", "screen-256color")
			file := filepath.Join("testdata", "locks.json")
			x := inTerminal(t, file)
			x.shows("certain:", "[1 fibers]")
			coloured := strings.Contains(x.tmux("capture-pane", "-p", "-e"), "[31m") ||
				strings.Contains(x.tmux("capture-pane", "-p", "-e"), ";31m")
			if coloured != (no == "") {
				t.Errorf("coloured: %v\n%q", coloured, x.tmux("capture-pane", "-p", "-e"))
			}
		})
	}
}

// A hostile name has no effect on a real terminal.
func TestHostileNamesInATerminal(t *testing.T) {
	t.Parallel()
	dump := poisoned("\x1b]0;owned\x07\x1b[2J\x1b[5;5Howned\n\u202e\u009b31m")
	file := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(file, encoded(t, dump), 0o600); err != nil {
		t.Fatal(err)
	}
	x := inTerminal(t, file)
	x.shows(`\x1b]0;owned\a\x1b[2J`, "[1 fibers]", "q quit")
	if title := x.tmux("display-message", "-p", "#{pane_title}"); strings.Contains(title, "owned") {
		t.Errorf("a name has set the title: %s", title)
	}
	for line := range strings.Lines(x.screen()) {
		if strings.HasPrefix(strings.TrimSpace(line), "owned") {
			t.Errorf("a name has moved the cursor:\n%s", x.screen())
		}
	}
}
