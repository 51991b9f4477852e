package vet

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/supervise"
)

// known has the functions whose names the analyzers know. If one is renamed, this does not compile.
var known = map[string]any{
	module + ".ForEach":              coir.ForEach[int],
	module + ".Map":                  coir.Map[int, int],
	module + ".Nursery.Go":           (*coir.Nursery).Go,
	module + ".Ordered.Go":           (*coir.Ordered[int]).Go,
	module + ".Race":                 coir.Race[int],
	module + ".Run":                  coir.Run,
	module + ".Runtime.Run":          (*coir.Runtime).Run,
	module + ".Start":                coir.Start[int],
	module + ".WithCancel":           coir.WithCancel,
	module + ".WithCancelCause":      coir.WithCancelCause,
	module + ".WithDeadline":         coir.WithDeadline,
	module + ".WithGrace":            coir.WithGrace,
	module + ".WithTimeout":          coir.WithTimeout,
	module + "/buf.Buf.Append":       buf.Buf.Append,
	module + "/buf.Buf.Bytes":        buf.Buf.Bytes,
	module + "/buf.Buf.Clone":        buf.Buf.Clone,
	module + "/buf.Buf.Fill":         buf.Buf.Fill,
	module + "/buf.Buf.Release":      buf.Buf.Release,
	module + "/buf.Buf.Share":        buf.Buf.Share,
	module + "/buf.Buf.Slice":        buf.Buf.Slice,
	module + "/buf.Buf.Write":        (*buf.Buf).Write,
	module + "/buf.Buf.WriteTo":      buf.Buf.WriteTo,
	module + "/buf.Chan.Recv":        (*buf.Chan).Recv,
	module + "/buf.Chan.RecvTimeout": (*buf.Chan).RecvTimeout,
	module + "/buf.Chan.Send":        (*buf.Chan).Send,
	module + "/buf.Chan.SendCase":    (*buf.Chan).SendCase,
	module + "/buf.Chan.SendTimeout": (*buf.Chan).SendTimeout,
	module + "/buf.Chan.TryRecv":     (*buf.Chan).TryRecv,
	module + "/buf.Chan.TrySend":     (*buf.Chan).TrySend,
	module + "/buf.HandOver":         buf.HandOver,
	module + "/buf.Pool.Get":         (*buf.Pool).Get,
	module + "/buf.Pool.GetTimeout":  (*buf.Pool).GetTimeout,
	module + "/buf.Pool.TryGet":      (*buf.Pool).TryGet,
	module + "/sim.Drawn":            sim.Drawn,
	module + "/sim.Explore":          sim.Explore,
	module + "/sim.Replay":           sim.Replay,
	module + "/sim.Run":              sim.Run,
	module + "/sim.Test":             sim.Test,
	"sync.Cond.Wait":                 (*sync.Cond).Wait,
	"sync.WaitGroup.Wait":            (*sync.WaitGroup).Wait,
	"time.Sleep":                     time.Sleep,
}

var (
	_ = supervise.Child{Run: nil}
	_ = coir.WithGoroutine
)

// The tables of the analyzers name exactly the functions that exist.
func TestNames(t *testing.T) {
	var names []string
	names = slices.AppendSeq(names, maps.Keys(starters))
	names = slices.AppendSeq(names, maps.Keys(blockers))
	names = append(names, makesCancel...)
	for _, name := range slices.AppendSeq(slices.Clone(sources), maps.Keys(operations)) {
		names = append(names, bufPath+"."+name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if all := slices.Sorted(maps.Keys(known)); !slices.Equal(names, all) {
		t.Errorf("the analyzers know\n%s\nand there are\n%s", strings.Join(names, "\n"), strings.Join(all, "\n"))
	}
}
