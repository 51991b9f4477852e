package testing

import (
	"internal/search"
	"os"
	"strconv"
	"strings"
	"time"
)

// coirSettings contains the command's settings, which are in the environment: COIR_TEST=name=value,name=value.
type coirSettings struct {
	on        bool
	strategy  string
	seed      uint64
	schedules int
	budget    time.Duration
	bound     int
	racing    bool
	replay    string
	record    string   // the file to write to
	kept      string   // the file with kept schedules; empty: none are kept
	failed    []string // the tokens of earlier failures
	all       *search.All
	kernel    bool // sockets are the kernel's, and not in memory
	leaks     bool
	faults    uint32 // see coir.Config
	atomics   bool
	fresh     int           // run only the schedule with this number in this process; -1: explore
	from      int           // skip the schedules before this one, which other processes have run
	base      int64         // the time at which each schedule begins, in seconds since 1970
	debug     bool          // a debugger may stop the process, so a step may take long
	shrink    time.Duration // the longest time to shrink a failure; 0: failures are not shrunk
	processor bool          // shrink is processor time
	patience  int           // after so many ticks, watch gives up a schedule that waits for something outside
}

var coirSet = coirParse(os.Getenv("COIR_TEST"))

func coirParse(env string) coirSettings {
	s := coirSettings{
		on: env != "", strategy: "default", seed: 1, schedules: 10000, budget: time.Second, bound: 2, leaks: true,
		fresh: -1, patience: 100, shrink: 10 * time.Second,
	}
	for _, f := range strings.Split(env, ",") {
		name, value, _ := strings.Cut(f, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "strategy":
			s.strategy = value
		case "seed":
			s.seed, _ = strconv.ParseUint(value, 10, 64)
		case "schedules":
			s.schedules = n
		case "budget":
			s.budget, _ = time.ParseDuration(value)
		case "bound":
			s.bound = n
		case "racing":
			s.racing = value == "true"
		case "replay":
			s.replay = value
		case "network":
			s.kernel = value == "kernel"
		case "leaks":
			s.leaks = value == "true"
		case "atomics":
			s.atomics = value == "true"
		case "fresh":
			s.fresh = n
		case "from":
			s.from = n
		case "base":
			s.base, _ = strconv.ParseInt(value, 10, 64)
		case "debug":
			s.debug = value == "true"
		case "shrink":
			s.shrink, _ = time.ParseDuration(value)
		case "processor":
			s.processor = value == "true"
		case "patience":
			s.patience = n
		case "faults":
			s.faults = uint32(n)
		}
	}
	s.record, s.kept = os.Getenv("COIR_RECORD"), os.Getenv("COIR_KEPT")
	s.failed = strings.Fields(os.Getenv("COIR_FAILED"))
	for _, name := range []string{"COIR_TEST", "COIR_RECORD", "COIR_KEPT", "COIR_FAILED"} {
		os.Unsetenv(name) // a test may run itself again, in a process that must not explore
	}
	return s
}
