// Command goker measures coir test on GoKer, the bug kernels of GoBench (github.com/timmyyuan/gobench), and next to it
// Go's own tools for the same bugs. GoKer has no licence, so nothing of it is here:
//
//	git clone https://github.com/timmyyuan/gobench
//	printf 'module goker\n\ngo 1.21\n' > gobench/gobench/goker/go.mod
//	go run ./cmd/coir/measure/goker -dir gobench/gobench/goker
//
// Some of the bugs need Go 1.21: their loop variables are as they were then.
//
// coir is built once and runs each kernel with its default settings, and -race for the non-blocking ones. Each alarm is
// compared with kernels.txt, which says for each kernel what the documented bug is and how the report shows it. The
// peers run each kernel repeatedly, in a process of their own, until it fails, hangs for 2 s, or their time is up. Any
// alarm of a peer counts.
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	programs "github.com/coir-go/coir/cmd/coir/measure/internal/build"
)

// documented describes the known bugs of the kernels; see the head of the file.
//
//go:embed kernels.txt
var documented string

// kernel is a test of GoKer with one bug.
type kernel struct {
	dir  string // such as blocking/etcd/6708
	test string
	pkg  string // the name of its package
	bug  string
	want []*regexp.Regexp
	why  string // it is not found

	coir  verdict
	right bool // coir's alarm is the documented bug
	peers map[string]verdict
}

// verdict is the report of a tool about a kernel: none, if what is empty.
type verdict struct {
	what  string
	after time.Duration
	runs  int
	text  string
}

var peers = []string{"go test", "go test -race", "goleak", "synctest"}

var (
	dir    = flag.String("dir", "", "`directory` gobench/goker of a checkout of GoBench, with a go.mod")
	budget = flag.Duration("budget", 30*time.Second, "time of coir for a kernel; it stops at the first failure")
	each   = flag.Duration("peers", 3*time.Second, "time of each peer for a kernel; 0: without peers")
	only   = flag.String("only", "", "kernels that match this `regexp` alone")
	alarms = flag.String("alarms", "", "write the alarms of coir to this `directory`")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := measure(); err != nil {
		log.Fatal("goker: ", err)
	}
}

func measure() error {
	all, err := find(*dir, *only)
	if err != nil {
		return err
	}
	if err := read(all, documented); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "goker-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	tool, err := programs.Coir(temp)
	if err != nil {
		return err
	}
	if *each > 0 {
		if err := build(all, temp); err != nil {
			return err
		}
	}
	for i, k := range all {
		if err := k.explore(tool); err != nil {
			return fmt.Errorf("%s: %w", k.dir, err)
		}
		line := fmt.Sprintf("%d of %d %s: coir %s", i+1, len(all), k.dir, k.coir)
		if k.coir.what != "" && !k.right {
			line += " (not as documented)"
		}
		k.peers = map[string]verdict{}
		for _, peer := range peers {
			if *each > 0 {
				k.peers[peer] = k.loop(temp, peer)
				line += fmt.Sprintf(", %s %s", peer, k.peers[peer])
			}
		}
		log.Print(line)
	}
	table(all)
	return nil
}

// find finds the kernels: each directory two below blocking and nonblocking with a test.
func find(dir, only string) (all []*kernel, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*blocking", "*", "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	head := regexp.MustCompile(`(?m)^package (\w+)$|^func (Test\w+)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		k := &kernel{}
		for _, m := range head.FindAllSubmatch(text, -1) {
			if k.pkg += string(m[1]); len(m[2]) > 0 {
				k.test = string(m[2])
			}
		}
		rel, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		if k.dir = filepath.ToSlash(rel); match.MatchString(k.dir) && k.test != "" {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no kernels: -dir names the directory gobench/goker of a checkout of GoBench")
	}
	return all, nil
}

// read reads what is documented of the kernels.
func read(all []*kernel, text string) error {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) < 3 {
			return fmt.Errorf("kernels.txt: %q is too short", line)
		}
		i := slices.IndexFunc(all, func(k *kernel) bool { return k.dir == f[0] })
		if i < 0 {
			continue
		}
		k := all[i]
		k.bug = f[1]
		for _, expr := range f[2:] {
			if why, ok := strings.CutPrefix(expr, "why: "); ok {
				k.why = why
				continue
			}
			re, err := regexp.Compile("(?m)" + expr)
			if err != nil {
				return fmt.Errorf("kernels.txt: %s: %w", k.dir, err)
			}
			k.want = append(k.want, re)
		}
	}
	for _, k := range all {
		if k.bug == "" {
			return fmt.Errorf("kernels.txt has no %s", k.dir)
		}
	}
	return nil
}

func (k *kernel) races() bool { return strings.HasPrefix(k.dir, "nonblocking/") }

// explore runs the kernel under coir test.
func (k *kernel) explore(tool string) error {
	args := []string{"test", "-json", "-budget", budget.String()}
	if k.races() {
		args = append(args, "-race")
	}
	out, err := command(*dir, tool, append(args, "./"+k.dir)...)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return fmt.Errorf("coir test: %w\n%s", err, out)
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
			Failure              *struct {
				Kind, Text, Report string
				Schedule           int
			}
		}
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("the output of coir: %w", err)
		}
		if e.Test != k.test {
			continue
		}
		k.coir.text += e.Output
		if f := e.Failure; f != nil {
			k.coir.what, k.coir.runs = f.Kind, f.Schedule
			k.coir.text += f.Kind + ": " + f.Text + "\n" + f.Report
			k.coir.after = time.Duration(e.Elapsed * float64(time.Second))
		}
	}
	k.right = k.coir.what != "" && len(k.want) > 0
	for _, re := range k.want {
		k.right = k.right && re.MatchString(k.coir.text)
	}
	if *alarms == "" {
		return nil
	}
	if err := os.MkdirAll(*alarms, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*alarms, k.flat()+".txt"), []byte(k.coir.text), 0o666)
}

// loopFile is added to a copy of a kernel for the peers. It says when a run begins, and what it has found.
const loopFile = `package %s

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestGokerLoop(t *testing.T) {
	d, _ := time.ParseDuration(os.Getenv("GOKER_FOR"))
	mode := os.Getenv("GOKER_MODE")
	current := goleak.IgnoreCurrent()
	for until := time.Now().Add(d); time.Now().Before(until); {
		fmt.Fprintln(os.Stderr, "\ngoker: run")
		ok := t.Run("kernel", func(t *testing.T) {
			if mode == "synctest" {
				synctest.Test(t, %[2]s)
			} else {
				%[2]s(t)
			}
		})
		if mode == "goleak" && ok {
			if err := goleak.Find(current); err != nil {
				fmt.Fprintln(os.Stderr, "\ngoker: told leak")
				os.Exit(1)
			}
		}
		if !ok {
			fmt.Fprintln(os.Stderr, "\ngoker: told fail")
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, "\ngoker: over")
	os.Exit(0)
}
`

func (k *kernel) flat() string { return strings.ReplaceAll(k.dir, "/", "_") }

// build builds the loops of all kernels, with and without -race.
func build(all []*kernel, temp string) error {
	for _, k := range all {
		to := filepath.Join(temp, "src", k.flat())
		if err := os.CopyFS(to, os.DirFS(filepath.Join(*dir, k.dir))); err != nil {
			return err
		}
		text := fmt.Sprintf(loopFile, k.pkg, k.test)
		if err := os.WriteFile(filepath.Join(to, "goker_loop_test.go"), []byte(text), 0o666); err != nil {
			return err
		}
	}
	src := filepath.Join(temp, "src")
	mod := "module goker\n\ngo 1.21\n\nrequire go.uber.org/goleak v1.3.0\n"
	if err := os.WriteFile(filepath.Join(src, "go.mod"), []byte(mod), 0o666); err != nil {
		return err
	}
	log.Print("building the loops of the peers")
	if out, err := command(src, "go", "mod", "tidy"); err != nil {
		return fmt.Errorf("go mod tidy: %w\n%s", err, out)
	}
	for to, flag := range map[string]string{"plain": "-race=false", "race": "-race"} {
		bin := filepath.Join(temp, to) + string(filepath.Separator)
		if err := os.Mkdir(bin, 0o777); err != nil {
			return err
		}
		if out, err := command(src, "go", "test", "-c", "-vet=off", flag, "-o", bin, "./..."); err != nil {
			return fmt.Errorf("go test -c: %w\n%s", err, out)
		}
	}
	return nil
}

// hang is the time after which a run counts as hanging. No kernel takes a second unless it hangs.
const hang = 2 * time.Second

// loop runs a kernel under a peer.
func (k *kernel) loop(temp, peer string) (v verdict) {
	bin := "plain"
	if peer == "go test -race" {
		bin = "race"
	}
	c := exec.Command(filepath.Join(temp, bin, k.flat()+".test"), "-test.run=^TestGokerLoop$", "-test.timeout=0")
	c.Dir = temp
	c.Env = append(os.Environ(), "GODEBUG=asynctimerchan=0", "GOKER_MODE="+peer, "GOKER_FOR="+each.String())
	out := &output{began: time.Now()}
	c.Stdout, c.Stderr = out, out
	began := time.Now()
	if err := c.Start(); err != nil {
		return verdict{what: "error", text: err.Error()}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for hangs := false; ; {
		select {
		case <-ended:
			v.after = time.Since(began)
			v.text, v.runs, _ = out.state()
			if v.what = "hang"; !hangs {
				v.what = told(v.text)
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

// told returns what the output of a loop reports.
func told(text string) string {
	switch {
	case strings.Contains(text, "WARNING: DATA RACE"):
		return "race"
	case strings.Contains(text, "goker: told leak"):
		return "leak"
	case strings.Contains(text, "inside synctest bubble"), strings.Contains(text, "from outside bubble"):
		return "" // the kernel cannot be run this way
	case strings.Contains(text, "panic: deadlock: main bubble goroutine has exited"):
		return "leak"
	case strings.Contains(text, "deadlock"):
		return "deadlock"
	case strings.Contains(text, "panic: "), strings.Contains(text, "fatal error: "):
		return "panic"
	case strings.Contains(text, "goker: told fail"):
		return "fail"
	}
	return ""
}

func (v verdict) String() string {
	if v.what == "" {
		return "-"
	}
	return fmt.Sprintf("%s %.1f s", v.what, v.after.Seconds())
}

func command(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if err != nil {
		out.Write(errs.Bytes())
	}
	return out.String(), err
}

// table prints what was measured.
func table(all []*kernel) {
	fmt.Printf("%s, %s/%s, %d processors; coir: at most %v a kernel; peers: %v a kernel each\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *budget, *each)
	row("", "kernels", "coir, as documented", "coir, any alarm", peers)
	fmt.Println(rule)
	var medians []string
	for _, class := range []string{"blocking", "nonblocking"} {
		n, right, found := 0, 0, make([]int, len(peers))
		var schedules []int
		var times []time.Duration
		for _, k := range all {
			if !strings.HasPrefix(k.dir, class+"/") {
				continue
			}
			n++
			if k.right {
				right++
			}
			if k.coir.what != "" {
				schedules, times = append(schedules, k.coir.runs), append(times, k.coir.after)
			}
			for i, peer := range peers {
				if k.peers[peer].what != "" {
					found[i]++
				}
			}
		}
		row(class, n, right, len(schedules), found)
		if slices.Sort(schedules); len(schedules) > 0 {
			slices.Sort(times)
			medians = append(medians, fmt.Sprintf(
				"%s, alarms of coir, median and worst: schedule %d and %d, %.1f s and %.1f s.\n", class,
				schedules[len(schedules)/2], slices.Max(schedules), times[len(times)/2].Seconds(), slices.Max(times).Seconds()))
		}
	}
	fmt.Printf("\n%s\nNot found, or not as documented:\n\n", strings.Join(medians, ""))
	for _, k := range all {
		if !k.right {
			fmt.Printf("- %s (%s): %s. %s\n", k.dir, k.coir, k.bug, cmp.Or(k.why, "Not looked into"))
		}
	}
	fmt.Println()
	row("kernel", "documented bug", "coir", "schedule", peers)
	fmt.Println(rule)
	for _, k := range all {
		schedule := ""
		if k.coir.what != "" {
			schedule = fmt.Sprint(k.coir.runs)
		}
		found := make([]verdict, len(peers))
		for i, peer := range peers {
			found[i] = k.peers[peer]
		}
		row(k.dir, k.bug, k.coir, schedule, found)
	}
}

const rule = "|---|---|---|---|---|---|---|---|"

// row prints a row of a table, which ends with a cell for each peer.
func row[P any](a, b, c, d any, peers []P) {
	fmt.Printf("| %v | %v | %v | %v |", a, b, c, d)
	for _, p := range peers {
		fmt.Printf(" %v |", p)
	}
	fmt.Println()
}
