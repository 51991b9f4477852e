package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir/bench/twins"
	"github.com/coir-go/coir/examples/etl"
	"github.com/coir-go/coir/examples/fanout"
	"github.com/coir-go/coir/examples/jobs"
	"github.com/coir-go/coir/examples/logs"
)

// A program can be started. It stops gracefully when the context ends.
type program struct {
	name, unit string
	sides      []twins.Side // to be compared with the twin
	start      func(ctx context.Context, side twins.Side) (running, error)
}

// running is a program that runs.
type running interface {
	load(d time.Duration) sample // until d has passed, or the program has stopped
	wait() error                 // until the program has stopped
}

// sample is the result of a program under load.
type sample struct {
	latencies  []time.Duration // of the requests that it served
	unfinished int             // requests that it accepted and did not finish
}

// add adds the results of another client.
func (s *sample) add(other sample) {
	s.latencies = append(s.latencies, other.latencies...)
	s.unfinished += other.unfinished
}

// clients runs n clients, and returns their combined results.
func clients(n int, client func(i int) sample) (all sample) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s := client(i)
			mu.Lock()
			defer mu.Unlock()
			all.add(s)
		})
	}
	wg.Wait()
	return all
}

var programs = []program{
	{"fanout", "requests", []twins.Side{twins.Coir, twins.Undeclared}, startFanout},
	{"etl", "items", []twins.Side{twins.Coir}, startETL},
	{"hub", "messages", []twins.Side{twins.Coir}, startHub},
	{"jobs", "jobs", []twins.Side{twins.Coir}, startJobs},
	{"logs", "runs", []twins.Side{twins.Coir}, startLogs},
}

// fanoutLoad is a gateway before three backends on loopback, which answer in 5 to 20 ms; one call in twenty of the
// third takes 400 ms. Twenty clients ask one request after the other.
type fanoutLoad struct {
	ctx      context.Context
	address  string
	served   chan error
	backends []*httptest.Server
	inside   *http.Client // of the gateway
	outside  *http.Client
	next     atomic.Int64
	accepted sync.Map // the numbers of the requests that a backend has seen
}

func startFanout(ctx context.Context, side twins.Side) (running, error) {
	f := &fanoutLoad{
		ctx: ctx, served: make(chan error, 1),
		inside:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}},
		outside: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}},
	}
	c := fanout.Config{Deadline: 150 * time.Millisecond, Hedge: 40 * time.Millisecond, Calls: 64, Grace: 5 * time.Second}
	for i := range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.accepted.Store(r.URL.Query().Get("q"), true)
			d := time.Duration(5+rand.IntN(15)) * time.Millisecond
			if i == 2 && rand.IntN(20) == 0 {
				d = 400 * time.Millisecond
			}
			if twins.Errgroup.Sleep(r.Context(), d) == nil {
				_, _ = io.WriteString(w, "ok")
			}
		}))
		f.backends = append(f.backends, s)
		c.Backends = append(c.Backends, side.Backend(f.inside, s.URL))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f.address = "http://" + l.Addr().String()
	g := side.Fanout(c)
	go func() { f.served <- g.Serve(ctx, l) }()
	return f, nil
}

func (f *fanoutLoad) load(d time.Duration) sample {
	end := time.Now().Add(d)
	return clients(20, func(int) (s sample) {
		for time.Now().Before(end) {
			id := strconv.FormatInt(f.next.Add(1), 10)
			began := time.Now()
			served, err := f.get(id)
			if served {
				s.latencies = append(s.latencies, time.Since(began))
			}
			if err == nil {
				continue
			}
			if _, accepted := f.accepted.Load(id); accepted {
				s.unfinished++
			}
			if f.ctx.Err() != nil {
				break // it takes no more requests
			}
		}
		return s
	})
}

// get sends a request. It reports whether a backend has answered before the deadline. If the request got no answer at
// all, get returns its error.
func (f *fanoutLoad) get(id string) (served bool, err error) {
	resp, err := f.outside.Get(f.address + "?q=" + id)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return err == nil && strings.Contains(string(text), "ok"), err
}

func (f *fanoutLoad) wait() error {
	err := <-f.served
	f.outside.CloseIdleConnections()
	f.inside.CloseIdleConnections()
	for _, s := range f.backends {
		s.Close()
	}
	return err
}

// etlLoad is a pipeline of lookups that wait for 1 ms, 64 at a time.
type etlLoad struct {
	ctx  context.Context
	side twins.Side
	err  error
}

func startETL(ctx context.Context, side twins.Side) (running, error) {
	return &etlLoad{ctx: ctx, side: side}, nil
}

func (e *etlLoad) load(d time.Duration) (s sample) {
	began := time.Now()
	r, err := e.side.ETL(context.Background(), etl.Config[int, int]{
		Extract: func(context.Context) (int, error) {
			now := time.Since(began)
			if now > d || e.ctx.Err() != nil {
				return 0, io.EOF
			}
			return int(now), nil
		},
		Transform: func(ctx context.Context, item int) (int, error) { return item, e.side.Sleep(ctx, time.Millisecond) },
		Load: func(_ context.Context, rows []int) error {
			for _, row := range rows {
				s.latencies = append(s.latencies, time.Since(began)-time.Duration(row))
			}
			return nil
		},
		Parallel: 64, Batch: 100, Linger: time.Millisecond,
	})
	e.err = errors.Join(e.err, err)
	s.unfinished = r.Read - len(s.latencies)
	return s
}

func (e *etlLoad) wait() error { return e.err }

// hubLoad is a hub with a hundred members on loopback. Four of them talk: each sends its next line when it has received
// its last one.
type hubLoad struct {
	ctx     context.Context
	served  chan error
	members []*hubMember
	readers sync.WaitGroup
}

type hubMember struct {
	net.Conn
	heard chan int     // the numbers of its own lines that a talker receives
	last  [talkers]int // the last line received from each talker; used by the reader
	lines atomic.Int64
	said  int
}

const talkers = 4

func startHub(ctx context.Context, side twins.Side) (running, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hubLoad{ctx: ctx, served: make(chan error, 1)}
	room := side.Hub(256)
	go func() { h.served <- room.Serve(ctx, l, 5*time.Second) }()
	for i := range 100 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		m := &hubMember{Conn: conn, heard: make(chan int, 1)}
		h.members = append(h.members, m)
		if _, err := fmt.Fprintln(m, i); err != nil {
			return nil, err
		}
		h.readers.Go(func() { m.read(i) })
	}
	for room.Len() < len(h.members) {
		time.Sleep(time.Millisecond)
	}
	return h, nil
}

// read reads lines. A line is the name of a member, a colon and a number.
func (m *hubMember) read(own int) {
	defer close(m.heard)
	for in := bufio.NewScanner(m); in.Scan(); {
		m.lines.Add(1)
		name, text, _ := strings.Cut(in.Text(), ": ")
		from, err := strconv.Atoi(name)
		if err != nil || from >= talkers {
			continue
		}
		number, _ := strconv.Atoi(text)
		m.last[from] = number
		if from == own {
			m.heard <- number
		}
	}
}

func (h *hubLoad) load(d time.Duration) (s sample) {
	end := time.Now().Add(d)
	s = clients(talkers, func(i int) (s sample) {
		m := h.members[i]
		for time.Now().Before(end) && h.ctx.Err() == nil {
			began := time.Now()
			m.said++
			if _, err := fmt.Fprintln(m, m.said); err != nil {
				break
			}
			if <-m.heard != m.said {
				break
			}
			s.latencies = append(s.latencies, time.Since(began))
		}
		return s
	})
	if h.ctx.Err() == nil {
		return s
	}
	h.readers.Wait() // until the hub has closed the connections
	for i := range talkers {
		for _, m := range h.members {
			s.unfinished += h.members[i].last[i] - min(m.last[i], h.members[i].last[i])
		}
	}
	return s
}

func (h *hubLoad) wait() error {
	err := <-h.served
	for _, m := range h.members {
		_ = m.Close()
	}
	h.readers.Wait()
	return err
}

// jobsLoad is a queue with 64 workers whose jobs wait for 1 ms. One job in ten fails at its first attempt. 128 clients
// submit one job after the other.
type jobsLoad struct {
	ctx   context.Context
	queue twins.Queue
	ended chan error
}

func startJobs(ctx context.Context, side twins.Side) (running, error) {
	var attempts atomic.Int64
	do := func(ctx context.Context, job string) (string, error) {
		if attempts.Add(1)%10 == 0 {
			return "", errors.New("failed")
		}
		return job, side.Sleep(ctx, time.Millisecond)
	}
	j := &jobsLoad{ctx: ctx, ended: make(chan error, 1)}
	j.queue = side.Jobs(jobs.Config{
		Connect: func(context.Context) (func(context.Context, string) (string, error), error) { return do, nil },
		Workers: 64, Waiting: 64, Attempts: 10, Backoff: time.Millisecond, Every: time.Microsecond, Burst: 1000,
	})
	context.AfterFunc(ctx, j.queue.Stop)
	go func() { j.ended <- j.queue.Run(context.Background()) }()
	return j, nil
}

func (j *jobsLoad) load(d time.Duration) sample {
	end := time.Now().Add(d)
	return clients(128, func(i int) (s sample) {
		for time.Now().Before(end) {
			began := time.Now()
			ticket, err := j.queue.Submit(context.Background(), jobs.Priority(i%2), "job")
			if err != nil {
				break // stopped
			}
			if _, err := ticket.Wait(context.Background()); err != nil {
				s.unfinished++
				continue
			}
			s.latencies = append(s.latencies, time.Since(began))
		}
		return s
	})
}

func (j *jobsLoad) wait() error { return <-j.ended }

// logsLoad counts eight files of 64 KiB in memory, over and over.
type logsLoad struct {
	ctx  context.Context
	side twins.Side
	err  error
}

func startLogs(ctx context.Context, side twins.Side) (running, error) {
	return &logsLoad{ctx: ctx, side: side}, nil
}

func (l *logsLoad) load(d time.Duration) (s sample) {
	const line = "host-1.example.org 200 12345\n"
	text := strings.Repeat(line, 64<<10/len(line))
	c := logs.Config{Parallel: 8, Batch: 100, Every: 10 * time.Millisecond, Progress: func(int) {}}
	for range 8 {
		c.Files = append(c.Files, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
	}
	for began := time.Now(); time.Since(began) < d && l.ctx.Err() == nil; {
		start := time.Now()
		r, err := l.side.Logs(context.Background(), c)
		l.err = errors.Join(l.err, err)
		if r.Lines != 8*len(text)/len(line) {
			s.unfinished++
		}
		s.latencies = append(s.latencies, time.Since(start))
	}
	return s
}

func (l *logsLoad) wait() error { return l.err }
