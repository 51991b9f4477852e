package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// asProcess is an environment variable that makes the test binary act as the binary of an explored test: see
// fakeProcesses. Its value is a directory.
const asProcess = "TEST_BINARY_IS_PROCESS"

// fakeProcesses returns a tool whose processes explore nothing. Each process writes the next of the records, and dies
// without a record if that is "". The processes that there are after these die, too. ran returns the settings of the
// processes so far, each with the tokens to begin with.
func fakeProcesses(t *testing.T, records ...string) (tl *tool, ran func() []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range records {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("record", i)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tl = &tool{env: append(os.Environ(), asProcess+"="+dir), temp: dir}
	return tl, func() (all []string) {
		for i := 0; ; i++ {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("ran", i)))
			if err != nil {
				return all
			}
			all = append(all, string(text))
		}
	}
}

// actAsProcess is main for a process of fakeProcesses. Like package testing of the overlay, it appends to the record.
func actAsProcess(dir string) int {
	for i := 0; ; i++ {
		ran, err := os.OpenFile(filepath.Join(dir, fmt.Sprint("ran", i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return 4
		}
		_, err = fmt.Fprintf(ran, "%s %s", os.Getenv("COIR_TEST"), os.Getenv("COIR_FAILED"))
		if err != nil || ran.Close() != nil {
			return 4
		}
		record, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("record", i)))
		if err != nil || len(record) == 0 {
			return 3
		}
		to, err := os.OpenFile(os.Getenv("COIR_RECORD"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return 4
		}
		if _, err := to.Write(record); err != nil || to.Close() != nil {
			return 4
		}
		return 0
	}
}

// aSummary is the record of a process whose verdict has no other lines.
func aSummary(verdict coir.Verdict) string {
	return fmt.Sprintf("summary\t%q\t1\t0\t0\tfalse\t\"0\"\n", verdict)
}

// A process that dies before it writes has no record. The record of the process before, which stopped because the test
// needs the kernel's network, is not its own.
func TestProcessThatDiesHasNoRecord(t *testing.T) {
	tl, ran := fakeProcesses(t, "network\t\"it dials\"\n"+aSummary(coir.VerdictKernel), "")
	j := fakeJob(t, fakeBinary(t))
	r := (&runner{tool: tl, job: j}).run(t.Context(), j.process())
	if r.outcome != coir.VerdictDied || !strings.Contains(r.broken, "exit status 3") || len(ran()) != 2 {
		t.Errorf("after %d processes it is %q: %s", len(ran()), r.outcome, r.broken)
	}
}

// A file that was left by a process that was killed is not the record of the next one either.
func TestRecordThatWasLeft(t *testing.T) {
	tl, _ := fakeProcesses(t, "")
	binary := fakeBinary(t)
	j := fakeJob(t, binary)
	if err := os.WriteFile(binary+".0.record", []byte(aSummary(coir.VerdictPass)), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := (&runner{tool: tl, job: j}).run(t.Context(), j.process()); r.outcome != coir.VerdictDied {
		t.Errorf("it is %q: %s", r.outcome, r.broken)
	}
}

// fakeBinary links to the test binary, because records are written beside it.
func fakeBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), filepath.Base(self))
	if err := os.Symlink(self, name); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	return name
}

// fakeJob returns the job for a test of the binary of fakeProcesses, with flags.
func fakeJob(t *testing.T, binary string, flags ...string) *job {
	t.Helper()
	o, err := parse(flags)
	if err != nil {
		t.Fatal(err)
	}
	return newJob(o, &pkg{ImportPath: "example.com/m", Dir: t.TempDir()}, binary, "TestX", 0)
}
