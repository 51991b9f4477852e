// Package events defines the format of coir test -json.
package events

import "time"

// Event is a line of the output. It extends the events of go test -json.
type Event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string   `json:",omitempty"`
	Elapsed float64  `json:",omitempty"`
	Output  string   `json:",omitempty"`
	Failure *Failure `json:",omitempty"`
	Slow    *Failure `json:",omitempty"` // how a test that otherwise passes fails on a slow machine

	FailedBuild string `json:",omitempty"` // the package that could not be built

	// For a test.
	Schedules int    `json:",omitempty"` // the number of schedules, without those of Racing and Shrinking
	Racing    int    `json:",omitempty"` // the number of schedules in which timers fired early, as on a slow machine
	Shrinking int    `json:",omitempty"` // the number of schedules that shrank a failure, or found one to compare it with
	Note      string `json:",omitempty"` // warnings: it passed after few schedules, or although a handler panicked
	Complete  bool   `json:",omitempty"` // the strategy has run all its schedules
	Trace     string `json:",omitempty"` // a hash of what all schedules did

	// The numbers of schedules in which something came from outside, and of those that were not controlled.
	Outside, Uncontrolled int `json:",omitempty"`
}

// Failure describes how a test failed.
type Failure struct {
	Kind        string // deadlock, panic, fail, leak, livelock, race; of a replay also recovered
	Text        string // the text of a panic
	Headline    string
	Waits       []Wait
	Cycle       []string `json:",omitempty"` // names of goroutines; the last is the first again
	Schedule    int      // the number of the schedule that failed
	Steps       int
	Switches    int    // Steps and Switches are those of the reported schedule
	Stable      bool   // it failed again with the same decisions
	OutsideSeen bool   // something came from outside
	Left        []Left `json:",omitempty"` // goroutines that were left behind, by origin
	Token       string // empty if there is none
	Replay      string // the command that replays it
	Report      string // the text of the report
	Chart       string `json:",omitempty"` // the file with the chart
}

// Left is a number of goroutines with the same origin.
type Left struct {
	Started string // started at hub.go:88
	Count   int
}

// Wait is a goroutine that waits at the end of the schedule.
type Wait struct {
	Goroutine string
	For       string   // waits to lock s.mu
	HeldBy    []string `json:",omitempty"` // goroutines
	File      string   `json:",omitempty"`
	Line      int      `json:",omitempty"`
	Since     float64  // when the wait began, in seconds of virtual time since the schedule began
	Elapsed   float64  // the time from then to the end, in seconds
}
