package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/supervise"
)

// Periodic jobs, supervised and under a rate limit, some of them only on the leader of two schedulers. A leader that
// cannot renew its lease tries until the last instant, at which the other one may take it: then there are two leaders.
// The evidence is spread over more than fifty fibers, most of which do something else.

type cronJob struct {
	Name    string
	Every   time.Duration
	Timeout time.Duration
	Leader  bool // only on the leader
	Run     func(ctx context.Context) error
}

// leaseStore keeps the lease. Acquire takes or renews it for the owner, and reports whether it did.
type leaseStore interface {
	Acquire(ctx context.Context, owner string, ttl time.Duration) (bool, error)
}

// cronScheduler runs jobs.
type cronScheduler struct {
	Name  string
	Jobs  []cronJob
	Store leaseStore
	TTL   time.Duration
	Limit *pace.Limiter
	Log   func(supervise.Event)
}

var errLeaseLost = errors.New("the lease is lost")

// Run runs the jobs until ctx ends.
func (s *cronScheduler) Run(ctx context.Context) error {
	var all, leaders []supervise.Child
	for _, j := range s.Jobs {
		c := supervise.Child{Name: j.Name, Run: s.loop(j)}
		if j.Leader {
			leaders = append(leaders, c)
		} else {
			all = append(all, c)
		}
	}
	if len(leaders) > 0 {
		all = append(all, supervise.Child{Name: "lead", Run: func(ctx context.Context) error {
			return s.whileLeader(ctx, func(ctx context.Context) error { return s.supervise(ctx, "leader", leaders) })
		}})
	}
	return s.supervise(ctx, "jobs", all)
}

func (s *cronScheduler) supervise(ctx context.Context, name string, children []supervise.Child) error {
	sup := supervise.New(children, supervise.WithName(s.Name+" "+name), supervise.WithBackoff(time.Second, time.Minute),
		supervise.WithIntensity(len(children)*60, time.Hour))
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("events", func(ctx context.Context) error {
			for e, err := range sup.Events().All(ctx) {
				if err != nil {
					return err
				}
				s.Log(e)
			}
			return nil
		})
		defer n.Cancel(nil)
		return sup.Run(ctx)
	})
}

// loop returns the function of a job. Its ticker goes on when the job is restarted.
func (s *cronScheduler) loop(j cronJob) func(ctx context.Context) error {
	tick := pace.NewTicker(j.Every, coir.WithName(j.Name))
	return func(ctx context.Context) error {
		for {
			if _, err := tick.Wait(ctx); err != nil {
				return err
			}
			if err := s.Limit.Wait(ctx); err != nil {
				return err
			}
			if err := s.once(ctx, j); err != nil {
				return fmt.Errorf("%s: %w", j.Name, err)
			}
		}
	}
}

func (s *cronScheduler) once(ctx context.Context, j cronJob) error {
	ctx, cancel := coir.WithTimeout(ctx, j.Timeout)
	defer cancel()
	return j.Run(ctx)
}

// whileLeader calls lead while this scheduler has the lease, again and again.
func (s *cronScheduler) whileLeader(ctx context.Context, lead func(ctx context.Context) error) error {
	for {
		start := coir.Now(ctx)
		if ok, err := s.Store.Acquire(ctx, s.Name, s.TTL); err == nil && ok {
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("renew", func(ctx context.Context) error { return s.renew(ctx, start+s.TTL) })
				return lead(ctx)
			})
			if !errors.Is(err, errLeaseLost) {
				return err
			}
		}
		if err := coir.Sleep(ctx, s.TTL/3); err != nil {
			return err
		}
	}
}

// renew renews the lease, and fails with errLeaseLost when it ends. It should do so before that.
func (s *cronScheduler) renew(ctx context.Context, until time.Duration) error {
	for {
		if err := coir.Sleep(ctx, s.TTL/3); err != nil {
			return err
		}
		start := coir.Now(ctx)
		try, cancel := coir.WithTimeout(ctx, until-start)
		ok, err := s.Store.Acquire(try, s.Name, s.TTL)
		cancel()
		switch {
		case ctx.Err() != nil:
			return coir.Ended(ctx)
		case err == nil && !ok:
			return errLeaseLost
		case err == nil:
			until = start + s.TTL
		case coir.Now(ctx)+s.TTL/3 > until: // the next attempt would be too late
			return errLeaseLost
		}
	}
}

// faultyStore is a store that is down or slow at times.
type faultyStore struct {
	s     *Sim
	mu    *locks.Mutex
	owner string
	until time.Duration
}

var errStoreDown = errors.New("store is down")

func (st *faultyStore) Acquire(ctx context.Context, owner string, ttl time.Duration) (bool, error) {
	if st.s.Fault("store down") {
		return false, errStoreDown
	}
	if st.s.Fault("store slow") {
		if err := coir.Sleep(ctx, 20*time.Minute); err != nil {
			return false, err
		}
	}
	if err := st.mu.Lock(ctx); err != nil {
		return false, err
	}
	defer st.mu.Unlock()
	now := coir.Now(ctx)
	if st.owner != owner && now < st.until {
		return false, nil
	}
	st.owner, st.until = owner, now+ttl
	return true, nil
}

// twoLeaders runs two schedulers for a week.
func twoLeaders(ctx context.Context, s *Sim) {
	const total = 7*24*time.Hour + time.Minute
	st := &faultyStore{s: s, mu: locks.NewMutex(coir.WithName("store"))}
	limit := pace.NewLimiter(10*time.Second, 2, coir.WithName("limit"))
	var leading atomic.Int64
	scheduler := func(name string) *cronScheduler {
		return &cronScheduler{Name: name, Store: st, TTL: time.Hour, Limit: limit,
			Log: func(e supervise.Event) { s.Logf("%v", e) },
			Jobs: []cronJob{
				{Name: "hourly", Every: time.Hour, Timeout: time.Minute, Run: func(ctx context.Context) error {
					if s.Fault("job fails") {
						return errors.New("job fails")
					}
					return coir.Sleep(ctx, 30*time.Second)
				}},
				{Name: "daily", Every: 24 * time.Hour, Timeout: time.Hour, Run: func(ctx context.Context) error {
					if s.Fault("panic") {
						panic("a bug")
					}
					return coir.Sleep(ctx, 30*time.Minute)
				}},
				{Name: "led", Every: 6 * time.Hour, Timeout: time.Hour, Leader: true, Run: func(ctx context.Context) error {
					if n := leading.Add(1); n > 1 {
						s.Fatalf("%d leaders", n)
					}
					defer leading.Add(-1)
					return coir.Sleep(ctx, 30*time.Minute)
				}},
			}}
	}
	nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
		n.Go("one", scheduler("one").Run)
		n.Go("two", scheduler("two").Run)
		defer n.Cancel(nil)
		_ = coir.Sleep(ctx, total)
	})
}

// leaseFaults are the options under which twoLeaders fails.
var leaseFaults = []Option{
	WithSteps(400_000), WithSchedules(100), WithFaults("job fails", "panic", "store down", "store slow"),
}

// tokenNow returns the token that the decisions of an older token have now.
func tokenNow(t *testing.T, old string, fn func(context.Context, *Sim), opts ...Option) (token string) {
	t.Helper()
	r, err := decode(old)
	if err != nil {
		t.Fatal(err)
	}
	set := settle(opts)
	w := newWorld(r.mode, set.limit)
	w.quit, w.options = set.quit, set.replayed()
	left := w.runInFiber(func(ctx context.Context) {
		if _, f := w.runScript(ctx, r.script, planFaults(set.faults), fn); f != nil {
			token = encode(r.mode, r.script, f.hash, f.hashes)
		}
	})
	if left != nil {
		t.Fatal(left)
	}
	return token
}

// Two fibers lead at a time, among more than fifty: the report of such a failure names both, and each has a column. To
// make it small takes minutes, so the test replays the token in the golden report. With -update it writes a new token
// for the same decisions if only the operations have changed, and searches for others if they do not fail any more.
func TestReportNamesBothLeaders(t *testing.T) {
	path := filepath.Join("testdata", "reports", "lease.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var token string
	if m := regexp.MustCompile(`sim\.Replay\("([^"]*)", program`).FindSubmatch(text); m != nil {
		token = string(m[1])
	}
	f, err := Replay(token, twoLeaders, leaseFaults...)
	if err == nil && f != nil && f.Kind == KindDiverged && *update {
		f, err = Replay(tokenNow(t, token, twoLeaders, leaseFaults...), twoLeaders, leaseFaults...)
	}
	fails := err == nil && f != nil && f.Kind == KindError
	switch {
	case !fails && *update:
		f = found(t, KindError, twoLeaders, leaseFaults...)
	case !fails:
		t.Fatalf("%v, %v", f, err)
	}
	compareGolden(t, path, f.Error())
}
