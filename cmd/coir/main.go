// Command coir finds concurrency bugs in the tests of a Go program, and replays them. It also shows what a running
// program waits for.
//
//	coir test [flags] [packages]
//	coir debug [flags] package -run test -replay token
//	coir top [URL|FILE]
//	coir inspect [-o page.html] URL|file
//
// coir test builds the tests with a changed Go runtime that runs one goroutine at a time, in an order that coir
// decides. Then it runs each test many times, each time in another order, on a virtual clock. See `coir help test`.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `coir finds concurrency bugs in the tests of a Go program, and replays them. It also shows what a running
program waits for.

Usage:

	coir test [flags] [packages]   explore the schedules of tests
	coir debug ...                 run one schedule again under the debugger Delve
	coir top [URL|FILE]            show in the terminal what a running program waits for (needs coir-top)
	coir inspect URL|file          show what a running program or a dump waits for, as text or as a page
	coir help command              describe the command: test, debug, top or inspect
	coir version                   print the version of coir and the supported Go releases

`

// usages are the texts of coir help.
var usages = map[string]string{"test": testUsage, "debug": debugUsage, "top": topUsage, "inspect": inspectUsage}

// run is main with an exit code: 0 if all tests passed, 1 if a test failed, 2 if coir could not run, and 128 plus the
// signal number if a signal interrupted it.
func run(args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 2
	}
	switch args[0] {
	case "test":
		return test(args[1:], out, errs)
	case "debug":
		return debugTest(args[1:], out, errs)
	case "top":
		return top(args[1:], out, errs)
	case "inspect":
		return inspectDump(args[1:], out, errs)
	case "version":
		info, _ := debug.ReadBuildInfo()
		fmt.Fprint(out, version(info))
		return 0
	case "help", "-h", "-help", "--help":
		text := usage
		if len(args) > 1 && usages[args[1]] != "" {
			text = usages[args[1]]
		}
		fmt.Fprint(out, text)
		return 0
	}
	fmt.Fprintf(errs, "coir: unknown command %q\n\n%s", args[0], usage)
	return 2
}

// version describes this build of coir: the version of the module if it was installed as a module,
// or otherwise the revision.
func version(info *debug.BuildInfo) string {
	name := "devel"
	if info != nil {
		name = info.Main.Version
		set := map[string]string{}
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
		revision := set["vcs.revision"]
		switch {
		case name != "" && name != "(devel)":
		case revision != "":
			name = "devel " + revision[:min(len(revision), 12)]
			if set["vcs.modified"] == "true" {
				name += ", with changes"
			}
		default:
			name = "devel"
		}
	}
	return fmt.Sprintf("coir %s\nbuilt with %s for %s/%s\ncoir test supports %s\n", name, runtime.Version(), runtime.GOOS,
		runtime.GOARCH, overlay.Releases())
}
