package timing

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Machine records where and when figures were measured, and for which commit.
type Machine struct {
	Processor  string  `json:"processor"`
	Processors int     `json:"processors"`
	Platform   string  `json:"platform"`
	Go         string  `json:"go"`
	Date       string  `json:"date"`
	Commit     string  `json:"commit"`
	Load       float64 `json:"load"` // the load average of the last 15 minutes, or 0 if the system does not report it
}

// ThisMachine describes the machine and the commit that this process runs on.
func ThisMachine() (Machine, error) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return Machine{}, fmt.Errorf("git describe: %w", err)
	}
	m := Machine{
		Processor: "unknown", Processors: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly), Commit: strings.TrimSpace(string(commit)),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name\t: "); found {
			m.Processor, _, _ = strings.Cut(rest, "\n")
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 2 {
			m.Load, _ = strconv.ParseFloat(f[2], 64)
		}
	}
	return m, nil
}

// Short returns f with four significant digits.
func Short(f float64) float64 {
	s, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64)
	return s
}
