package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// A later run begins with the schedule of a saved failure, even if the program has changed a little.
func TestSaved(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	text, err := os.ReadFile("testdata/bank/bank_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(string(text), "package bank", "package m", 1)
	dir := module(t, map[string]string{"m_test.go": program})
	found := explored(t, "-save", ".")["TestTransfer"]
	files, err := filepath.Glob("testdata/coir/TestTransfer/deadlock-*")
	if len(files) != 1 || err != nil || found.Failure == nil || !strings.Contains(found.Output, "saved: "+files[0]+"\n") {
		t.Fatalf("%q are saved, %v\n%s", files, err, found.Output)
	}
	again := explored(t, "-save", ".")["TestTransfer"]
	if again.Failure == nil || again.Failure.Schedule != 1 || again.Failure.Report != found.Failure.Report ||
		again.Failure.Headline != "deadlock in schedule 1 (seed "+fmt.Sprint(found.Failure.Schedule)+"), as it was saved, with 1 switch" ||
		!strings.Contains(again.Output, "saved before: "+files[0]) {
		t.Errorf("again it is\n%s", again.Output)
	}
	if n := again.Shrinking; n >= found.Shrinking { // only the first run has also shrunk the schedule
		t.Errorf("again it runs %d more schedules, and first %d", n, found.Shrinking)
	}
	alone := explored(t, "-fresh", ".")["TestTransfer"]
	if alone.Failure == nil || alone.Schedules != 1 || alone.Failure.Headline != again.Failure.Headline {
		t.Errorf("each schedule in a process, it is\n%s", alone.Output)
	}

	fixed := strings.Replace(program, "transfer(&b, &a, 1)", "transfer(&a, &b, -1)", 1)
	if err := os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(fixed), 0o666); err != nil || fixed == program {
		t.Fatalf("%v; the program is\n%s", err, program)
	}
	if o := explored(t, "-v", "-schedules=20", ".")["TestTransfer"]; o.Action != "pass" ||
		!strings.Contains(o.Output, ", the first of them saved in testdata/coir, ") {
		t.Errorf("with the bug fixed it is\n%s", o.Output)
	}

	const transfer = "\tvar wg sync.WaitGroup\n"
	if !strings.Contains(program, transfer) {
		t.Fatalf("the program is\n%s", program)
	}
	change := func(old, new string) {
		t.Helper()
		changed := strings.Replace(program, old, new, 1)
		if err := os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(changed), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	change(transfer, "\tvar first sync.Mutex\n\tfirst.Lock()\n\tfirst.Unlock()\n"+transfer)
	near := explored(t, ".")["TestTransfer"]
	if near.Failure == nil || near.Failure.Schedule > 50 {
		t.Errorf("in a program that has changed it is\n%s", near.Output)
	}
	change(transfer, transfer+"\tt.Skip()\n")
	if o := explored(t, "-schedules=100", ".")["TestTransfer"]; o.Action != "skip" {
		t.Errorf("in a program that skips it is\n%s", o.Output)
	}
}

// A schedule that was saved with faults fails also in a run without them, and after a small change.
func TestSavedWithFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	onMemory(t)
	text, err := os.ReadFile("testdata/faults/faults_test.go")
	if err != nil {
		t.Fatal(err)
	}
	const test, body = "TestChargesTwice", "func TestChargesTwice(t *testing.T) {\n"
	program := strings.Replace(string(text), "package faults", "package m", 1)
	dir := moduleWithCoir(t, map[string]string{"m_test.go": program})
	found := explored(t, "-run="+test, "-faults=reset", "-save", ".")[test]
	if found.Failure == nil {
		t.Fatalf("with faults it is\n%s", found.Output)
	}
	again := explored(t, "-run="+test, "-emit", ".")[test]
	if again.Failure == nil || again.Failure.Schedule != 1 || again.Failure.Report != found.Failure.Report ||
		!strings.Contains(again.Output, "emitted: ") {
		t.Errorf("without faults it is\n%s\nand was\n%s", again.Output, found.Output)
	}
	changed := strings.Replace(program, body, body+"\tvar unrelated sync.Mutex\n\tunrelated.Lock()\n\tunrelated.Unlock()\n", 1)
	if err := os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(changed), 0o666); err != nil || changed == program {
		t.Fatalf("the program is\n%s", program)
	}
	if near := explored(t, "-run="+test+"$", ".")[test]; near.Failure == nil {
		t.Errorf("in a program that has changed it is\n%s", near.Output)
	}
}

// If the code has changed, the first sentence of a replay says so, and the next ones say what to do. The replay shows
// no other failure.
func TestReplayOfChangedCode(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	text, err := os.ReadFile("testdata/bank/bank_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(string(text), "package bank", "package m", 1)
	dir := module(t, map[string]string{"m_test.go": program})
	token := explored(t, ".")["TestTransfer"].Failure.Token
	const bug = "transfer(&b, &a, 1)"
	if !strings.Contains(program, bug) {
		t.Fatalf("the program is\n%s", program)
	}
	mended := strings.Replace(program, bug, "transfer(&a, &b, -1)", 1)
	if err := os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(mended), 0o666); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.xml")
	o := explored(t, "-run=^TestTransfer$", "-replay="+token, "-junit="+report, ".")["TestTransfer"]
	_, said, _ := strings.Cut(o.Output, "--- FAIL: TestTransfer (")
	_, said, _ = strings.Cut(said, "\n")
	if o.Action != "fail" || o.Failure != nil || strings.Contains(said, "--- FAIL") ||
		!strings.HasPrefix(said, "    "+changedText+"\n    to explore the code as it is now: coir test example.com/m -run '^TestTransfer$'\n") {
		t.Errorf("%s, and it prints\n%s", o.Action, o.Output)
	}
	c := readJUnit(t, report).find(t, "example.com/m", "TestTransfer")
	if c.Failure == nil || c.Failure.Message != changedText || c.Failure.Type != "changed" {
		t.Errorf("the report of JUnit has %+v", c.Failure)
	}
	if o := explored(t, "-schedules=200", "-run=^TestTransfer$", ".")["TestTransfer"]; o.Action != "pass" {
		t.Errorf("explored again, it is\n%s", o.Output)
	}
}

// A test that -emit writes fails like the original test.
func TestEmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	text, err := os.ReadFile("testdata/bank/bank_test.go")
	if err != nil {
		t.Fatal(err)
	}
	moduleWithCoir(t, map[string]string{"m_test.go": strings.Replace(string(text), "package bank", "package m_test", 1)})
	found := explored(t, "-emit", ".")["TestTransfer"]
	files, err := filepath.Glob("coir_TestTransfer_deadlock_*_test.go")
	if len(files) != 1 || err != nil || found.Failure == nil {
		t.Fatalf("%q are written, %v\n%s", files, err, found.Output)
	}
	test := strings.TrimSuffix(strings.TrimPrefix(files[0], "coir_"), "_test.go")
	o := explored(t, "-run=^"+test+"$", ".")[test]
	coirtest.Compare(t, explored(t, "-run=^"+test+"$", "."), map[string]string{test: "deadlock"})
	if o.Failure == nil || o.Failure.Schedule != 1 || o.Failure.Token != found.Failure.Token {
		t.Errorf("the test that was written fails so:\n%s\nand the first one so:\n%s", o.Output, found.Output)
	}
}

// moduleWithCoir makes a module that requires coir, as it is in the working tree. The test continues in its directory.
func moduleWithCoir(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir = module(t, files)
	mod := "module example.com/m\n\ngo 1.26\n\nrequire github.com/coir-go/coir v0.0.0\n\n" +
		"replace github.com/coir-go/coir => " + root + "\n"
	if err := os.WriteFile("go.mod", []byte(mod), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}
