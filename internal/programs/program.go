// Package programs generates programs that use the public API of coir, runs them, and checks their results.
//
// A [Program] is a value: nurseries, fibers and their operations, drawn from a seed. [Exec] runs one and keeps a ledger
// of its operations: which context was cancelled and why, which channel was closed, and the fate of each value. Exec
// checks every result of an operation, and the state at the end of the program, against the ledger.
//
// A program always ends if the library is correct. Many operations wait for a peer that never arrives; the end of the
// program's context, by a deadline or a cancellation, ends them.
package programs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/coir-go/coir"
)

// Program is a generated program.
type Program struct {
	Seed   uint64
	Sim    bool // for a simulation: no goroutines, no real-time deadlines
	Chans  []ChanDecl
	Queues []QueueDecl
	Pools  []PoolDecl
	Root   *Group
	Reaper Reaper
	Off    map[int]bool // the operations to leave out

	contexts, fibers, groups, ops int
}

// ChanDecl is a channel, or a pipe.
type ChanDecl struct {
	Name    string
	Cap     int
	Over    coir.OverflowPolicy
	Pipe    bool
	Handler Handler
}

// Handler is the behaviour of OnUndelivered.
type Handler uint8

// The handlers.
const (
	NoHandler Handler = iota
	Notes             // records the value
	Panics            // records the value, and panics every second time
)

// QueueDecl is an Ordered.
type QueueDecl struct {
	Name    string
	Cap     int
	Handler Handler
}

// PoolDecl is a Pool.
type PoolDecl struct {
	Name    string
	Size    int
	Fails   bool // create fails every third time
	Waits   bool // create waits
	Resets  bool // there is a reset, which fails every third time
	Handler Handler
}

// Reaper ends the program if it does not end by itself.
type Reaper struct {
	How   ReaperKind
	After time.Duration
	Cause Cause
}

// ReaperKind is a way to end the program.
type ReaperKind uint8

// The ways to end a program.
const (
	ByTimeout     ReaperKind = iota // coir.WithTimeout
	ByCancel                        // coir.WithCancelCause
	ByNursery                       // Nursery.Cancel
	ByStdCancel                     // context.WithCancelCause
	ByStdDeadline                   // context.WithTimeoutCause
)

// Group is a nursery, with the call of Run that opens it.
type Group struct {
	N     int // the number of the nursery
	Ctx   int // number of its context
	Limit int
	Body  []*Op
	End   End
	plain bool // no child gives up a place, so that the limit is exact
}

// FiberDecl is a fiber, or a task of an Ordered.
type FiberDecl struct {
	N   int
	Ctx int
	Ops []*Op
	End End
	Own bool // it has coir.WithGoroutine
}

// End is how a function ends.
type End struct {
	How   EndKind
	Panic PanicKind
}

// EndKind is a way in which a function ends.
type EndKind uint8

// The ways to end.
const (
	ReturnNil  EndKind = iota
	ReturnNew          // an error of its own
	ReturnLast         // what the last operation has returned
	ReturnWrapped
	ReturnPanic // a *coir.PanicError, as an error
	ReturnErr   // ctx.Err()
	ReturnCause // context.Cause(ctx)
	Panic
	Goexit
	GoexitPanic // a deferred function panics during a Goexit
)

// PanicKind is the kind of value that a function panics with.
type PanicKind uint8

// The values.
const (
	PanicText PanicKind = iota
	PanicError
	PanicNilPanicError // a nil *coir.PanicError
	PanicOwnPanicError // a *coir.PanicError made by the program
	PanicRuntime
	panicKinds
)

// Cause is the cause of a cancel or an Abort.
type Cause uint8

// The causes.
const (
	CauseNil Cause = iota
	CauseOwn       // an error of its own
	CauseClosed
	CauseTimeout
	CauseDeadline
	CauseCanceled
	CauseWouldBlock
	CauseLast // what the last operation has returned
	causes
)

// Own is the context of the function itself.
const Own = -1

// Op is an operation.
type Op struct {
	N     int
	Kind  Kind
	Ctx   int           // number of its context, or Own
	Obj   int           // number of its channel, queue, pool, fiber, nursery or context
	D     time.Duration // of a sleep, a time limit
	Count int
	Cause Cause
	Scope ScopeKind
	Cases []Case
	Fiber *FiberDecl
	Group *Group
	Ops   []*Op
	Other bool // Run: on another runtime
}

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operations.
const (
	Send Kind = iota
	SendTimeout
	TrySend
	SendMany
	Recv
	RecvTimeout
	TryRecv
	RecvMany
	RecvAll
	Close
	Abort
	CloseWriter
	CloseReader
	Select
	SelectPriority
	TrySelect
	Selector
	Scope
	Cancel
	CancelNursery
	Go
	Run
	Wait
	QueueGo
	QueueRecv
	QueueClose
	QueueAbort
	PoolGet
	PoolTryGet
	PoolPut
	PoolDiscard
	PoolClose
	Sleep
	Yield
	Blocking
	Goroutine
	kinds
)

// ScopeKind is a way to make a context.
type ScopeKind uint8

// The kinds of contexts.
const (
	WithCancel ScopeKind = iota
	WithTimeout
	WithDeadline
	Shield
	StdCancel
	StdValue
	StdTimeout // with a cause
	StdFar     // a deadline of real time that never comes
	scopeKinds
)

// Case is a case of a select.
type Case struct {
	Kind CaseKind
	Obj  int
	D    time.Duration
}

// CaseKind is the kind of a case.
type CaseKind uint8

// The kinds of cases.
const (
	CaseSend CaseKind = iota
	CaseRecv
	CaseAfter
	CaseDone
	CaseGone
	CaseNever
	caseKinds
)

// The times of a program are some microseconds, or as many hours in a simulation. Long is longer than most, and passes
// only in a simulation. Far is a real time that never passes; it is shorter than the times of a simulation.
const (
	Long = 100 * time.Hour
	Far  = time.Hour / 2
)

// kindTable has, for each kind, how often it is drawn relative to the other possible kinds, what errors call it, and
// how a program shows it: $n is the number of its object.
var kindTable = [kinds]struct {
	weight     int
	name, text string
}{
	Send:           {12, "Send", "ch$n.Send($ctx)"},
	SendTimeout:    {5, "SendTimeout", "ch$n.SendTimeout($ctx, $d)"},
	TrySend:        {3, "TrySend", "ch$n.TrySend()"},
	SendMany:       {3, "SendMany", "ch$n.SendMany($ctx, $count values)"},
	Recv:           {12, "Recv", "ch$n.Recv($ctx)"},
	RecvTimeout:    {5, "RecvTimeout", "ch$n.RecvTimeout($ctx, $d)"},
	TryRecv:        {3, "TryRecv", "ch$n.TryRecv()"},
	RecvMany:       {3, "RecvMany", "ch$n.RecvMany($ctx, $count values)"},
	RecvAll:        {2, "All", "for range ch$n.All($ctx) { up to $count times }"},
	Close:          {3, "Close", "ch$n.Close()"},
	Abort:          {2, "Abort", "ch$n.Abort($cause)"},
	CloseWriter:    {3, "Writer.Close", "ch$n: my writer.Close()"},
	CloseReader:    {3, "Reader.Close", "ch$n: my reader.Close()"},
	Select:         {6, "Select", "coir.Select($ctx, $cases)"},
	SelectPriority: {2, "SelectPriority", "coir.SelectPriority($ctx, $cases)"},
	TrySelect:      {2, "TrySelect", "coir.TrySelect($ctx, $cases)"},
	Selector:       {3, "Selector", "selector of $cases: Wait($ctx) $count times"},
	Scope:          {10, "a scope", "ctx$n := "},
	Cancel:         {7, "cancel", "cancel$n($cause)"},
	CancelNursery:  {2, "Nursery.Cancel", "n$n.Cancel($cause)"},
	Go:             {8, "Go", ""},
	Run:            {4, "Run", ""},
	Wait:           {4, "Wait", "f$n.Wait($ctx)"},
	QueueGo:        {7, "Ordered.Go", ""},
	QueueRecv:      {4, "Ordered.Recv", "queue$n.Recv($ctx)"},
	QueueClose:     {2, "Ordered.Close", "queue$n.Close()"},
	QueueAbort:     {1, "Ordered.Abort", "queue$n.Abort($cause)"},
	PoolGet:        {4, "Pool.Get", "pool$n.Get($ctx)"},
	PoolTryGet:     {1, "Pool.TryGet", "pool$n.TryGet()"},
	PoolPut:        {3, "Pool.Put", "pool$n.Put(one that I have)"},
	PoolDiscard:    {1, "Pool.Discard", "pool$n.Discard(one that I have)"},
	PoolClose:      {1, "Pool.Close", "pool$n.Close()"},
	Sleep:          {4, "Sleep", "coir.Sleep($ctx, $d)"},
	Yield:          {2, "Yield", "coir.Yield($ctx)"},
	Blocking:       {1, "Blocking", "coir.Blocking($ctx, $d)"},
	Goroutine:      {2, "a goroutine", ""},
}

func (k Kind) String() string { return kindTable[k].name }

// maker draws a program.
type maker struct {
	r     *rand.Rand
	own   *rand.Rand // decides which children have their own goroutine; separate, so that it changes nothing else
	p     *Program
	slots []int // contexts made by scopes
}

// Generate returns the program of a seed.
func Generate(seed uint64, sim bool) *Program {
	m := &maker{r: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), p: &Program{Seed: seed, Sim: sim}}
	m.own = rand.New(rand.NewPCG(seed, 0xd1342543de82ef95))
	p := m.p
	for i := range 1 + m.r.IntN(4) {
		p.Chans = append(p.Chans, m.channel(i))
	}
	if m.r.IntN(3) == 0 {
		p.Queues = append(p.Queues, QueueDecl{m.name("queue0"), []int{0, 1, 2, coir.Unbounded}[m.r.IntN(4)],
			min(m.handler(), Notes)})
	}
	if m.r.IntN(3) == 0 {
		p.Pools = append(p.Pools, PoolDecl{m.name("pool0"), 1 + m.r.IntN(3), m.r.IntN(3) == 0, m.r.IntN(3) == 0,
			m.r.IntN(3) == 0, m.handler()})
	}
	p.Reaper.How = ReaperKind(m.r.IntN(4))
	if !sim && m.r.IntN(5) == 0 {
		p.Reaper.How = ByStdDeadline
	}
	p.Reaper.After = time.Duration(100+m.r.IntN(400)) * time.Microsecond
	if sim {
		p.Reaper.After = 100 * Long
	}
	p.Reaper.Cause = m.cause()
	if p.Reaper.How == ByNursery && m.r.IntN(2) == 0 {
		p.Reaper.Cause = CauseNil
	}
	p.Root = m.group(0)
	return p
}

func (m *maker) name(s string) string {
	if m.r.IntN(3) == 0 {
		return ""
	}
	return s
}

func (m *maker) handler() Handler {
	switch m.r.IntN(10) {
	case 0:
		return NoHandler
	case 1:
		return Panics
	}
	return Notes
}

func (m *maker) channel(i int) ChanDecl {
	d := ChanDecl{Name: m.name(fmt.Sprintf("ch%d", i)), Handler: m.handler(), Pipe: m.r.IntN(4) == 0}
	switch k := m.r.IntN(8); {
	case k < 3:
	case k < 6:
		d.Cap = 1 + m.r.IntN(3)
	case k < 7:
		d.Cap = coir.Unbounded
	default:
		d.Cap = coir.Conflated
	}
	if d.Cap != coir.Unbounded && d.Cap != coir.Conflated && m.r.IntN(4) == 0 {
		d.Over = coir.OverflowPolicy(m.r.IntN(4))
	}
	return d
}

func (m *maker) group(depth int) *Group {
	g := &Group{N: m.p.groups, Ctx: m.p.contexts}
	m.p.groups++
	m.p.contexts++
	if m.r.IntN(4) == 0 {
		g.Limit = 1 + m.r.IntN(3)
	}
	if depth == 0 { // scopes that most fibers can use
		for range m.r.IntN(3) {
			g.Body = append(g.Body, m.scope())
		}
	}
	for range 1 + m.r.IntN(3) {
		g.Body = append(g.Body, m.fiber(Go, depth))
	}
	g.Body = append(g.Body, m.list(1+m.r.IntN(4), depth)...)
	if g.End = m.end(); depth > 0 && m.r.IntN(6) == 0 {
		g.End = End{How: Goexit}
	}
	g.plain = m.exact(g.Body)
	return g
}

// exact reports whether no child that the operations start gives up a place under its nursery's limit.
func (m *maker) exact(ops []*Op) bool {
	for _, op := range ops {
		switch op.Kind {
		case QueueGo:
			return false
		case Go:
			for _, x := range op.Fiber.Ops {
				switch x.Kind {
				case Run, Wait, QueueGo, QueueRecv, Select, SelectPriority, Selector:
					return false
				}
			}
			if !m.exact(op.Fiber.Ops) {
				return false
			}
		}
	}
	return true
}

func (m *maker) list(n, depth int) []*Op {
	var ops []*Op
	for range n {
		ops = append(ops, m.op(depth, false))
	}
	return ops
}

func (m *maker) op(depth int, goroutine bool) *Op {
	k := m.kind(depth, goroutine)
	op := m.fresh(k)
	op.Ctx = m.context()
	switch k {
	case Send, SendTimeout, TrySend, SendMany, Recv, RecvTimeout, TryRecv, RecvMany, RecvAll,
		Abort, Close, CloseWriter, CloseReader:
		op.Obj = m.r.IntN(len(m.p.Chans))
		op.Count = m.r.IntN(5)
		op.D = m.limit()
		op.Cause = m.cause()
		if pipe := m.p.Chans[op.Obj].Pipe; pipe && k == Close {
			op.Kind = CloseWriter
		} else if pipe && k == Abort {
			op.Kind = CloseReader
		} else if !pipe && k == CloseWriter {
			op.Kind = Close
		} else if !pipe && k == CloseReader {
			op.Kind = Recv
		}
	case Select, SelectPriority, TrySelect, Selector:
		for range 1 + m.r.IntN(4) {
			op.Cases = append(op.Cases, m.selectCase())
		}
		op.Count = 1 + m.r.IntN(4)
	case Scope:
		return m.makeScope(op)
	case Cancel:
		if len(m.slots) == 0 {
			return m.makeScope(op)
		}
		op.Obj = m.slots[m.r.IntN(len(m.slots))]
		op.Cause = m.cause()
	case CancelNursery:
		op.Obj = m.r.IntN(m.p.groups)
		op.Cause = m.cause()
		if m.r.IntN(2) == 0 {
			op.Cause = CauseNil
		}
	case Go:
		return m.fiber(Go, depth)
	case QueueGo:
		return m.fiber(QueueGo, depth)
	case Run:
		op.Group = m.group(depth + 1)
		op.Other = !m.p.Sim && m.r.IntN(3) == 0
	case Wait:
		op.Obj = m.r.IntN(m.p.fibers)
	case QueueAbort:
		op.Cause = m.cause()
	case Sleep:
		op.D = m.time()
	case Blocking:
		op.D = time.Duration(m.r.IntN(20)) * time.Microsecond
	case Goroutine:
		for range 1 + m.r.IntN(4) {
			op.Ops = append(op.Ops, m.op(2, true))
		}
	}
	return op
}

func (m *maker) fresh(k Kind) *Op {
	m.p.ops++
	return &Op{N: m.p.ops, Kind: k, Ctx: Own}
}

func (m *maker) kind(depth int, goroutine bool) Kind {
	for {
		k := m.weighted()
		ok := true
		switch k {
		case Go:
			ok = !goroutine && m.p.fibers < 8
		case Run:
			ok = !goroutine && depth < 2 && m.p.fibers < 6
		case Wait:
			ok = m.p.fibers > 0
		case QueueGo:
			ok = !goroutine && len(m.p.Queues) > 0 && m.p.fibers < 12
		case QueueRecv, QueueClose, QueueAbort:
			ok = len(m.p.Queues) > 0
		case PoolGet, PoolTryGet, PoolPut, PoolDiscard, PoolClose:
			ok = len(m.p.Pools) > 0
		case Goroutine:
			ok = !goroutine && !m.p.Sim
		case Blocking:
			ok = !goroutine
		}
		if ok {
			return k
		}
	}
}

var weightSum = func() (n int) {
	for _, k := range kindTable {
		n += k.weight
	}
	return n
}()

func (m *maker) weighted() Kind {
	x := m.r.IntN(weightSum)
	for k := range kindTable {
		if x -= kindTable[k].weight; x < 0 {
			return Kind(k)
		}
	}
	panic("unreachable")
}

func (m *maker) fiber(k Kind, depth int) *Op {
	op := m.fresh(k)
	op.Ctx = m.context()
	f := &FiberDecl{N: m.p.fibers, Ctx: m.p.contexts}
	m.p.fibers++
	m.p.contexts++
	op.Fiber = f
	if k == QueueGo {
		f.Ops = m.list(m.r.IntN(3), 2)
	} else {
		f.Ops = m.list(2+m.r.IntN(7), depth)
	}
	f.Own = m.own.IntN(4) == 0
	f.End = m.end()
	return op
}

func (m *maker) scope() *Op { return m.makeScope(m.fresh(Scope)) }

func (m *maker) makeScope(op *Op) *Op {
	op.Kind = Scope
	if n := len(m.slots); n > 0 && m.r.IntN(4) == 0 {
		op.Ctx = m.slots[n-1] // make chains of contexts
	}
	op.Scope = ScopeKind(m.r.IntN(int(scopeKinds)))
	if m.p.Sim { // a simulation does not control real time
		switch op.Scope {
		case StdTimeout:
			op.Scope = StdCancel
		case WithDeadline:
			op.Scope = WithTimeout
		}
	}
	op.D = m.limit()
	op.Obj = m.p.contexts
	m.p.contexts++
	m.slots = append(m.slots, op.Obj)
	return op
}

// context draws the context of an operation: usually the function's own.
func (m *maker) context() int {
	if m.r.IntN(2) == 0 {
		return Own
	}
	if len(m.slots) > 0 && m.r.IntN(4) != 0 {
		return m.slots[m.r.IntN(len(m.slots))]
	}
	return m.r.IntN(m.p.contexts)
}

func (m *maker) cause() Cause {
	switch m.r.IntN(3) {
	case 0:
		return CauseNil
	case 1:
		return CauseOwn
	}
	return Cause(m.r.IntN(int(causes)))
}

func (m *maker) time() time.Duration {
	unit := time.Microsecond
	if m.p.Sim {
		unit = time.Hour
	}
	return []time.Duration{0, 1, 5, 20, 50, 99}[m.r.IntN(6)] * unit
}

// limit draws a time limit.
func (m *maker) limit() time.Duration {
	if m.r.IntN(4) == 0 {
		return Long + time.Duration(m.r.IntN(1000))*time.Minute
	}
	return m.time()
}

func (m *maker) selectCase() Case {
	c := Case{Kind: CaseKind(m.r.IntN(int(caseKinds))), D: m.limit()}
	if m.r.IntN(2) == 0 {
		c.Kind = CaseKind(m.r.IntN(2))
	}
	switch c.Kind {
	case CaseDone:
		if m.p.fibers == 0 {
			return Case{Kind: CaseNever}
		}
		c.Obj = m.r.IntN(m.p.fibers)
	case CaseAfter, CaseNever:
	default:
		c.Obj = m.r.IntN(len(m.p.Chans))
		if c.Kind == CaseGone && !m.p.Chans[c.Obj].Pipe {
			c.Kind = CaseRecv
		}
	}
	return c
}

func (m *maker) end() End {
	switch k := m.r.IntN(24); {
	case k < 11:
		return End{How: ReturnNil}
	case k < 13:
		return End{How: ReturnNew}
	case k < 17:
		return End{How: ReturnLast}
	case k < 18:
		return End{How: []EndKind{ReturnWrapped, ReturnPanic}[m.r.IntN(2)]}
	case k < 19:
		return End{How: ReturnErr}
	case k < 20:
		return End{How: ReturnCause}
	case k < 22:
		return End{How: Panic, Panic: PanicKind(m.r.IntN(int(panicKinds)))}
	}
	if m.r.IntN(3) == 0 {
		return End{How: GoexitPanic}
	}
	return End{How: Goexit}
}

// String returns the program as Go-like source.
func (p *Program) String() string {
	var b printer
	b.p = p
	for i, c := range p.Chans {
		made := "NewChan"
		if c.Pipe {
			made = "Pipe"
		}
		b.line(0, "ch%d := coir.%s(%s%s%s%s)", i, made, capText(c.Cap), optional(", WithName(%q)", c.Name), overText(c.Over),
			c.Handler.text())
	}
	for i, q := range p.Queues {
		b.line(0, "queue%d := coir.NewOrdered(%s%s%s)", i, capText(q.Cap), optional(", WithName(%q)", q.Name),
			q.Handler.text())
	}
	for i, d := range p.Pools {
		b.line(0, "pool%d := coir.NewPool(%d%s%s) // create waits: %v, fails at times: %v; reset fails at times: %v",
			i, d.Size, optional(", WithName(%q)", d.Name), d.Handler.text(), d.Waits, d.Fails, d.Resets)
	}
	b.line(0, "// after %v the program is ended by %s, for %s", p.Reaper.After, p.Reaper.How.text(), p.Reaper.Cause.text())
	b.group(0, "context", p.Root)
	return b.String()
}

type printer struct {
	strings.Builder
	p *Program
}

func (b *printer) line(depth int, format string, args ...any) {
	b.WriteString(strings.Repeat("\t", depth))
	fmt.Fprintf(b, format, args...)
	b.WriteByte('\n')
}

func (b *printer) group(depth int, ctx string, g *Group) {
	b.line(depth, "coir.Run(%s, func(ctx%d, n%d) error {", ctx, g.Ctx, g.N)
	if g.Limit > 0 {
		b.line(depth+1, "n%d.Limit(%d)", g.N, g.Limit)
	}
	b.ops(depth+1, fmt.Sprintf("ctx%d", g.Ctx), g.N, g.Body)
	b.line(depth+1, "%s", g.End.text(g.Ctx))
	b.line(depth, "})")
}

func (b *printer) ops(depth int, own string, n int, ops []*Op) {
	for _, op := range ops {
		if !b.p.Off[op.N] {
			b.op(depth, own, n, op)
		}
	}
}

func (b *printer) op(depth int, own string, n int, op *Op) {
	ctx := own
	if op.Ctx != Own {
		ctx = fmt.Sprintf("ctx%d", op.Ctx)
	}
	switch op.Kind {
	case Run:
		if op.Other {
			b.line(depth, "// on another runtime:")
		}
		b.group(depth, ctx, op.Group)
		return
	case Go, QueueGo:
		f := op.Fiber
		if op.Kind == Go {
			b.line(depth, "f%d := n%d.Go(\"f%d\", func(ctx%d) error {", f.N, n, f.N, f.Ctx)
		} else {
			b.line(depth, "queue%d.Go(%s, n%d, \"f%d\", func(ctx%d) (int, error) {", op.Obj, ctx, n, f.N, f.Ctx)
		}
		b.ops(depth+1, fmt.Sprintf("ctx%d", f.Ctx), n, f.Ops)
		b.line(depth+1, "%s", f.End.text(f.Ctx))
		b.line(depth, "}%s) // %d", map[bool]string{true: ", coir.WithGoroutine()"}[f.Own], op.N)
		return
	case Goroutine:
		b.line(depth, "go func() {")
		b.ops(depth+1, own, n, op.Ops)
		b.line(depth, "}() // %d", op.N)
		return
	}
	b.line(depth, "%s // %d", op.text(ctx), op.N)
}

// text returns the operation as a line.
func (op *Op) text(ctx string) string {
	text := kindTable[op.Kind].text
	if op.Kind == Scope {
		text += scopeTexts[op.Scope]
	}
	var cases []string
	for _, c := range op.Cases {
		cases = append(cases, replace(caseTexts[c.Kind], "$n", c.Obj, "$d", c.D))
	}
	return replace(text, "$ctx", ctx, "$n", op.Obj, "$d", op.D, "$count", op.Count, "$cause", op.Cause.text(),
		"$cases", strings.Join(cases, ", "))
}

// replace replaces names by values in a text.
func replace(text string, pairs ...any) string {
	texts := make([]string, len(pairs))
	for i, v := range pairs {
		texts[i] = fmt.Sprint(v)
	}
	return strings.NewReplacer(texts...).Replace(text)
}

var scopeTexts = [scopeKinds]string{
	WithCancel:   "coir.WithCancelCause($ctx)",
	WithTimeout:  "coir.WithTimeout($ctx, $d)",
	WithDeadline: "coir.WithDeadline($ctx, now+$d)",
	Shield:       "coir.Shield($ctx)",
	StdCancel:    "context.WithCancelCause($ctx)",
	StdValue:     "context.WithValue($ctx)",
	StdTimeout:   "context.WithTimeoutCause($ctx, $d, an error)",
	StdFar:       "context.WithTimeout($ctx, " + Far.String() + ")",
}

var caseTexts = [caseKinds]string{
	CaseSend:  "ch$n.SendCase",
	CaseRecv:  "ch$n.RecvCase",
	CaseAfter: "After($d)",
	CaseDone:  "f$n.DoneCase",
	CaseGone:  "ch$n: my writer.GoneCase",
	CaseNever: "never",
}

func (k ReaperKind) text() string {
	return [...]string{"coir.WithTimeout", "coir.WithCancelCause", "Nursery.Cancel", "context.WithCancelCause",
		"context.WithTimeoutCause"}[k]
}

func (c Cause) text() string {
	return [...]string{"nil", "an error", "ErrClosed", "ErrTimeout", "context.DeadlineExceeded", "context.Canceled",
		"ErrWouldBlock", "the last error"}[c]
}

func (h Handler) text() string {
	return [...]string{"", ", OnUndelivered(note)", ", OnUndelivered(note and panic)"}[h]
}

var endTexts = map[EndKind]string{
	ReturnNil:     "return nil",
	ReturnNew:     "return an error",
	ReturnLast:    "return the last error",
	ReturnWrapped: "return the last error, wrapped",
	ReturnPanic:   "return a *coir.PanicError",
	ReturnErr:     "return ctx$n.Err()",
	ReturnCause:   "return context.Cause(ctx$n)",
	Panic:         "panic($value)",
	Goexit:        "runtime.Goexit()",
	GoexitPanic:   "defer panic(a text); runtime.Goexit()",
}

var panicTexts = [panicKinds]string{
	PanicText:          "a text",
	PanicError:         "an error",
	PanicNilPanicError: "a nil *coir.PanicError",
	PanicOwnPanicError: "a *coir.PanicError",
	PanicRuntime:       "index out of range",
}

func (e End) text(ctx int) string {
	return replace(endTexts[e.How], "$n", ctx, "$value", panicTexts[e.Panic])
}

func capText(n int) string {
	switch n {
	case coir.Unbounded:
		return "Unbounded"
	case coir.Conflated:
		return "Conflated"
	}
	return fmt.Sprint(n)
}

func overText(p coir.OverflowPolicy) string {
	if p == coir.OverflowWait {
		return ""
	}
	return fmt.Sprintf(", WithOverflow(%v)", p)
}

func optional(format, s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(format, s)
}
