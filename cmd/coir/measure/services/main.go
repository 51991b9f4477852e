// Command services measures coir test on the forty services of cmd/coir/corpus/services, and compares it with other
// tools for Go.
//
//	go run ./cmd/coir/measure/services            prints the tables
//	go run ./cmd/coir/measure/services -update    writes them into docs/guide/coir-test-services.md, too
//
// The command builds coir once. coir explores each bug until it finds the bug or the budget is used up, with faults of
// the network if the service asks for them. Only failures of the expected kind count. They are replayed from their
// tokens in another process. The corrected twins must pass under the same faults.
//
// The peers run each test repeatedly, on the kernel's network and in a separate process, until it fails, hangs, or
// their time is up. Any alarm counts, unless the peer also has an alarm in the corrected twin, which means that it
// cannot run the service. That is the case for synctest: a goroutine that waits for the network is not durably blocked,
// and no time passes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/cmd/coir/internal/services"
	"github.com/coir-go/coir/cmd/coir/measure/internal/build"
	"github.com/coir-go/coir/cmd/coir/measure/internal/peers"
	"github.com/coir-go/coir/internal/archtest"
	"github.com/coir-go/coir/internal/document"
)

var (
	budget = flag.Duration("budget", 10*time.Second, "time of coir for a bug; it stops at the first failure")
	each   = flag.Duration("peers", 10*time.Second, "time of each peer for a bug, and for its twin; 0: without peers")
	twins  = flag.Int("twins", 10000, "schedules of a twin")
	only   = flag.String("only", "", "run only the services, such as a/Bank, that match this `regexp`")
	update = flag.Bool("update", false, "write the tables into "+page)
)

// service is a service, and the results of the tools.
type service struct {
	services.Service
	bug, again, fixed events.Event // the results of coir for the bug, its replay, and the twin
	peers             map[string]peers.Verdict
	cannot            map[string]string // by peer, its alarm in the twin
}

// found reports whether coir found the bug.
func (s *service) found() bool { return s.is(s.bug) }

// replayed reports whether coir found the bug again in the replay.
func (s *service) replayed() bool { return s.found() && s.is(s.again) }

// explained reports whether the report names lines of the service.
func (s *service) explained() bool {
	return s.found() && strings.Contains(s.bug.Failure.Report, s.File+":")
}

func (s *service) is(e events.Event) bool { return e.Failure != nil && e.Failure.Kind == s.Kind }

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := measure(); err != nil {
		log.Fatal("services: ", err)
	}
}

func measure() error {
	if *update && *only != "" {
		return errors.New("-update needs all services")
	}
	root, err := archtest.Root(".")
	if err != nil {
		return err
	}
	all, err := read(filepath.Join(root, "cmd", "coir", "corpus", "services"))
	if err != nil {
		return err
	}
	tool, temp, remove, err := build.Temp()
	if err != nil {
		return err
	}
	defer remove()
	loops := peers.Loops{Dir: temp}
	if *each > 0 {
		if err := addLoops(loops, all); err != nil {
			return err
		}
	}
	for i, s := range all {
		if err := s.explore(tool, root); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		if *each > 0 {
			s.runPeers(loops)
		}
		var line strings.Builder
		for j, cell := range s.cells() {
			fmt.Fprintf(&line, "; %s %s", heads[j+1], cell)
		}
		log.Printf("%d of %d %s%s", i+1, len(all), s, &line)
	}
	text, err := tables(root, all)
	if err != nil {
		return err
	}
	fmt.Print(text)
	if *update {
		_, err = document.Keep(filepath.Join(root, filepath.FromSlash(page)), begin, end, text, true)
	}
	return err
}

func read(dir string) (all []*service, err error) {
	match, err := regexp.Compile(*only)
	if err != nil {
		return nil, err
	}
	list, err := services.Read(dir)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if match.MatchString(s.String()) {
			all = append(all, &service{Service: s, peers: map[string]peers.Verdict{}, cannot: map[string]string{}})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no service matches %s", *only)
	}
	return all, nil
}

// explore runs the service under coir test.
func (s *service) explore(tool, root string) (err error) {
	if s.bug, err = s.run(tool, root, s.Bug(), "-budget="+budget.String()); err != nil {
		return err
	}
	if s.found() && s.bug.Failure.Token != "" {
		if s.again, err = s.run(tool, root, s.Bug(), "-replay="+s.bug.Failure.Token); err != nil {
			return err
		}
	}
	s.fixed, err = s.run(tool, root, s.Fixed(), "-budget=10m", "-timeout=20m", fmt.Sprint("-schedules=", *twins))
	return err
}

// run runs a test under coir, and returns the event with its result.
func (s *service) run(tool, root, test string, flags ...string) (end events.Event, err error) {
	all, err := build.Explore(tool, root, s.Args(test, flags...)...)
	if err != nil {
		return end, err
	}
	for _, e := range all {
		if e.Test == test && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			end = e
		}
	}
	if end.Action == "" {
		return end, fmt.Errorf("coir test has not run %s", test)
	}
	return end, nil
}

// addLoops builds the loops of the peers.
func addLoops(loops peers.Loops, all []*service) error {
	tests, dirs := map[string][]string{}, map[string]string{}
	for _, s := range all {
		tests[s.Package] = append(tests[s.Package], s.Bug(), s.Fixed())
		dirs[s.Package] = s.Dir
	}
	for name, list := range tests {
		if err := loops.Add(name, dirs[name], name, list); err != nil {
			return err
		}
	}
	return loops.Build("1.26", "-tags=corpus")
}

// A run of a bug counts as hanging if it takes longer than shortest, and longer than three times the longest run of its
// twin. Some services sleep for 1.5 s, and one sleeps for 15 s if a connection is refused, so a run of a twin counts as
// hanging after longest.
const (
	shortest = 5 * time.Second
	longest  = 20 * time.Second
)

// runPeers runs the service under the peers: first the twin, and then the bug if there was no alarm.
func (s *service) runPeers(loops peers.Loops) {
	for _, peer := range peers.Names {
		twin := loops.Run(s.Package, s.Fixed(), peer, *each, longest)
		switch {
		case twin.Cannot:
			s.cannot[peer] = "refuses"
		case twin.What != "":
			s.cannot[peer] = twin.What
		default:
			s.peers[peer] = loops.Run(s.Package, s.Bug(), peer, *each, max(shortest, 3*twin.Longest))
		}
	}
}
