package postgres

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Processes of different versions use the same tables and functions: see TestEncodingsArePinned of package remote. The
// golden file has the columns of the tables, and how the functions are called. The body of a function may change, if
// both versions can use it. The file is edited by hand, so that no command changes it by mistake.
func TestEncodingsArePinned(t *testing.T) {
	var b strings.Builder
	parts := regexp.MustCompile(`(?ms)^create (?:unlogged )?table.*?^\)|^create or replace function.*?language \w+`)
	for _, at := range parts.FindAllString(schemaText, -1) {
		at = regexp.MustCompile(`--.*`).ReplaceAllString(at, "")
		b.WriteString(strings.Join(strings.Fields(at), " ") + "\n")
	}
	b.WriteString("subject of a queue: " + (&queue{name: "orders"}).subject() + "\n")
	b.WriteString("kinds of mail: " + string([]byte{kindTold, kindRequest, kindAnswer, kindUnserved}) + "\n")
	file := filepath.Join("testdata", "encoding.golden")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s:\n%s\nwas\n%s", file, b.String(), want)
	}
}
