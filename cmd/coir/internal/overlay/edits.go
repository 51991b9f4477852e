package overlay

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// edits.diff contains the edits of the standard library. Its first lines say how to add one.
//
//go:embed edits.diff
var editsDiff string

// An edit replaces text in a file of the standard library. Unless all or first is set, the old text must occur exactly
// once. Otherwise the Go release is not supported.
type edit struct {
	file     string
	line     int // of edits.diff; 0: it is in this file
	why      string
	old, new string
	all      bool // replace every occurrence; there must be at least one
	first    bool // replace the first occurrence; there must be at least one
	minor    int  // the minor release of Go 1 that the edit is for; 0: all releases
}

// at returns where the edit is: edits.diff:412.
func (e *edit) at() string {
	if e.line == 0 {
		return "edits.go"
	}
	return fmt.Sprintf("edits.diff:%d", e.line)
}

// edits contains the edits that everywhere returns, followed by those of edits.diff.
var edits = func() []edit {
	all, err := parseEdits(editsDiff)
	if err != nil {
		panic(err)
	}
	return append(everywhere(), all...)
}()

// editsOf returns the edits for a Go release.
func editsOf(version string) []edit {
	minor, _ := minorOf(version)
	return slices.DeleteFunc(slices.Clone(edits), func(e edit) bool { return e.minor != 0 && e.minor != minor })
}

// parseEdits reads edits in the format of edits.diff.
func parseEdits(text string) (all []edit, err error) {
	file := ""
	var e *edit // the hunk that is being read
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "--- "):
			if e != nil { // the empty line before the next file is not part of the hunk
				e.old, e.new = strings.TrimSuffix(e.old, "\n"), strings.TrimSuffix(e.new, "\n")
			}
			file, e = line[len("--- "):], nil
		case file == "": // the text at the top
		case strings.HasPrefix(line, "import "):
			all = append(all, edit{file: file, line: i + 1, why: "for the other edits", first: true, old: "import (\n",
				new: "import (\n\t\"" + line[len("import "):] + "\"\n"})
		case strings.HasPrefix(line, "@@ "):
			why, first := strings.CutPrefix(line[len("@@ "):], "first: ")
			all = append(all, edit{file: file, line: i + 1, why: why, first: first})
			e = &all[len(all)-1]
		case e == nil && line == "":
		case e == nil:
			return nil, fmt.Errorf("edits.diff:%d: %q is in no hunk", i+1, line)
		case line == "":
			e.old, e.new = e.old+"\n", e.new+"\n"
		case line[0] == ' ':
			e.old, e.new = e.old+line[1:]+"\n", e.new+line[1:]+"\n"
		case line[0] == '-':
			e.old += line[1:] + "\n"
		case line[0] == '+':
			e.new += line[1:] + "\n"
		default:
			return nil, fmt.Errorf("edits.diff:%d: %q does not begin with a space, a plus or a minus", i+1, line)
		}
	}
	return all, nil
}

// everywhere returns the edits that replace every occurrence of a text in a file.
func everywhere() (all []edit) {
	replace := func(why, old, new string, files ...string) {
		for _, f := range files {
			all = append(all, edit{file: f, why: why, old: old, new: new, all: true})
		}
	}
	replace("not a point: the runtime calls it at arbitrary times", "Gosched()\n", "mcall(gosched_m)\n",
		"runtime/mgc.go", "runtime/mgcmark.go", "runtime/mfinal.go", "runtime/mcleanup.go", "runtime/sigqueue.go")
	const outlives = "objects may be older than the schedule"
	replace(outlives, "getg().bubble != s.g.bubble {", "getg().bubble != s.g.bubble && !coir.On {", "runtime/sema.go")
	replace(outlives, "getg().bubble != c.bubble {", "getg().bubble != c.bubble && !coir.On {", "runtime/chan.go")
	replace(outlives, "synctest.IsInBubble()", "!coir.On && synctest.IsInBubble()", "sync/waitgroup.go")
	replace(outlives, "if t.isFake && getg().bubble == nil {", "if t.isFake && getg().bubble == nil && !coir.On {",
		"runtime/time.go")
	const renamed = "functions with points take the names of the atomic operations, which get other names"
	replace(renamed, "\nfunc ", "\nfunc coir", "sync/atomic/doc.go", "sync/atomic/doc_32.go", "sync/atomic/doc_64.go")
	replace(renamed, "TEXT ·", "TEXT ·coir", "sync/atomic/asm.s")
	replace(renamed, " sync/atomic.", " sync/atomic.coir", "runtime/race.go")
	replace(renamed, "sync∕atomic·", "sync∕atomic·coir", "runtime/race_amd64.s", "runtime/race_arm64.s",
		"runtime/race_loong64.s", "runtime/race_ppc64le.s", "runtime/race_riscv64.s", "runtime/race_s390x.s")
	var calls []string // each processor has its own file
	for _, arch := range []string{"amd64", "arm64"} {
		calls = append(calls, "syscall/zsyscall_linux_"+arch+".go")
	}
	for _, call := range []struct{ head, do string }{
		{"func Close(fd int) (err error) {\n", "s := coirFind(fd); s != nil {\n\t\treturn s.close()"},
		{"func Shutdown(fd int, how int) (err error) {\n", "s := coirSocketOf(fd); s != nil {\n\t\treturn s.shutdown(how)"},
		{"func Listen(s int, n int) (err error) {\n", "s := coirSocketOf(s); s != nil {\n\t\treturn s.listen()"},
	} {
		replace("a socket in memory", call.head, call.head+"\tif "+call.do+"\n\t}\n", calls...)
	}
	const kill = "func Kill(pid int, sig Signal) (err error) {\n"
	replace("deliver a signal to the process itself", kill, kill+"\tif CoirKill(pid, sig) {\n\t\treturn nil\n\t}\n", calls...)
	replace("one end is passed to another process", "os.Pipe()", "coirKernelPipe()", "os/exec/exec.go")
	const numbers = "addresses in keys of maps are hashed by their numbers"
	replace(numbers, "typ.Hasher(key, m.seed)", "coirHash(typ, key, m.seed)",
		"internal/runtime/maps/map.go", "internal/runtime/maps/table.go", "internal/runtime/maps/runtime.go")
	fast := []string{"internal/runtime/maps/runtime_fast32.go", "internal/runtime/maps/runtime_fast64.go"}
	for _, by := range []struct {
		minor    int
		old, new string
	}{
		{26, "typ.Hasher(", "coirHash(typ, "},
		{27, "	if memHashAESImplemented && UseAeshash {\n", "	if coirNumbers(typ) {\n" +
			"\t\thash = coirHash(typ, abi.NoEscape(unsafe.Pointer(&key)), m.seed)\n" +
			"	} else if memHashAESImplemented && UseAeshash {\n"},
	} {
		replace(numbers, by.old, by.new, fast...)
		for i := range fast {
			all[len(all)-1-i].minor = by.minor
		}
	}
	return all
}
