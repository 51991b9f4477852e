package metrics

import (
	"iter"
	"slices"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// Metric describes a metric.
type Metric struct {
	Name   string // in Prometheus style: ends with the unit, and with _total for a counter
	Kind   Kind
	Unit   string // in OpenTelemetry style: s for seconds, or the counted thing in braces
	Help   string
	Labels []string
}

// Kind is the kind of a metric.
type Kind string

// The kinds of metrics. Prometheus calls the last two gauges.
const (
	KindCounter Kind = "counter"         // only increases
	KindUpDown  Kind = "up-down counter" // a number of things, which can be added to those of other series
	KindGauge   Kind = "gauge"           // any other value, such as an age
)

// Sample is the value of one series of a metric.
type Sample struct {
	Name   string   // of the metric
	Labels []string // the values of its labels, in the order of [Metric.Labels]
	Value  float64
}

// All returns an iterator over all metrics.
func All() iter.Seq[Metric] {
	return func(yield func(Metric) bool) {
		for i := range table {
			m := table[i].Metric
			m.Labels = slices.Clone(m.Labels)
			if !yield(m) {
				return
			}
		}
	}
}

// row is a metric with the function that reads it: read calls add for each series.
type row struct {
	Metric
	read reader
}

type (
	reader func(v *view, add adder)
	adder  func(value float64, labels ...string)
)

// table has every metric once. If the series of a metric depend on the names of objects, the metric is read from a
// group: see groups.go.
var table = []row{
	{Metric{"coir_fibers_live", KindUpDown, "{fiber}",
		"Fibers that were spawned and have not ended.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Spawned - min(s.Spawned, s.Ended) })},
	{Metric{"coir_fibers_spawned_total", KindCounter, "{fiber}",
		"Fibers started.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Spawned })},
	{Metric{"coir_fibers_ended_total", KindCounter, "{fiber}",
		"Fibers ended.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Ended })},
	{Metric{"coir_fibers_on_goroutine", KindUpDown, "{fiber}",
		"Fibers that run on goroutines of their own.", nil},
		stat(func(s *coir.Stats) int { return s.OnGoroutine })},
	{Metric{"coir_fibers_queued", KindUpDown, "{fiber}",
		"Fibers in queues, which can run and wait for a worker.", nil},
		stat(func(s *coir.Stats) int { return s.Runnable })},
	{Metric{"coir_fibers", KindUpDown, "{fiber}",
		"Fibers by state.", []string{"state"}},
		func(v *view, add adder) {
			for _, state := range states {
				add(float64(v.states[state]), string(state))
			}
		}},
	{Metric{"coir_fibers_omitted", KindUpDown, "{fiber}",
		"Fibers that the scrape did not look at, because there were too many.", nil},
		func(v *view, add adder) { add(float64(v.omitted)) }},

	{Metric{"coir_goroutines_waiting", KindUpDown, "{goroutine}",
		"Goroutines that are not fibers, and wait for an object of coir.", nil},
		func(v *view, add adder) { add(float64(v.goroutines)) }},

	{Metric{"coir_waits", KindUpDown, "{fiber}",
		"Waiting fibers, by kind of wait: select waits for any one of several things.", []string{"kind"}},
		func(v *view, add adder) {
			for _, kind := range waits {
				add(float64(v.waits[kind].n), string(kind))
			}
		}},
	{Metric{"coir_wait_oldest_seconds", KindGauge, "s",
		"Age of the oldest wait, by kind of wait; 0 if no fiber waits.", []string{"kind"}},
		func(v *view, add adder) {
			for _, kind := range waits {
				add(v.age(v.waits[kind].oldest), string(kind))
			}
		}},
	{Metric{"coir_wakes_total", KindCounter, "{wait}",
		"Waits ended after the fiber had parked.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Woken })},
	{Metric{"coir_wakes_late_total", KindCounter, "{wake}",
		"Wakes, cancels and timeouts that came after the wait had ended.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Late })},

	{Metric{"coir_switches_total", KindCounter, "{switch}",
		"Switches between fibers.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Switches })},
	{Metric{"coir_steals_total", KindCounter, "{fiber}",
		"Fibers that a worker took from another worker.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Stolen })},
	{Metric{"coir_queue_overflows_total", KindCounter, "{overflow}",
		"Times that a worker's queue was full and half of it moved to the shared queue.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Overflows })},
	{Metric{"coir_coroutines_made_total", KindCounter, "{coroutine}",
		"Coroutines made. Fibers run on them, one after the other.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Coroutines })},
	{Metric{"coir_coroutines_idle", KindUpDown, "{coroutine}",
		"Coroutines in the shared pool.", nil},
		stat(func(s *coir.Stats) int { return s.IdleCoroutines })},

	{Metric{"coir_workers", KindUpDown, "{worker}",
		"Workers by state: blocked in a call of Blocking, or held up in native code outside of Blocking.", []string{"state"}},
		func(v *view, add adder) {
			add(float64(v.stats.Active), "active")
			add(float64(v.stats.Idle), "idle")
			add(float64(v.stats.Blocked), "blocked")
			add(float64(v.stats.Held), "held")
		}},
	{Metric{"coir_workers_started_total", KindCounter, "{worker}",
		"Workers started.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Started })},
	{Metric{"coir_workers_retired_total", KindCounter, "{worker}",
		"Workers ended.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Retired })},
	{Metric{"coir_workers_replaced_total", KindCounter, "{worker}",
		"Workers that were found held up in native code and replaced.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Replaced })},
	{Metric{"coir_workers_capped_total", KindCounter, "{time}",
		"Times that WithMaxWorkers prevented the start of a worker.", nil},
		stat(func(s *coir.Stats) uint64 { return s.AtCap })},
	{Metric{"coir_workers_short_total", KindCounter, "{time}",
		"Times that the monitor found fibers waiting for a worker.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Pressed })},
	{Metric{"coir_workers_slept_seconds_total", KindCounter, "s",
		"Time that idle workers slept.", nil},
		func(v *view, add adder) { add(v.stats.Slept.Seconds()) }},
	{Metric{"coir_blocking_calls_total", KindCounter, "{call}",
		"Calls of Blocking.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Blocks })},
	{Metric{"coir_stalls_total", KindCounter, "{fiber}",
		"Fibers found running past the stall threshold.", nil},
		stat(func(s *coir.Stats) uint64 { return s.Stalls })},

	{Metric{"coir_nurseries", KindUpDown, "{nursery}",
		"Nurseries that have not ended: cancelled if their context has ended, otherwise open.", []string{"state"}},
		func(v *view, add adder) {
			add(float64(v.open), "open")
			add(float64(v.cancelled), "cancelled")
		}},
	{Metric{"coir_explanations", KindUpDown, "{explanation}",
		"Problems that package snapshot explains.",
		[]string{"kind", "certainty"}},
		readExplanations},

	{Metric{"coir_channel_length", KindUpDown, "{value}",
		"Values in the channels with this name; missing while nothing waits for such a channel.", []string{"name"}},
		channel(func(_ *view, g *group) (float64, bool) { return float64(g.length), g.objects > 0 })},
	{Metric{"coir_channel_capacity", KindUpDown, "{value}",
		"Values that these channels can hold; also missing if one of them is unbounded.", []string{"name"}},
		channel(func(_ *view, g *group) (float64, bool) { return float64(g.capacity), g.objects > 0 && !g.unbounded })},
	{Metric{"coir_channel_sent_total", KindCounter, "{value}",
		"Values sent to the channels with this name, as of the last wait for such a channel.", []string{"name"}},
		channelTotal("sent")},
	{Metric{"coir_channel_received_total", KindCounter, "{value}",
		"Values received from the channels with this name, as of the last wait for such a channel.", []string{"name"}},
		channelTotal("received")},
	{Metric{"coir_channel_dropped_total", KindCounter, "{value}",
		"Values sent to the channels with this name that will not be delivered, as of the last wait for such a channel.",
		[]string{"name"}},
		channelTotal("dropped")},
	{Metric{"coir_channel_senders_waiting", KindUpDown, "{fiber}",
		"Fibers and goroutines that wait to send to a channel with this name.", []string{"name"}},
		channel(func(_ *view, g *group) (float64, bool) { return float64(g.senders), true })},
	{Metric{"coir_channel_receivers_waiting", KindUpDown, "{fiber}",
		"Fibers and goroutines that wait to receive from a channel with this name.", []string{"name"}},
		channel(func(_ *view, g *group) (float64, bool) { return float64(g.receivers), true })},
	{Metric{"coir_channel_wait_oldest_seconds", KindGauge, "s",
		"Age of the oldest wait for a channel with this name; 0 if nothing waits.", []string{"name"}},
		channel(func(v *view, g *group) (float64, bool) { return v.age(g.oldest), true })},
	{Metric{"coir_remote_length", KindUpDown, "{value}",
		"Values in the remote channels with this name, as of the last answer of the broker; missing while no snapshot has one.",
		[]string{"name"}},
		remote(func(g *group) (int, bool) { return g.length, g.objects > 0 })},
	{Metric{"coir_remote_capacity", KindUpDown, "{value}",
		"Values that these remote channels can hold.", []string{"name"}},
		remote(func(g *group) (int, bool) { return g.capacity, g.objects > 0 })},
	{Metric{"coir_remote_senders_waiting", KindUpDown, "{fiber}",
		"Fibers and goroutines that wait to send on a remote channel with this name, which is full, or whose broker is away.",
		[]string{"name"}},
		remote(func(g *group) (int, bool) { return g.senders, true })},
	{Metric{"coir_remote_receivers_waiting", KindUpDown, "{fiber}",
		"Fibers and goroutines that wait to receive from a remote channel with this name.", []string{"name"}},
		remote(func(g *group) (int, bool) { return g.receivers, true })},
	{Metric{"coir_remote_trouble", KindUpDown, "{channel}",
		"Remote channels with this name that have trouble, such as a broker that is away: 0 if all is well.", []string{"name"}},
		remote(func(g *group) (int, bool) { return g.troubled, true })},
	{Metric{"coir_remote_sent_total", KindCounter, "{value}",
		"Values that this process has sent on the remote channels with this name.", []string{"name"}},
		remoteTotal("sent")},
	{Metric{"coir_remote_delivered_total", KindCounter, "{value}",
		"Deliveries to this process from the remote channels with this name.", []string{"name"}},
		remoteTotal("received")},
	{Metric{"coir_remote_redelivered_total", KindCounter, "{value}",
		"Deliveries to this process of values that had been delivered before, to any process.", []string{"name"}},
		remoteTotal("redelivered")},
	{Metric{"coir_remote_dead_letters_total", KindCounter, "{value}",
		"Values of the remote channels with this name that this process has made dead letters.", []string{"name"}},
		remoteTotal("dead")},

	{Metric{"coir_pool_lent", KindUpDown, "{value}",
		"Values that the pools with this name have lent; missing while no snapshot has such a pool.", []string{"name"}},
		ofKind(poolKind, func(g *group) (int, bool) { return g.length, g.objects > 0 })},
	{Metric{"coir_pool_capacity", KindUpDown, "{value}",
		"Values that these pools can lend.", []string{"name"}},
		ofKind(poolKind, func(g *group) (int, bool) { return g.capacity, g.objects > 0 })},
	{Metric{"coir_desk_open", KindUpDown, "{ticket}",
		"Open tickets of the desks with this name; missing while no snapshot has such a desk, as without ListObjects.",
		[]string{"name"}},
		ofKind(deskKind, func(g *group) (int, bool) { return g.length, g.objects > 0 })},
	{Metric{"coir_supervisor_restarts_total", KindCounter, "{restart}",
		"Restarts of the children of the supervisors with this name.", []string{"name"}},
		totalOfKind(supervisorKind, "restarts")},

	{Metric{"coir_object_waiting", KindUpDown, "{fiber}",
		"Fibers and goroutines that wait for an object other than a channel, such as a mutex or an event.",
		[]string{"kind", "name"}},
		object(func(_ *view, g *group) float64 { return float64(g.senders + g.receivers + g.waiting) })},
	{Metric{"coir_object_wait_oldest_seconds", KindGauge, "s",
		"Age of the oldest wait for such an object; 0 if nothing waits.", []string{"kind", "name"}},
		object(func(v *view, g *group) float64 { return v.age(g.oldest) })},
	{Metric{"coir_object_gave_up_total", KindCounter, "{wait}",
		"Waits for a lock, a semaphore or a similar object that ended without it, as of the last wait for such an object.",
		[]string{"kind", "name"}},
		object(func(_ *view, g *group) float64 { return float64(g.totals[gaveUp]) })},

	{Metric{"coir_scrapes_total", KindCounter, "{scrape}",
		"Scrapes, except those that shared the numbers of another scrape.", nil},
		func(v *view, add adder) { add(float64(v.scrapes)) }},
	{Metric{"coir_scrape_duration_seconds", KindGauge, "s",
		"Time that the scrape took.", nil},
		func(v *view, add adder) { add(time.Since(v.began).Seconds()) }},
}

var states = []snapshot.State{
	snapshot.StatePending, snapshot.StateReady, snapshot.StateRunning, snapshot.StateBlocking,
	snapshot.StateWaiting, snapshot.StateOutside,
}

// choice is the kind of a wait for one of several things.
const choice snapshot.WaitKind = "select"

var waits = []snapshot.WaitKind{
	snapshot.WaitSend, snapshot.WaitRecv, snapshot.WaitSleep, snapshot.WaitEnd, snapshot.WaitJoin, snapshot.WaitPlace,
	snapshot.WaitCancel, snapshot.WaitUse, choice,
}

// explanation has the labels that distinguish the explanations.
type explanation struct {
	kind      snapshot.Problem
	certainty string
}

// explanations has the explanations that every scrape counts, even if there are none: those of all kinds. Others are
// counted only when they occur.
var explanations = allExplanations()

func allExplanations() (all []explanation) {
	for _, kind := range snapshot.Problems() {
		if kind == snapshot.ProblemDeadlock || kind == snapshot.ProblemTrouble {
			all = append(all, explanation{kind, "certain"})
		}
		all = append(all, explanation{kind, "likely"})
	}
	return all
}

func readExplanations(v *view, add adder) {
	for _, e := range explanations {
		add(float64(v.told[e]), string(e.kind), e.certainty)
	}
	for e, n := range v.told {
		if !slices.Contains(explanations, e) {
			add(float64(n), string(e.kind), e.certainty)
		}
	}
}

// stat reads a number of Stats.
func stat[N int | uint64](of func(*coir.Stats) N) reader {
	return func(v *view, add adder) { add(float64(of(&v.stats))) }
}

// channel reads a number of each group of channels: of reports whether the group has the number.
func channel(of func(*view, *group) (float64, bool)) reader {
	return func(v *view, add adder) {
		for _, g := range v.groups {
			if g.kind != channelKind {
				continue
			}
			if n, ok := of(v, g); ok {
				add(n, g.name)
			}
		}
	}
}

// channelTotal reads a total of each group of channels.
func channelTotal(counter string) reader {
	t := totalIndex(counter)
	return channel(func(_ *view, g *group) (float64, bool) { return float64(g.totals[t]), true })
}

// remote reads a number of each group of remote channels.
func remote(of func(*group) (int, bool)) reader { return ofKind(remoteKind, of) }

// ofKind reads a number of each group of objects of a kind.
func ofKind(kind string, of func(*group) (int, bool)) reader {
	return func(v *view, add adder) {
		for _, g := range v.groups {
			if g.kind != kind {
				continue
			}
			if n, ok := of(g); ok {
				add(float64(n), g.name)
			}
		}
	}
}

// remoteTotal reads a total of each group of remote channels.
func remoteTotal(counter string) reader { return totalOfKind(remoteKind, counter) }

// gaveUp is the index of a counter in totals.
var gaveUp = totalIndex("gaveUp")

// totalOfKind reads a total of each group of objects of a kind.
func totalOfKind(kind, counter string) reader {
	t := totalIndex(counter)
	return func(v *view, add adder) {
		for _, g := range v.groups {
			if g.kind == kind {
				add(float64(g.totals[t]), g.name)
			}
		}
	}
}

// object reads a number of each group of other objects.
func object(of func(*view, *group) float64) reader {
	return func(v *view, add adder) {
		for _, g := range v.groups {
			if !g.isChannel() {
				add(of(v, g), g.kind, g.name)
			}
		}
	}
}
