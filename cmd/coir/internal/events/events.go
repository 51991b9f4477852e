// Package events has the format of coir test -json.
package events

import "time"

// Event is a line of the output, in the form of go test -json.
type Event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string   `json:",omitempty"`
	Elapsed float64  `json:",omitempty"`
	Output  string   `json:",omitempty"`
	Failure *Failure `json:",omitempty"`
	Slow    *Failure `json:",omitempty"` // how a test that passes fails on a slow machine

	FailedBuild string `json:",omitempty"` // the package that could not be built

	// Of a test.
	Schedules int    `json:",omitempty"` // without those of Racing
	Racing    int    `json:",omitempty"` // schedules in which timers fired early, as on a slow machine
	Note      string `json:",omitempty"` // that it passes after few schedules
	Complete  bool   `json:",omitempty"` // the strategy has run all its schedules
	Trace     string `json:",omitempty"` // what they all did, as a hash

	// Of its schedules, those in which something came from outside, and those that were not controlled.
	Outside, Uncontrolled int `json:",omitempty"`
}

// Failure is how a test failed.
type Failure struct {
	Kind        string // deadlock, panic, fail, leak, livelock, race
	Text        string // of a panic
	Headline    string
	Waits       []Wait
	Cycle       []string `json:",omitempty"` // names of goroutines, the first again at the end
	Schedule    int      // that found it
	Steps       int
	Switches    int    // of the reported schedule
	Stable      bool   // it failed again with the same decisions
	OutsideSeen bool   // something came from outside
	Left        []Left `json:",omitempty"` // goroutines that were left behind, by their origins
	Token       string // empty if there is none
	Replay      string // the command
	Report      string // the text
	Chart       string `json:",omitempty"` // the file
}

// Left is a number of goroutines of one origin.
type Left struct {
	Started string // started at hub.go:88
	Count   int
}

// Wait is a goroutine that waits at the end.
type Wait struct {
	Goroutine string
	For       string   // waits to lock mutex#3
	HeldBy    []string `json:",omitempty"` // goroutines
	File      string   `json:",omitempty"`
	Line      int      `json:",omitempty"`
	Since     float64  // when it began, in seconds of virtual time since the schedule began
	Elapsed   float64  // how long before the end that was
}
