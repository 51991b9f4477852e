package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

// asCoir is an environment variable that makes the test binary act as coir, for tests that send it signals.
const asCoir = "TEST_BINARY_IS_COIR"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "-stall":
		stall(os.Args[2], os.Args[3:])
	case os.Getenv(asCoir) != "":
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	case os.Getenv(asProcess) != "":
		os.Exit(actAsProcess(os.Getenv(asProcess)))
	}
	for _, name := range []string{"GITHUB_ACTIONS", "COLUMNS"} { // otherwise the output of coir depends on them
		_ = os.Unsetenv(name)
	}
	os.Exit(m.Run())
}

// command returns a command that runs the test binary as coir.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), asCoir+"=1")
	return c
}

// explored runs coir test. See coirtest.
func explored(t *testing.T, args ...string) map[string]events.Event {
	t.Helper()
	return coirtest.Command(run).Explore(t, args...)
}

// stall runs as the program of -toolexec. Instead of compiling, it connects to the test and waits to be killed.
func stall(address string, tool []string) {
	if filepath.Base(tool[0]) != "compile" || slices.Contains(tool, "-V=full") {
		c := exec.Command(tool[0], tool[1:]...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		if c.Run() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		os.Exit(1)
	}
	_, _ = io.WriteString(c, strings.Join(tool, " ")+"\n")
	_, _ = io.Copy(io.Discard, c)
}

// module writes the files of a module into a directory, and changes to it.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"version"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	lines := strings.Split(out.String(), "\n")
	built := "built with " + runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH
	if len(lines) != 4 || lines[1] != built || lines[2] != "coir test supports "+overlay.Releases() {
		t.Errorf("coir version prints\n%s", &out)
	}
	if !overlay.Supported("go1.26.8") || overlay.Supported("go1.25.9") || overlay.Supported("go1.28") ||
		overlay.Releases() != "Go 1.26 to 1.27" {
		t.Errorf("%s are supported", overlay.Releases())
	}
	set := func(pairs ...string) (all []debug.BuildSetting) {
		for pair := range slices.Chunk(pairs, 2) {
			all = append(all, debug.BuildSetting{Key: pair[0], Value: pair[1]})
		}
		return all
	}
	for want, info := range map[string]*debug.BuildInfo{
		"coir devel\n":  nil,
		"coir v1.2.3\n": {Main: debug.Module{Version: "v1.2.3"}, Settings: set("vcs.revision", "0123456789abcdef")},
		"coir devel 0123456789ab\n": {
			Main: debug.Module{Version: "(devel)"}, Settings: set("vcs.revision", "0123456789abcdef", "vcs.modified", "false"),
		},
		"coir devel 0123456789ab, with changes\n": {Settings: set("vcs.revision", "0123456789abcdef", "vcs.modified", "true")},
	} {
		if got := version(info); !strings.HasPrefix(got, want) {
			t.Errorf("the version is %q, want %q", got, want)
		}
	}
}
