package metrics

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// fake is a source with the contents that a test sets.
type fake struct {
	stats coir.Stats
	s     snapshot.Snapshot
}

func (f *fake) Stats() coir.Stats { return f.stats }

func (f *fake) Snapshot(o snapshot.Options) *snapshot.Snapshot {
	s := f.s
	s.Fibers = nil
	for i := range f.s.Fibers {
		one := f.s.Fibers[i]
		one.Wait = slices.Clone(one.Wait)
		if !o.Each(&one) {
			break
		}
		clear(one.Wait) // the caller must not keep the slice or the pointer
		one = snapshot.Fiber{}
	}
	return &s
}

// series returns the samples by metric and labels, such as coir_fibers{waiting}.
func series(t *testing.T, samples []Sample) map[string]float64 {
	t.Helper()
	all := make(map[string]float64, len(samples))
	for _, s := range samples {
		name := s.Name
		if len(s.Labels) > 0 {
			name += "{" + strings.Join(s.Labels, ",") + "}"
		}
		if _, ok := all[name]; ok {
			t.Errorf("%s is there twice", name)
		}
		all[name] = s.Value
	}
	return all
}

// again returns the numbers of a new scrape.
func (c *Collector) again(t *testing.T) map[string]float64 {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = c.scrape()
	return series(t, c.samples)
}

// Names, units and kinds follow the rules of Prometheus.
func TestMetricsAreWellFormed(t *testing.T) {
	name, help := regexp.MustCompile(`^coir(_[a-z]+)+$`), regexp.MustCompile(`^[A-Z][^\n]*\.$`)
	seen := map[string]bool{}
	for m := range All() {
		if !name.MatchString(m.Name) || seen[m.Name] {
			t.Errorf("%s is no name for a metric, or is there twice", m.Name)
		}
		seen[m.Name] = true
		if strings.HasSuffix(m.Name, "_total") != (m.Kind == KindCounter) {
			t.Errorf("%s is a %s: a counter, and nothing else, ends in _total", m.Name, m.Kind)
		}
		if strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds") != (m.Unit == "s") {
			t.Errorf("%s has the unit %s", m.Name, m.Unit)
		}
		if !regexp.MustCompile(`^(s|\{[a-z]+\})$`).MatchString(m.Unit) {
			t.Errorf("%s has the unit %s: write s, or what is counted in braces", m.Name, m.Unit)
		}
		if !help.MatchString(m.Help) {
			t.Errorf("%s: the help %q is not a sentence", m.Name, m.Help)
		}
		for _, l := range m.Labels {
			if !slices.Contains([]string{"name", "kind", "state", "certainty"}, l) {
				t.Errorf("%s has the label %s", m.Name, l)
			}
		}
	}
}

// All yields copies.
func TestMetricsCannotBeChanged(t *testing.T) {
	for m := range All() {
		for i := range m.Labels {
			m.Labels[i] = "changed"
		}
	}
	for m := range All() {
		if slices.Contains(m.Labels, "changed") {
			t.Errorf("the labels of %s were changed", m.Name)
		}
	}
}

// Each number of Stats is in a metric of its own.
func TestEveryNumberOfStatsIsExported(t *testing.T) {
	none := newCollector(&fake{}).again(t)
	for i := range reflect.TypeFor[coir.Stats]().NumField() {
		field := reflect.TypeFor[coir.Stats]().Field(i).Name
		if field == "Workers" { // the sum of the four fields after it
			continue
		}
		f := &fake{}
		v := reflect.ValueOf(&f.stats).Elem().Field(i)
		if v.CanInt() {
			v.SetInt(7e9)
		} else {
			v.SetUint(7e9)
		}
		changed := 0
		for name, value := range newCollector(f).again(t) {
			if name != "coir_scrape_duration_seconds" && name != "coir_fibers_live" && value != none[name] {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%s is in %d metrics, not in one", field, changed)
		}
	}
}

var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)

func ago(seconds int) time.Time { return noon.Add(-time.Duration(seconds) * time.Second) }

// waiter returns a fiber that has waited for the given number of seconds.
func waiter(id uint64, seconds int, kinds ...snapshot.WaitKind) snapshot.Fiber {
	f := snapshot.Fiber{ID: id, Nursery: 1, State: snapshot.StateWaiting, Since: ago(seconds)}
	for _, k := range kinds {
		f.Wait = append(f.Wait, snapshot.Wait{Kind: k})
	}
	return f
}

// A scrape has these numbers, each once.
func TestSamples(t *testing.T) {
	f := &fake{
		stats: coir.Stats{
			Workers: 10, Active: 1, Idle: 2, Blocked: 3, Held: 4, Runnable: 5, Spawned: 60, Ended: 50, Woken: 7,
			OnGoroutine: 8, Late: 9, Switches: 10, Stolen: 11, Overflows: 12, Coroutines: 13, IdleCoroutines: 14,
			Blocks: 15, Replaced: 16, Started: 17, Retired: 18, AtCap: 19, Pressed: 20, Stalls: 21,
			Slept: 2500 * time.Millisecond,
		},
		s: snapshot.Snapshot{
			Taken: noon,
			Fibers: []snapshot.Fiber{
				{ID: 1, State: snapshot.StateRunning}, {ID: 2, State: snapshot.StateReady}, {ID: 3, State: snapshot.StatePending},
				{ID: 4, State: snapshot.StateBlocking}, {ID: 5, State: snapshot.StateOutside},
				waiter(6, 3, snapshot.WaitSend), waiter(7, 9, snapshot.WaitSend), waiter(8, 4, snapshot.WaitSend, snapshot.WaitSleep),
				waiter(9, 1), {ID: 10, State: snapshot.StateWaiting, Wait: []snapshot.Wait{{Kind: snapshot.WaitSleep}}},
				waiter(11, -1, snapshot.WaitJoin), // started after the snapshot
				{ID: snapshot.FirstGoroutine + 1, State: snapshot.StateGoroutine, Wait: []snapshot.Wait{{Kind: snapshot.WaitSend}}},
			},
			Nurseries: []snapshot.Nursery{{ID: 1}, {ID: 2, Ended: true}, {ID: 3}},
			Objects: []snapshot.Object{
				{ID: 1, Kind: "channel", Name: "orders", Len: 3, Cap: 4, Sent: 10, Received: 7, Dropped: 1, Senders: 2,
					Oldest: ago(9)},
				{ID: 2, Kind: "channel", Name: "orders", Len: 1, Cap: 2, Sent: 5, Received: 4, Receivers: 1, Oldest: ago(2)},
				{ID: 3, Kind: "channel", Name: "any", Cap: -1, Receivers: 3, Oldest: ago(1)},
				{ID: 4, Kind: "channel", Receivers: 1},
				{ID: 5, Kind: "mutex", Name: "scales", Waiters: 2, Oldest: ago(5), GaveUp: 7},
				{ID: 6, Kind: "event", Waiters: 1}, {ID: 7, Kind: "event", Waiters: 1, Oldest: ago(6)},
				{ID: 8, Kind: "pool", Name: "connections", Len: 4, Cap: 4, Receivers: 12, Oldest: ago(8)},
				{ID: 9, Kind: "subscription", Name: "news", Cap: 4, Receivers: 3, Oldest: ago(7)},
				{ID: 10, Kind: "pool", Name: "connections", Len: 1, Cap: 4}, {ID: 11, Kind: "desk", Name: "calls", Len: 6, Cap: -1},
				{ID: 12, Kind: "supervisor", Name: "app", Receivers: 1, Restarts: 3},
			},
		},
	}
	got := newCollector(f).again(t)
	delete(got, "coir_scrape_duration_seconds")
	want := map[string]float64{
		"coir_fibers_live": 10, "coir_fibers_spawned_total": 60, "coir_fibers_ended_total": 50,
		"coir_fibers_on_goroutine": 8, "coir_fibers_queued": 5, "coir_fibers_omitted": 0,
		"coir_fibers{pending}": 1, "coir_fibers{ready}": 1, "coir_fibers{running}": 1, "coir_fibers{blocking}": 1,
		"coir_fibers{waiting}": 6, "coir_fibers{outside}": 1,

		"coir_goroutines_waiting": 1,

		"coir_waits{send}": 2, "coir_waits{recv}": 0, "coir_waits{sleep}": 1, "coir_waits{end}": 0,
		"coir_waits{join}": 1, "coir_waits{place}": 0, "coir_waits{cancel}": 0, "coir_waits{use}": 1,
		"coir_waits{select}":             1,
		"coir_wait_oldest_seconds{send}": 9, "coir_wait_oldest_seconds{recv}": 0, "coir_wait_oldest_seconds{sleep}": 0,
		"coir_wait_oldest_seconds{end}": 0, "coir_wait_oldest_seconds{join}": 0, "coir_wait_oldest_seconds{place}": 0,
		"coir_wait_oldest_seconds{cancel}": 0, "coir_wait_oldest_seconds{use}": 1, "coir_wait_oldest_seconds{select}": 4,
		"coir_wakes_total": 7, "coir_wakes_late_total": 9,

		"coir_switches_total": 10, "coir_steals_total": 11, "coir_queue_overflows_total": 12,
		"coir_coroutines_made_total": 13, "coir_coroutines_idle": 14,
		"coir_workers{active}": 1, "coir_workers{idle}": 2, "coir_workers{blocked}": 3, "coir_workers{held}": 4,
		"coir_workers_started_total": 17, "coir_workers_retired_total": 18, "coir_workers_replaced_total": 16,
		"coir_workers_capped_total": 19, "coir_workers_short_total": 20, "coir_workers_slept_seconds_total": 2.5,
		"coir_blocking_calls_total": 15, "coir_stalls_total": 21,
		"coir_nurseries{open}": 2, "coir_nurseries{cancelled}": 1,

		"coir_channel_length{orders}": 4, "coir_channel_capacity{orders}": 6, "coir_channel_sent_total{orders}": 15,
		"coir_channel_received_total{orders}": 11, "coir_channel_dropped_total{orders}": 1,
		"coir_channel_senders_waiting{orders}": 2, "coir_channel_receivers_waiting{orders}": 1,
		"coir_channel_wait_oldest_seconds{orders}": 9,
		"coir_channel_length{any}":                 0, "coir_channel_sent_total{any}": 0,
		"coir_channel_received_total{any}": 0, "coir_channel_dropped_total{any}": 0,
		"coir_channel_senders_waiting{any}": 0, "coir_channel_receivers_waiting{any}": 3,
		"coir_channel_wait_oldest_seconds{any}": 1,
		"coir_channel_length{unnamed}":          0, "coir_channel_capacity{unnamed}": 0,
		"coir_channel_sent_total{unnamed}": 0, "coir_channel_received_total{unnamed}": 0, "coir_channel_dropped_total{unnamed}": 0,
		"coir_channel_senders_waiting{unnamed}": 0, "coir_channel_receivers_waiting{unnamed}": 1,
		"coir_channel_wait_oldest_seconds{unnamed}": 0,
		"coir_object_waiting{mutex,scales}":         2, "coir_object_wait_oldest_seconds{mutex,scales}": 5,
		"coir_object_waiting{event,unnamed}": 2, "coir_object_wait_oldest_seconds{event,unnamed}": 6,
		"coir_object_waiting{pool,connections}": 12, "coir_object_wait_oldest_seconds{pool,connections}": 8,
		"coir_object_waiting{subscription,news}": 3, "coir_object_wait_oldest_seconds{subscription,news}": 7,
		"coir_object_waiting{desk,calls}": 0, "coir_object_wait_oldest_seconds{desk,calls}": 0,
		"coir_object_waiting{supervisor,app}": 1, "coir_object_wait_oldest_seconds{supervisor,app}": 0,
		"coir_object_gave_up_total{mutex,scales}": 7, "coir_object_gave_up_total{event,unnamed}": 0,
		"coir_object_gave_up_total{pool,connections}": 0, "coir_object_gave_up_total{subscription,news}": 0,
		"coir_object_gave_up_total{desk,calls}": 0, "coir_object_gave_up_total{supervisor,app}": 0,
		"coir_pool_lent{connections}": 5, "coir_pool_capacity{connections}": 8, "coir_desk_open{calls}": 6,
		"coir_supervisor_restarts_total{app}": 3,
		"coir_scrapes_total":                  1,
	}
	for _, e := range explanations {
		want[fmt.Sprintf("coir_explanations{%s,%s}", e.kind, e.certainty)] = 0
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s is %v (%v), not %v", name, v, ok, value)
		}
	}
	for name, value := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is %v, which nothing asks for", name, value)
		}
	}
}

// Every metric has samples with its labels, and the number of samples without a name is within the limit that groups.go
// assumes.
func TestSeriesAreCounted(t *testing.T) {
	f := &fake{s: snapshot.Snapshot{Taken: noon}}
	f.s.Objects = []snapshot.Object{{ID: 1, Kind: "channel"}, {ID: 2, Kind: "mutex"}, {ID: 3, Kind: "remote channel"},
		{ID: 4, Kind: "pool"}, {ID: 5, Kind: "desk"}, {ID: 6, Kind: "supervisor"}}
	c := newCollector(f)
	c.again(t)
	f.s.Taken = noon.Add(time.Second)
	c.again(t)
	series := map[string]int{}
	fixed := 0
	for _, s := range c.samples {
		i := slices.IndexFunc(table, func(r row) bool { return r.Name == s.Name })
		m := table[i]
		if len(s.Labels) != len(m.Labels) {
			t.Errorf("%s has the labels %q, not %q", s.Name, s.Labels, m.Labels)
		}
		series[s.Name]++
		if !slices.Contains(m.Labels, "name") {
			fixed++
		}
	}
	channels, remotes, objects := 0, 0, 0
	own := map[string]int{}
	for m := range All() {
		if series[m.Name] == 0 {
			t.Errorf("%s has no sample", m.Name)
		}
		switch {
		case strings.HasPrefix(m.Name, "coir_remote_"):
			remotes++
		case strings.HasPrefix(m.Name, "coir_channel_"):
			channels++
		case slices.Equal(m.Labels, []string{"name"}):
			kind, _, _ := strings.Cut(strings.TrimPrefix(m.Name, "coir_"), "_")
			own[kind]++
		case slices.Contains(m.Labels, "name"):
			objects++
		}
	}
	if fixed > fixedSeries || channels != channelSeries || remotes != remoteSeries || objects != objectSeries ||
		!maps.Equal(own, ownSeries) {
		t.Errorf("%d series without a name, %d of a channel, %d of a remote one, %d of another object, %v: correct the "+
			"constants in groups.go", fixed, channels, remotes, objects, own)
	}
}

// Each counter of an object is in a metric of objects of some kind.
func TestEveryCounterOfAnObjectIsExported(t *testing.T) {
	field := map[string]string{}
	for f := range reflect.TypeFor[snapshot.Object]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field[name] = f.Name
	}
	for _, counter := range new(snapshot.Object).Counters() {
		changed := false
		for _, kind := range []string{"channel", "remote channel", "mutex", "supervisor"} {
			f := &fake{s: snapshot.Snapshot{Taken: noon, Process: snapshot.Process{PID: 1}}}
			f.s.Objects = []snapshot.Object{{ID: 1, Kind: kind, Name: "orders"}}
			c := newCollector(f)
			before := c.again(t)
			f.s.Taken = f.s.Taken.Add(time.Minute)
			reflect.ValueOf(&f.s.Objects[0]).Elem().FieldByName(field[counter.Name]).SetUint(7e9)
			for name, value := range c.again(t) {
				changed = changed || strings.HasSuffix(name, "orders}") && value-before[name] >= 7e9
			}
		}
		if !changed {
			t.Errorf("no metric has the counter %s", counter.Name)
		}
	}
}

// Remote channels have series of their own, which follow what one snapshot after the other says.
func TestRemoteChannels(t *testing.T) {
	f := &fake{s: snapshot.Snapshot{Taken: noon, Process: snapshot.Process{PID: 1}}}
	f.s.Objects = []snapshot.Object{
		{ID: 1, Kind: "remote channel", Name: "orders", Len: 3, Cap: 10, Sent: 7, Received: 5, Redelivered: 2, Dead: 1},
		{ID: 2, Kind: "remote channel", Name: "orders", Len: 3, Cap: 10, Senders: 2, Receivers: 1, Trouble: "away",
			TroubleSince: noon.Add(-time.Minute)},
		{ID: 3, Kind: "channel", Name: "orders", Cap: 4},
	}
	c := newCollector(f)
	c.again(t)
	f.s.Taken = noon.Add(time.Second)
	f.s.Objects[0].Redelivered, f.s.Objects[0].Dead = 4, 2
	got := c.again(t)
	for name, want := range map[string]float64{
		"coir_remote_length{orders}": 6, "coir_remote_capacity{orders}": 20, "coir_remote_senders_waiting{orders}": 2,
		"coir_remote_receivers_waiting{orders}": 1, "coir_remote_trouble{orders}": 1, "coir_remote_sent_total{orders}": 7,
		"coir_remote_delivered_total{orders}": 5, "coir_remote_redelivered_total{orders}": 4,
		"coir_remote_dead_letters_total{orders}": 2, "coir_channel_capacity{orders}": 4,
		"coir_explanations{trouble,likely}": 1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), not %v", name, v, ok, want)
		}
	}
	if v, ok := got["coir_object_waiting{remote channel,orders}"]; ok {
		t.Errorf("a remote channel is another object too: %v", v)
	}
	f.s.Objects = nil
	got = c.again(t)
	if _, ok := got["coir_remote_length{orders}"]; ok || got["coir_remote_dead_letters_total{orders}"] != 2 ||
		got["coir_remote_trouble{orders}"] != 0 {
		t.Errorf("without the channel: %v", got)
	}
}

// A label is printable, and cut if it is too long.
func TestLabels(t *testing.T) {
	long := strings.Repeat("ab", 1<<19)
	for name, want := range map[string]string{
		"":                          "unnamed",
		"orders":                    "orders",
		"<script>alert(1)</script>": "<script>alert(1)</script>",
		"a\"b\\c":                   "a\"b\\c",
		"a\nb\x00\x1b[2J\x7f":       `a\nb\x00\x1b[2J\x7f`,
		"\xff\xfe\xc3":              `\xff\xfe\xc3`,
		"\u202egnp.exe\u2028":       `\u202egnp.exe\u2028`,
		"größe 大小":                  "größe 大小",
		long:                        long[:mostLabel-3] + "…",
		strings.Repeat("大", 100):    strings.Repeat("大", 41) + "…",
		strings.Repeat("\x00", 100): strings.Repeat(`\x00`, 31) + "…",
	} {
		got := label(name)
		if got != want {
			t.Errorf("the label of %.40q is %q, not %q", name, got, want)
		}
		if len(got) > mostLabel || !utf8.ValidString(got) {
			t.Errorf("the label of %.40q has %d bytes", name, len(got))
		}
	}
	if allocs := testing.AllocsPerRun(10, func() { label("orders") }); allocs != 0 {
		t.Errorf("a plain name allocates %v times", allocs)
	}
}

// The totals of a name include all channels that ever had it, and never decrease, whether or not the channels are in a
// snapshot.
func TestTotalsNeverFall(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	f := &fake{}
	c := newCollector(f)
	type channel struct {
		snapshot.Object
		seen uint64 // Sent, when the channel was last in a snapshot
	}
	var all []*channel
	total, totalNow := 0.0, 0.0
	for id := uint64(1); id < 200; id++ {
		all = append(all, &channel{Object: snapshot.Object{ID: id, Kind: "channel", Name: "jobs"}})
		f.s.Objects, totalNow = nil, 0
		for _, ch := range all[max(0, len(all)-20):] { // the others no longer exist
			ch.Sent += uint64(r.IntN(5))
			if r.IntN(3) == 0 {
				ch.seen = ch.Sent
				f.s.Objects = append(f.s.Objects, ch.Object)
			}
		}
		for _, ch := range all {
			totalNow += float64(ch.seen)
		}
		got := c.again(t)["coir_channel_sent_total{jobs}"]
		if got < total || got != totalNow {
			t.Fatalf("after %v the total is %v, not %v", total, got, totalNow)
		}
		total = got
	}
}

// If there are too many channels, some are undercounted, and none is counted twice.
func TestForgottenChannelsAreNotCountedTwice(t *testing.T) {
	f := &fake{}
	c := newCollector(f)
	channels := func(from, n int) {
		f.s.Objects = nil
		for i := range n {
			f.s.Objects = append(f.s.Objects, snapshot.Object{ID: uint64(from + i), Kind: "channel", Name: "jobs", Sent: 10})
		}
	}
	check := func(want int) {
		t.Helper()
		if got := c.again(t)["coir_channel_sent_total{jobs}"]; got != float64(want) {
			t.Errorf("the total is %v, not %d", got, want)
		}
		if len(c.groups.counted) > mostCounted {
			t.Errorf("the counts of %d channels are kept", len(c.groups.counted))
		}
	}
	channels(1, 6000)
	check(60_000)
	channels(6001, 6000) // there is room for only 4000 of them
	check(100_000)
	channels(6001, 6000) // the first 6000 were forgotten, so there is room for all of these
	check(100_000)
	channels(1, 6000) // the forgotten channels are back
	check(100_000)
	for i := range f.s.Objects {
		f.s.Objects[i].Sent++
	}
	check(100_000 + 4000) // the channels that are known again
	channels(20_000, 1)
	check(100_000 + 4000 + 10)
}

// Tickets named after requests are one group.
func TestTicketsAreOneGroup(t *testing.T) {
	gs := newGroups()
	all := gs.count([]snapshot.Object{
		{ID: 1, Kind: "ticket", Name: "order 1", Waiters: 1}, {ID: 2, Kind: "ticket", Name: "order 2", Waiters: 1},
	}, time.Now())
	if len(all) != 1 || all[0].key != (key{"ticket", "unnamed"}) || all[0].waiting != 2 {
		t.Errorf("two tickets are in %d groups, the first of which is %+v; want one, with 2 waiters", len(all), all[0])
	}
}

// Names get places in the order of appearance, and the numbers of the others are added up. A name for which no fiber
// has waited for ten minutes loses its place to another one.
func TestPlacesOfNames(t *testing.T) {
	gs := newGroups()
	named := func(from, count int) (all []snapshot.Object) {
		for i := range count {
			id := from + i
			all = append(all, snapshot.Object{ID: uint64(id), Kind: "event", Name: "event " + strconv.Itoa(id), Waiters: 1})
		}
		return all
	}
	places := namedSeries / objectSeries
	waiting := func(all []*group, k key) int {
		t.Helper()
		for _, g := range all {
			if g.key == k {
				return g.waiting
			}
		}
		return -1
	}
	rest := key{other, other}
	all := gs.count(named(1, places+5), noon)
	if len(all) != places+1 || waiting(all, rest) != 5 {
		t.Fatalf("%d groups, %d wait in the rest", len(all), waiting(all, rest))
	}
	// All names keep their places when no fiber waits.
	all = gs.count(named(places+1, 5), noon.Add(placeKept-1))
	if len(all) != places+1 || waiting(all, rest) != 5 || waiting(all, key{"event", "event 1"}) != 0 {
		t.Fatalf("%d groups, %d wait in the rest", len(all), waiting(all, rest))
	}
	// After ten minutes the names for which fibers wait get the places.
	all = gs.count(named(places+1, 5), noon.Add(placeKept))
	if len(all) != 6 || waiting(all, rest) != 0 || gs.series != 5*objectSeries {
		t.Fatalf("%d groups, %d wait in the rest", len(all), waiting(all, rest))
	}
	// No place is lost while there is room.
	all = gs.count(named(1, 1), noon.Add(24*time.Hour))
	if len(all) != 7 {
		t.Fatalf("%d groups", len(all))
	}
}

// An object with the name other belongs to the rest.
func TestObjectsCalledOther(t *testing.T) {
	f := &fake{s: snapshot.Snapshot{Taken: noon}}
	for i := range 1200 {
		f.s.Objects = append(f.s.Objects, snapshot.Object{
			ID: uint64(i + 1), Kind: "channel", Name: "c" + strconv.Itoa(i), Senders: 1, Len: 2, Cap: 2, Sent: 3,
		})
	}
	f.s.Objects = append(f.s.Objects,
		snapshot.Object{ID: 2001, Kind: "channel", Name: "other", Senders: 1, Len: 2, Cap: 2, Sent: 3},
		snapshot.Object{ID: 2002, Kind: "other", Name: "other", Waiters: 1},
		snapshot.Object{ID: 2003, Kind: "mutex", Name: "other", Waiters: 1},
	)
	c := newCollector(f)
	got := c.again(t)
	places := namedSeries / channelSeries
	if v := got["coir_channel_length{other}"]; v != float64(2*(1201-places)) {
		t.Errorf("%v values are in the others, not %d", v, 2*(1201-places))
	}
	sum := map[string]float64{}
	for _, s := range c.samples {
		sum[s.Name] += s.Value
	}
	for name, want := range map[string]float64{
		"coir_channel_length": 2402, "coir_channel_capacity": 2402, "coir_channel_sent_total": 3603,
		"coir_channel_senders_waiting": 1201, "coir_object_waiting": 2,
	} {
		if sum[name] != want {
			t.Errorf("the sum of %s is %v, not %v", name, sum[name], want)
		}
	}
	if len(c.samples) > mostSeries {
		t.Errorf("%d series", len(c.samples))
	}
}

// A scrape reads a bounded number of fibers, and keeps fewer.
func TestFibersAreBounded(t *testing.T) {
	f := &fake{s: snapshot.Snapshot{Taken: noon}}
	long := strings.Repeat("x", 1<<20)
	for id := uint64(1); id <= mostFibers+5; id++ {
		one := waiter(id, 1, snapshot.WaitSend)
		one.Wait[0].Object, one.Wait[0].Text, one.Name, one.Nursery = id, long, long, id
		f.s.Fibers = append(f.s.Fibers, one)
		f.s.Objects = append(f.s.Objects, snapshot.Object{ID: id, Kind: "channel", Name: long, Senders: 1})
		f.s.Nurseries = append(f.s.Nurseries, snapshot.Nursery{ID: id, Cause: long})
	}
	f.stats.Spawned = mostFibers + 7
	c := newCollector(f)
	got := c.again(t)
	if got["coir_fibers{waiting}"] != mostFibers || got["coir_fibers_omitted"] != 7 {
		t.Errorf("%v fibers wait, %v were omitted", got["coir_fibers{waiting}"], got["coir_fibers_omitted"])
	}
	s := c.last.s
	if len(s.Fibers) != mostKept || len(s.Objects) != mostKept || len(s.Nurseries) != mostKept ||
		s.Omitted != mostFibers+7-mostKept {
		t.Errorf("%d fibers, %d objects and %d nurseries are kept, %d are omitted",
			len(s.Fibers), len(s.Objects), len(s.Nurseries), s.Omitted)
	}
	bytes := 0
	for i := range s.Fibers {
		bytes += len(s.Fibers[i].Name) + len(s.Fibers[i].Wait[0].Text)
		bytes += len(s.Objects[i].Name) + len(s.Nurseries[i].Cause)
	}
	if bytes > 2*keptName*mostKept {
		t.Errorf("names of %d bytes are kept", bytes)
	}
}

// A select with many cases does not make the kept snapshot large.
func TestWaitsAreBounded(t *testing.T) {
	f := &fake{s: snapshot.Snapshot{Taken: noon}}
	kinds := slices.Repeat([]snapshot.WaitKind{snapshot.WaitRecv}, 64)
	for id := uint64(1); id <= mostKept; id++ {
		f.s.Fibers = append(f.s.Fibers, waiter(id, 1, kinds...))
	}
	c := newCollector(f)
	c.again(t)
	if n := len(c.last.waits); n > mostKeptWaits {
		t.Errorf("%d waits are kept", n)
	}
	if c.last.s.Omitted != mostKept-len(c.last.s.Fibers) {
		t.Errorf("%d fibers are kept, and %d omitted", len(c.last.s.Fibers), c.last.s.Omitted)
	}
}
