// Package twins holds twins of the programs of examples/, written with goroutines, channels, errgroup and other
// packages of golang.org/x: in the directories fanout, etl, hub, jobs and logs.
//
// A twin has the exported names of its program, does the same, and is written with the same care; the tests of this
// package run both. Command measure compares them.
package twins

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"time"

	"github.com/coir-go/coir"
	errgroupetl "github.com/coir-go/coir/bench/twins/etl"
	errgroupfanout "github.com/coir-go/coir/bench/twins/fanout"
	errgrouphub "github.com/coir-go/coir/bench/twins/hub"
	errgroupjobs "github.com/coir-go/coir/bench/twins/jobs"
	errgrouplogs "github.com/coir-go/coir/bench/twins/logs"
	"github.com/coir-go/coir/examples/etl"
	"github.com/coir-go/coir/examples/fanout"
	"github.com/coir-go/coir/examples/hub"
	"github.com/coir-go/coir/examples/jobs"
	"github.com/coir-go/coir/examples/logs"
)

// Programs lists the names of the programs, which are also the names of their directories.
var Programs = []string{"fanout", "etl", "hub", "jobs", "logs"}

// A Side is one way to write the programs.
type Side struct {
	Name    string
	Dir     string // of the directories of the programs
	Fanout  func(fanout.Config) Gateway
	Backend func(client *http.Client, address string) func(ctx context.Context, query string) (string, error)
	ETL     func(context.Context, etl.Config[int, int]) (etl.Report, error)
	Hub     func(keep int) Hub
	Jobs    func(jobs.Config) Queue
	Logs    func(context.Context, logs.Config) (logs.Report, error)
	Errors  JobErrors
	Sleep   func(ctx context.Context, d time.Duration) error // how functions that the program calls wait
}

// Gateway is a fanout program.
type Gateway interface {
	http.Handler
	Serve(ctx context.Context, l net.Listener) error
}

// Hub is a hub program.
type Hub interface {
	Len() int
	Close()
	Join(ctx context.Context, name string, c hub.Conn) error
	Serve(ctx context.Context, l net.Listener, grace time.Duration) error
}

// Queue is a jobs program.
type Queue interface {
	Submit(ctx context.Context, p jobs.Priority, text string) (Ticket, error)
	Stop()
	Run(ctx context.Context) error
}

// Ticket is the result of Submit for a job.
type Ticket interface {
	Wait(ctx context.Context) (string, error)
}

// JobErrors holds the errors that a jobs program exports.
type JobErrors struct{ Closed, Crashed, Lost error }

// Coir is the side of examples/.
var Coir = Side{
	Name: "coir", Dir: filepath.Join(here(), "..", "..", "examples"),
	Fanout:  func(c fanout.Config) Gateway { return fanout.New(c) },
	Backend: fanout.Backend,
	ETL:     etl.Run[int, int],
	Hub:     func(keep int) Hub { return hub.New(keep) },
	Jobs:    func(c jobs.Config) Queue { return coirQueue{jobs.New(c)} },
	Logs:    logs.Run,
	Errors:  JobErrors{jobs.ErrClosed, jobs.ErrCrashed, jobs.ErrLost},
	Sleep:   coir.Sleep,
}

// Errgroup is the side of the twins.
var Errgroup = Side{
	Name: "errgroup", Dir: here(),
	Fanout:  func(c fanout.Config) Gateway { return errgroupfanout.New(errgroupfanout.Config(c)) },
	Backend: errgroupfanout.Backend,
	ETL: func(ctx context.Context, c etl.Config[int, int]) (etl.Report, error) {
		r, err := errgroupetl.Run(ctx, errgroupetl.Config[int, int](c))
		return etl.Report(r), err
	},
	Hub:  func(keep int) Hub { return errgroupHub{errgrouphub.New(keep)} },
	Jobs: func(c jobs.Config) Queue { return errgroupQueue{errgroupjobs.New(errgroupjobs.Config(c))} },
	Logs: func(ctx context.Context, c logs.Config) (logs.Report, error) {
		r, err := errgrouplogs.Run(ctx, errgrouplogs.Config(c))
		return logs.Report(r), err
	},
	Errors: JobErrors{errgroupjobs.ErrClosed, errgroupjobs.ErrCrashed, errgroupjobs.ErrLost},
	Sleep:  sleep,
}

// Undeclared is Coir with backends that block without coir.Blocking.
var Undeclared = Side{Name: "coir without Blocking", Fanout: Coir.Fanout, Backend: Errgroup.Backend}

type coirQueue struct{ *jobs.Queue }

func (q coirQueue) Submit(ctx context.Context, p jobs.Priority, text string) (Ticket, error) {
	return q.Queue.Submit(ctx, p, text)
}

type errgroupQueue struct{ *errgroupjobs.Queue }

func (q errgroupQueue) Submit(ctx context.Context, p jobs.Priority, text string) (Ticket, error) {
	return q.Queue.Submit(ctx, errgroupjobs.Priority(p), text)
}

type errgroupHub struct{ *errgrouphub.Hub }

func (h errgroupHub) Join(ctx context.Context, name string, c hub.Conn) error {
	return h.Hub.Join(ctx, name, c)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// here returns the directory of this file.
func here() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}
