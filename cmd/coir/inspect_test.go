package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coir-go/coir/inspect"
)

// small is a dump with one fiber.
const small = `{"version":1,"runtimes":1,"taken":"2026-11-18T12:00:00Z","process":{"pid":1,"program":"shop","live":1},
"fibers":[{"id":7,"name":"feed","nursery":1,"state":"waiting","since":"2026-11-18T11:59:50Z",
"spawned":"shop/main.go:26","wait":[{"kind":"send","text":"to send to orders (full, 64 of 64)"}],"waits":1}],
"nurseries":[],"objects":[],"workers":[],
"explanations":[]}`

// ran runs coir, and returns what it prints.
func ran(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(args, &out, &errs); code != want {
		t.Errorf("coir %v: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
	}
	return out.String() + errs.String()
}

// has checks that a text has parts.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// coir inspect prints a dump as text, or writes a page.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "dump.json"), filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(small), 0o666); err != nil {
		t.Fatal(err)
	}
	has(t, ran(t, 0, "inspect", file), "shop, process 1", "feed #7: waits to send to orders (full, 64 of 64), for 10s")
	for _, args := range [][]string{{"inspect", "-o", page, file}, {"inspect", file, "-o", page}} {
		_ = os.Remove(page)
		if out := ran(t, 0, args...); out != "" {
			t.Errorf("coir %v prints %s", args, out)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		has(t, string(text), "<!DOCTYPE html>", `"name":"feed"`)
	}
	has(t, ran(t, 2, "inspect"), "name one dump file ")
	has(t, ran(t, 2, "inspect", file, file), "name one dump file ")
	has(t, ran(t, 2, "inspect", "-x", file), "-x", "Run 'coir help inspect' for more.")
	has(t, ran(t, 2, "inspect", filepath.Join(dir, "none")), "none")
	has(t, ran(t, 2, "inspect", page), "inspect: not a dump")
	has(t, ran(t, 2, "inspect", "-o", filepath.Join(dir, "none", "page.html"), file), "none")
	has(t, ran(t, 0, "inspect", "-h"), "coir inspect shows what")
	has(t, ran(t, 0, "help", "inspect"), "coir inspect shows what")
}

// coir inspect fetches the dump of a running program from the address of its page, or from an address below it.
func TestInspectOfAnAddress(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/dump", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("stacks") != "1" {
			t.Errorf("it asks for %s", r.URL)
		}
		_, _ = io.WriteString(w, small)
	})
	mux.Handle("/debug/coir/", inspect.Handler())
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, address := range []string{
		server.URL, server.URL + "/", server.URL + "/text?stacks=1", server.URL + "/dump",
		strings.TrimPrefix(server.URL, "http://"),
	} {
		has(t, ran(t, 0, "inspect", address), "feed #7: waits to send to orders (full, 64 of 64), for 10s")
	}
	has(t, ran(t, 0, "inspect", server.URL+"/debug/coir"), "fibers")
	page := filepath.Join(t.TempDir(), "page.html")
	if out := ran(t, 0, "inspect", "-o", page, server.URL); out != "" {
		t.Errorf("it prints %s", out)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), `"name":"feed"`) {
		t.Errorf("the page is %s, %v", text, err)
	}
	has(t, ran(t, 2, "inspect", server.URL+"/other"), "404", "no program serves package inspect there")
	has(t, ran(t, 2, "inspect", "http://[::1"), "coir inspect: ", "Run 'coir help inspect' for more.")
	server.Close()
	has(t, ran(t, 2, "inspect", server.URL), "coir inspect: ", "refused")
}

// coir top starts coir-top with its arguments, and returns its exit code. If coir-top is missing, coir top says how to
// install it.
func TestTop(t *testing.T) {
	has(t, ran(t, 0, "help", "top"), "coir top shows in the terminal")
	t.Setenv("PATH", t.TempDir())
	has(t, ran(t, 1, "top"), "coir top: coir-top is not installed; run go install github.com/coir-go/coir/cmd/coir-top@latest")
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"with $*\"\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "coir-top"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if out := ran(t, 3, "top", "-interval", "2s", "localhost:1"); out != "with -interval 2s localhost:1\n" {
		t.Errorf("coir top prints %s", out)
	}
	t.Setenv("PATH", "")

	// It is also found beside coir.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "coir")
	if err := os.WriteFile(copied, binary, 0o777); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(copied, "top", "beside")
	c.Env = append(os.Environ(), asCoir+"=1")
	if out, _ := c.CombinedOutput(); string(out) != "with beside\n" {
		t.Errorf("coir top beside coir-top prints %s", out)
	}
}
