package testing

import (
	"errors"
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
	only      int           // run only the schedule with this number in this process; -1: explore
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
		only: -1, patience: 100, shrink: 10 * time.Second,
	}
	for _, f := range strings.Split(env, ",") {
		name, value, _ := strings.Cut(f, "=")
		if err := s.set(name, value); s.on && err != nil {
			panic("coir: COIR_TEST has the setting " + strconv.Quote(f) + ": " + err.Error())
		}
	}
	s.record, s.kept = os.Getenv("COIR_RECORD"), os.Getenv("COIR_KEPT")
	s.failed = strings.Fields(os.Getenv("COIR_FAILED"))
	for _, name := range []string{"COIR_TEST", "COIR_RECORD", "COIR_KEPT", "COIR_FAILED"} {
		os.Unsetenv(name) // a test may run itself again, in a process that must not explore
	}
	return s
}

// set sets what is called name. It fails for a name that the command does not use, and for a value of another type.
func (s *coirSettings) set(name, value string) (err error) {
	switch name {
	case "strategy":
		s.strategy = value
	case "seed":
		s.seed, err = strconv.ParseUint(value, 10, 64)
	case "schedules":
		s.schedules, err = strconv.Atoi(value)
	case "budget":
		s.budget, err = time.ParseDuration(value)
	case "bound":
		s.bound, err = strconv.Atoi(value)
	case "racing":
		s.racing, err = strconv.ParseBool(value)
	case "replay":
		s.replay = value
	case "network":
		s.kernel = value == "kernel"
		if !s.kernel && value != "memory" {
			err = errors.New("want memory or kernel")
		}
	case "leaks":
		s.leaks, err = strconv.ParseBool(value)
	case "atomics":
		s.atomics, err = strconv.ParseBool(value)
	case "only":
		s.only, err = strconv.Atoi(value)
	case "from":
		s.from, err = strconv.Atoi(value)
	case "base":
		s.base, err = strconv.ParseInt(value, 10, 64)
	case "debug":
		s.debug, err = strconv.ParseBool(value)
	case "shrink":
		s.shrink, err = time.ParseDuration(value)
	case "processor":
		s.processor, err = strconv.ParseBool(value)
	case "patience":
		s.patience, err = strconv.Atoi(value)
	case "faults":
		var faults uint64
		faults, err = strconv.ParseUint(value, 10, 32)
		s.faults = uint32(faults)
	default:
		err = errors.New("unknown setting")
	}
	return err
}
