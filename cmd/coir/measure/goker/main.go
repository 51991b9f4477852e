// Command goker measures coir test on GoKer, the bug kernels of GoBench (github.com/timmyyuan/gobench), and compares it
// with other tools for Go. GoKer has no licence, so this repository does not contain it:
//
//	git clone https://github.com/timmyyuan/gobench
//	printf 'module goker\n\ngo 1.21\n' > gobench/gobench/goker/go.mod
//	go run ./cmd/coir/measure/goker -dir gobench/gobench/goker
//
// The module is for Go 1.21 because some of the bugs need the loop variables of that release.
//
// The command builds coir once, and runs each kernel with the default settings of coir test, and with -race if the bug
// is non-blocking. It compares each alarm with kernels.txt, which contains the documented bug of each kernel and how
// the report shows it. The peers run each kernel repeatedly, in a separate process, until it fails, hangs for 2 s, or
// their time is up. Any alarm of a peer counts.
package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
	"github.com/coir-go/coir/cmd/coir/measure/internal/peers"
)

// documented describes the known bugs of the kernels. The head of kernels.txt explains the format.
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
	why  string // why coir does not find it

	coir  peers.Verdict
	right bool // coir's alarm is the documented bug
	peers map[string]peers.Verdict
}

var (
	dir    = flag.String("dir", "", "`directory` gobench/goker of a checkout of GoBench, with a go.mod")
	budget = flag.Duration("budget", 30*time.Second, "time of coir for a kernel; it stops at the first failure")
	each   = flag.Duration("peers", 3*time.Second, "time of each peer for a kernel; 0: without peers")
	only   = flag.String("only", "", "run only the kernels that match this `regexp`")
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
	tool, temp, remove, err := build.Temp()
	if err != nil {
		return err
	}
	defer remove()
	loops := peers.Loops{Dir: temp}
	if *each > 0 {
		for _, k := range all {
			if err := loops.Add(k.flat(), filepath.Join(*dir, k.dir), k.pkg, []string{k.test}); err != nil {
				return err
			}
		}
		if err := loops.Build("1.21"); err != nil {
			return err
		}
	}
	for i, k := range all {
		if err := k.explore(tool); err != nil {
			return fmt.Errorf("%s: %w", k.dir, err)
		}
		line := fmt.Sprintf("%d of %d %s: coir %s", i+1, len(all), k.dir, k.coir)
		if k.coir.What != "" && !k.right {
			line += " (not as documented)"
		}
		k.peers = map[string]peers.Verdict{}
		for _, peer := range peers.Names {
			if *each > 0 {
				k.peers[peer] = loops.Run(k.flat(), k.test, peer, *each, hang)
				line += fmt.Sprintf(", %s %s", peer, k.peers[peer])
			}
		}
		log.Print(line)
	}
	table(all)
	return nil
}

// find returns the kernels. A kernel is a directory with a test, two levels below blocking or nonblocking.
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
		return nil, errors.New("no kernels: -dir must name the directory gobench/goker of a checkout of GoBench")
	}
	return all, nil
}

// read sets the documented bugs of the kernels from text.
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
			return fmt.Errorf("kernels.txt has no line for %s", k.dir)
		}
	}
	return nil
}

func (k *kernel) races() bool { return strings.HasPrefix(k.dir, "nonblocking/") }

// explore runs the kernel under coir test.
func (k *kernel) explore(tool string) error {
	args := []string{"-budget", budget.String()}
	if k.races() {
		args = append(args, "-race")
	}
	all, err := build.Explore(tool, *dir, append(args, "./"+k.dir)...)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Test != k.test {
			continue
		}
		k.coir.Text += e.Output
		if f := e.Failure; f != nil {
			k.coir.What, k.coir.Runs = f.Kind, f.Schedule
			k.coir.Text += f.Kind + ": " + f.Text + "\n" + f.Report
			k.coir.After = time.Duration(e.Elapsed * float64(time.Second))
		}
	}
	k.right = k.coir.What != "" && len(k.want) > 0
	for _, re := range k.want {
		k.right = k.right && re.MatchString(k.coir.Text)
	}
	if *alarms == "" {
		return nil
	}
	if err := os.MkdirAll(*alarms, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*alarms, k.flat()+".txt"), []byte(k.coir.Text), 0o666)
}

func (k *kernel) flat() string { return strings.ReplaceAll(k.dir, "/", "_") }

// hang is the time after which a run counts as hanging. A kernel that does not hang takes less than a second.
const hang = 2 * time.Second

// table prints the results.
func table(all []*kernel) {
	fmt.Printf("%s, %s/%s, %d processors; coir: at most %v a kernel; peers: %v a kernel each\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *budget, *each)
	row("", "kernels", "coir, as documented", "coir, any alarm", peers.Names)
	fmt.Println(rule)
	var medians []string
	for _, class := range []string{"blocking", "nonblocking"} {
		n, right, found := 0, 0, make([]int, len(peers.Names))
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
			if k.coir.What != "" {
				schedules, times = append(schedules, k.coir.Runs), append(times, k.coir.After)
			}
			for i, peer := range peers.Names {
				if k.peers[peer].What != "" {
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
	row("kernel", "documented bug", "coir", "schedule", peers.Names)
	fmt.Println(rule)
	for _, k := range all {
		schedule := ""
		if k.coir.What != "" {
			schedule = fmt.Sprint(k.coir.Runs)
		}
		found := make([]peers.Verdict, len(peers.Names))
		for i, peer := range peers.Names {
			found[i] = k.peers[peer]
		}
		row(k.dir, k.bug, k.coir, schedule, found)
	}
}

const rule = "|---|---|---|---|---|---|---|---|"

// row prints a row of a table: four cells, and one for each peer.
func row[P any](a, b, c, d any, cells []P) {
	fmt.Printf("| %v | %v | %v | %v |", a, b, c, d)
	for _, cell := range cells {
		fmt.Printf(" %v |", cell)
	}
	fmt.Println()
}
