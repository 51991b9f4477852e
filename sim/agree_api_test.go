package sim

import (
	"bytes"
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coir-go/coir"

// drawnFrom are the packages whose exported functions and methods are drawn.
var drawnFrom = []string{"", "/locks", "/pubsub", "/pace", "/supervise", "/desk", "/stream", "/netio", "/buf"}

const constructors = "it makes an object that no other fiber has"

// notDrawn are the exported functions and methods that no program draws, with the reasons.
var notDrawn = []struct{ why, names string }{
	{constructors, `
		coir.NewChan coir.NewClock coir.NewCond coir.NewEvent coir.NewOrdered coir.NewPool coir.NewPromise coir.NewSelector
		coir.NewTimer coir.Pipe coir.Promise.Init coir.Queue.Init coir.Cond.Init coir.Chan.Describe coir.Cond.Describe
		coir.Chan.Show coir.Promise.Describe coir.List coir.ListObjects locks.NewBarrier locks.NewMutex locks.NewOnce
		locks.NewRWMutex locks.NewSemaphore pubsub.NewBroadcast pubsub.NewLatest pace.NewLimiter pace.NewTicker
		supervise.New desk.New buf.NewChan buf.NewPool buf.NewRegion`},
	{"it is an option", `
		coir.WithBackground coir.WithClock coir.WithIndex coir.WithLabels coir.WithMaxWorkers coir.WithName
		coir.WithObserver coir.WithOverflow coir.WithSpawnSite coir.WithTiming coir.WithWorkers coir.OnStall
		coir.OnUndelivered supervise.WithBackoff supervise.WithIntensity supervise.WithName supervise.WithStrategy desk.WithLimit desk.WithName desk.WithOverflow
		desk.WithShow
		buf.OnRelease buf.WithChecks buf.WithHeap buf.WithMemory buf.WithName buf.WithReadOnly`},
	{"it always returns the same", `
		coir.Self coir.Chan.Cap coir.Chan.Name coir.Fiber.ID coir.Fiber.Name coir.Fiber.SpawnSite coir.Promise.Name
		coir.NameOption.Name coir.Queue.Name coir.PanicError.Error coir.PanicError.Unwrap locks.Semaphore.Cap pace.Limiter.Cap
		pace.Ticker.Period supervise.GaveUpError.Error supervise.GaveUpError.Unwrap supervise.Supervisor.Name desk.Desk.Cap
		desk.Desk.Name desk.ID.AppendText desk.ID.MarshalText desk.ID.UnmarshalText desk.ParseID desk.Ticket.Name
		stream.MeterStats.Lag stream.MeterStats.Rate stream.Stream.Explain netio.Conn.LocalAddr netio.Conn.RemoteAddr
		netio.Listener.Addr`},
	{"in a simulation it always reports false", "coir.Queue.Fast coir.Queue.FastIn"},
	{"it changes only what a snapshot shows", "coir.Queue.Held"},
	{"it changes only the names of fibers and channels", "stream.Stream.Named"},
	{"it waits by a Timer between calls of a function, and such waits are drawn", "pace.Retry pace.Permanent"},
	{"it is a cancel, which TestEndOfASendScopeIsACancel checks", "coir.Chan.SendScope"},
	{"it changes nothing, and shows what others do between two of their operations: see the doc of DPOR", `
		coir.Chan.Len coir.Chan.Stats coir.Cond.Len coir.Fiber.State coir.Fiber.Waiting coir.Ordered.Len coir.Pool.Len
		coir.Queue.Len coir.Reader.Stats coir.Selector.Len coir.Watch.Covers coir.Writer.Stats pubsub.Broadcast.Len
		pubsub.Latest.Len pubsub.Subscription.Lagged desk.Desk.Len desk.Desk.Stats stream.Meter.Stats`},
	{"it is of a runtime or a clock, which a simulation makes for itself", `
		coir.Configure coir.Default coir.NewRuntime coir.Runtime.Close coir.Runtime.Run coir.Runtime.Snapshot
		coir.Runtime.Stats
		coir.Clock.Advance coir.Clock.AdvanceToNext coir.Clock.Len coir.Clock.Now`},
	{"it uses goroutines, which a simulation does not control", "coir.Blocking coir.FromChan coir.WithGoroutine coir.ToChan"},
	{"it uses the kernel, which a simulation does not control", `
		netio.FD.Close netio.FD.Control netio.FD.OnReadable netio.FD.Read netio.FD.SetReadDeadline
		netio.FD.SetWriteDeadline netio.FD.WaitRead netio.FD.WaitWrite netio.FD.Write netio.NewConn netio.NewFD
		netio.NewListener netio.Conn.SyscallConn netio.Listener.SyscallConn`},
	{"in a simulation it is a write for each piece, and writes are drawn", "netio.Conn.WriteBuffers"},
	{"packets are not simulated", `
		netio.ListenPacket netio.ListenConfig.ListenPacket netio.PacketConn.ReadFrom netio.PacketConn.ReadFromContext
		netio.PacketConn.WriteTo netio.PacketConn.WriteToContext`},
	{"it calls the method of a channel, which is drawn", `
		buf.Chan.Abort buf.Chan.All buf.Chan.Cap buf.Chan.Close buf.Chan.Len buf.Chan.Recv buf.Chan.RecvCase
		buf.Chan.RecvTimeout buf.Chan.Send buf.Chan.SendCase buf.Chan.SendTimeout buf.Chan.Stats buf.Chan.TryRecv
		buf.Chan.TrySend buf.Pool.Cap buf.Pool.Close buf.Pool.Get buf.Pool.GetCase buf.Pool.GetTimeout buf.Pool.Len
		buf.Pool.Size buf.Pool.Stats buf.Pool.TryGet buf.Region.Close`},
	{"it is for the owner of a buffer, and no other fiber may use the buffer", `
		buf.Buf.Append buf.Buf.Bytes buf.Buf.Cap buf.Buf.Clone buf.Buf.Fill buf.Buf.Len buf.Buf.MarshalBinary
		buf.Buf.MarshalJSON buf.Buf.Release buf.Buf.Share buf.Buf.Slice buf.Buf.Write buf.Buf.WriteTo buf.Buffers
		buf.HandOver buf.Region.OffHeap`},
}

// surface holds the exported functions and methods of drawnFrom, and those that each operation of the programs calls.
type surface struct {
	all   map[string]bool
	calls map[string][]map[string]bool // by the family, or "" for common
}

// readSurface reads the packages and this test.
func readSurface(t *testing.T) surface {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "flag", "testing", "."}
	for _, p := range drawnFrom {
		args = append(args, module+p)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("no export data of " + path)
		}
		return os.Open(exports[path])
	})
	s := surface{map[string]bool{}, map[string][]map[string]bool{}}
	for _, p := range drawnFrom {
		pkg, err := from.Import(module + p)
		if err != nil {
			t.Fatal(err)
		}
		s.add(pkg)
	}
	s.readCalls(t, set, from)
	return s
}

// add adds the exported functions and methods of a package, except for the methods String.
func (s *surface) add(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		switch x := pkg.Scope().Lookup(name).(type) {
		case *types.Func:
			if x.Exported() {
				s.all[nameOf(x)] = true
			}
		case *types.TypeName:
			if !x.Exported() || types.IsInterface(x.Type()) {
				continue
			}
			methods := types.NewMethodSet(types.NewPointer(x.Type()))
			for m := range methods.Methods() {
				if f := m.Obj().(*types.Func); f.Exported() && f.Name() != "String" && isDrawnFrom(f.Pkg()) {
					s.all[nameOf(f)] = true
				}
			}
		}
	}
}

func isDrawnFrom(pkg *types.Package) bool {
	rest, ours := strings.CutPrefix(pkg.Path(), module)
	return ours && slices.Contains(drawnFrom, rest)
}

// nameOf returns a name such as coir.Chan.Send.
func nameOf(f *types.Func) string {
	name := f.Pkg().Name() + "."
	if r := f.Signature().Recv(); r != nil {
		of := types.Unalias(r.Type())
		if p, ok := of.(*types.Pointer); ok {
			of = types.Unalias(p.Elem())
		}
		name += of.(*types.Named).Obj().Name() + "."
	}
	return name + f.Name()
}

// readCalls finds the functions that the operations call, directly or through functions of the same file.
func (s *surface) readCalls(t *testing.T, set *token.FileSet, from types.Importer) {
	t.Helper()
	dir, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	const operations = "agree_ops_test.go"
	var files []*ast.File
	for _, name := range append(dir.GoFiles, "agree_test.go", "scale_test.go", operations) {
		f, err := parser.ParseFile(set, filepath.Join(".", name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: from, Error: func(error) {}} // program is declared in another test
	_, _ = config.Check(module+"/sim", set, files, info)
	ops := files[len(files)-1]
	bodies := map[types.Object]ast.Node{}
	lists := map[string]*ast.CompositeLit{}
	for _, d := range ops.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			bodies[info.Defs[d.Name]] = d.Body
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == 1 {
					lists[v.Names[0].Name], _ = v.Values[0].(*ast.CompositeLit)
				}
			}
		}
	}
	add := func(family string, does *ast.CompositeLit) {
		for _, e := range does.Elts {
			calls := map[string]bool{}
			collect(e, info, bodies, calls)
			s.calls[family] = append(s.calls[family], calls)
		}
	}
	add("", lists["common"])
	for i, f := range lists["families"].Elts {
		for _, e := range f.(*ast.CompositeLit).Elts {
			if kv := e.(*ast.KeyValueExpr); kv.Key.(*ast.Ident).Name == "does" {
				add(families[i].name, kv.Value.(*ast.CompositeLit))
			}
		}
	}
}

// collect adds the names of the functions that code calls, directly or through functions of the same file.
func collect(code ast.Node, info *types.Info, bodies map[types.Object]ast.Node, calls map[string]bool) {
	ast.Inspect(code, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		f, ok := info.Uses[id].(*types.Func)
		if !ok || f.Pkg() == nil {
			return true
		}
		f = f.Origin()
		if body := bodies[f]; body != nil {
			collect(body, info, bodies, calls)
		} else if isDrawnFrom(f.Pkg()) && f.Exported() {
			calls[nameOf(f)] = true
		}
		return true
	})
}

// covered returns the functions and methods of the surface that the programs draw, beginning with number first.
func (s *surface) covered(first, programs uint64) map[string]bool {
	drawn := map[string]bool{}
	for seed := first; seed < first+programs; seed++ {
		p := agreementOf(seed)
		for _, deeds := range p.does {
			for _, d := range deeds {
				calls := s.calls[p.family.name]
				if d.what < 0 {
					calls, d.what = s.calls[""], -1-d.what
				}
				for name := range calls[d.what] {
					if s.all[name] {
						drawn[name] = true
					}
				}
			}
		}
	}
	return drawn
}

// Each exported function and method is drawn, or is in notDrawn with the reason. So a new operation cannot be left out
// of the comparison of DPOR with Exhaustive.
func TestEveryOperationIsDrawn(t *testing.T) {
	onceInCI(t)
	s := readSurface(t)
	drawn := s.covered(0, agreements)
	excluded := map[string]bool{}
	for _, x := range notDrawn {
		for name := range strings.FieldsSeq(x.names) {
			switch {
			case !s.all[name]:
				t.Errorf("%s is in notDrawn, and does not exist", name)
			case excluded[name]:
				t.Errorf("%s is in notDrawn twice", name)
			case drawn[name] && x.why != constructors:
				t.Errorf("%s is in notDrawn, and is drawn", name)
			}
			excluded[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if !drawn[name] && !excluded[name] {
			t.Errorf("%s is not drawn: add it to families in agree_ops_test.go, or to notDrawn with a reason", name)
		}
	}
	t.Logf("%d of %d exported functions and methods are drawn by %d programs", len(drawn), len(s.all), agreements)
}
