package coir

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Each operation has a name in Ops, and IsFault, OnNetwork and OnLock agree with the operations' names and objects.
func TestOperationsHaveNames(t *testing.T) {
	text, err := Source.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "codes.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && strings.HasPrefix(v.Names[0].Name, "Op") &&
			v.Names[0].Name != "Ops" {
			codes++
		}
		return true
	})
	if codes != len(Ops) {
		t.Errorf("there are %d operations, and %d in Ops", codes, len(Ops))
	}
	faults := 0
	for op, o := range Ops {
		if o.Name == "" {
			t.Errorf("operation %d has no name", op)
		}
		fault := strings.HasPrefix(o.Name, "fault")
		if IsFault(op) != fault {
			t.Errorf("IsFault says %v of %q", IsFault(op), o.Name)
		}
		lock := o.On == "mutex" || o.On == "rwmutex"
		if OnLock(op) != lock {
			t.Errorf("OnLock says %v of %q", OnLock(op), o.Name)
		}
		network := fault || o.Name == "listen" || o.On == "listener" || o.On == "conn" || o.On == "pipe"
		if OnNetwork(op) != network {
			t.Errorf("OnNetwork says %v of %q", OnNetwork(op), o.Name)
		}
		if fault {
			faults++
		}
	}
	if faults != len(Faults) {
		t.Errorf("there are %d faults, and %d in Faults", faults, len(Faults))
	}
}
