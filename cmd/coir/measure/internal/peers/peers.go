// Package peers runs tests under other tools for concurrency bugs in Go, to compare these with coir test. It runs a
// test repeatedly, in a separate process, until the test fails, hangs, or its time is up.
package peers

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
)

// Names contains the names of the tools. Each is a mode of the loop; go test -race also has a separate binary.
var Names = []string{"go test", "go test -race", "goleak", "synctest"}

// Verdict is the report of a tool about a test. What is empty if the tool reports nothing.
type Verdict struct {
	What  string
	After time.Duration
	Runs  int
	Text  string

	Longest time.Duration // the longest complete run
	Cannot  bool          // the tool reports that it cannot run the test
}

func (v Verdict) String() string {
	if v.What == "" {
		return "-"
	}
	return fmt.Sprintf("%s %.1f s", v.What, v.After.Seconds())
}

// loopFile is added to a copy of a package. It prints when a run begins, and what the run has found.
const loopFile = `package %s

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var peersTests = map[string]func(*testing.T){
%s}

func TestPeersLoop(t *testing.T) {
	d, _ := time.ParseDuration(os.Getenv("PEERS_FOR"))
	mode, test := os.Getenv("PEERS_MODE"), peersTests[os.Getenv("PEERS_TEST")]
	current := goleak.IgnoreCurrent()
	for until := time.Now().Add(d); time.Now().Before(until); {
		fmt.Fprintln(os.Stderr, "\npeers: run")
		ok := t.Run("test", func(t *testing.T) {
			if mode == "synctest" {
				synctest.Test(t, test)
			} else {
				test(t)
			}
		})
		if mode == "goleak" && ok {
			if err := goleak.Find(current); err != nil {
				fmt.Fprintln(os.Stderr, "\npeers: told leak")
				os.Exit(1)
			}
		}
		if !ok {
			fmt.Fprintln(os.Stderr, "\npeers: told fail")
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, "\npeers: over")
	os.Exit(0)
}
`

// Loops contains the loops for some packages, in a temporary directory.
type Loops struct{ Dir string }

// Add copies the package in dir, and adds a loop that can run the given tests. The copy is called name.
func (l Loops) Add(name, dir, pkg string, tests []string) error {
	to := filepath.Join(l.Dir, "src", name)
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		return err
	}
	var entries strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&entries, "\t%q: %s,\n", test, test)
	}
	text := fmt.Sprintf(loopFile, pkg, entries.String())
	return os.WriteFile(filepath.Join(to, "peers_loop_test.go"), []byte(text), 0o666)
}

// Build builds the loops, with and without -race. The copies become a module for the given version of Go.
func (l Loops) Build(version string, flags ...string) error {
	src := filepath.Join(l.Dir, "src")
	mod := "module peers\n\ngo " + version + "\n\nrequire go.uber.org/goleak v1.3.0\n"
	if err := os.WriteFile(filepath.Join(src, "go.mod"), []byte(mod), 0o666); err != nil {
		return err
	}
	log.Print("building the loops of the peers")
	if err := build.Run(nil, "go", "-C", src, "mod", "tidy"); err != nil {
		return err
	}
	for to, race := range map[string]string{"plain": "-race=false", "race": "-race"} {
		bin := filepath.Join(l.Dir, to) + string(filepath.Separator)
		if err := os.Mkdir(bin, 0o777); err != nil {
			return err
		}
		args := append([]string{"-C", src, "test", "-c", "-vet=off", race, "-o", bin}, flags...)
		if err := build.Run(nil, "go", append(args, "./...")...); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a test under a peer for the time each, or until it fails or one run takes longer than hang.
func (l Loops) Run(name, test, peer string, each, hang time.Duration) (v Verdict) {
	bin := "plain"
	if peer == "go test -race" {
		bin = "race"
	}
	c := exec.Command(filepath.Join(l.Dir, bin, name+".test"), "-test.run=^TestPeersLoop$", "-test.timeout=0")
	c.Dir = l.Dir
	c.Env = append(os.Environ(), "GODEBUG=asynctimerchan=0", "PEERS_MODE="+peer, "PEERS_TEST="+test,
		"PEERS_FOR="+each.String())
	out := &output{began: time.Now()}
	c.Stdout, c.Stderr = out, out
	began := time.Now()
	if err := c.Start(); err != nil {
		return Verdict{What: "error", Text: err.Error()}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for hangs := false; ; {
		select {
		case <-ended:
			v.After = time.Since(began)
			v.Text, v.Runs, _ = out.state()
			v.Longest = out.longest
			if v.What = "hang"; !hangs {
				v.What, v.Cannot = told(v.Text)
			}
			return v
		case <-time.After(20 * time.Millisecond):
		}
		if _, _, last := out.state(); last > hang && !hangs {
			hangs = true
			_ = c.Process.Kill()
		}
	}
}

// told returns the kind of failure that the output of a loop reports, and whether the tool cannot run the test.
func told(text string) (what string, cannot bool) {
	switch {
	case strings.Contains(text, "WARNING: DATA RACE"):
		return "race", false
	case strings.Contains(text, "peers: told leak"):
		return "leak", false
	case strings.Contains(text, "inside synctest bubble"), strings.Contains(text, "from outside bubble"):
		return "", true
	case strings.Contains(text, "panic: deadlock: main bubble goroutine has exited"):
		return "leak", false
	case strings.Contains(text, "deadlock"):
		return "deadlock", false
	case strings.Contains(text, "panic: "), strings.Contains(text, "fatal error: "):
		return "panic", false
	case strings.Contains(text, "peers: told fail"):
		return "fail", false
	}
	return "", false
}
