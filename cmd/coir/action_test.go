//go:build linux || darwin

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runBlocks returns the shell commands of action.yml, by the id of their step.
func runBlocks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    - id: (\w+)\n(?:      .*\n)*?      run: \|\n((?:        .*\n)+)`).
		FindAllStringSubmatch(string(text), -1) {
		blocks[m[1]] = strings.ReplaceAll(m[2], "\n        ", "\n")
	}
	if len(blocks) != strings.Count(string(text), "run: |") || len(blocks) != 2 {
		t.Fatalf("%d blocks were found in\n%s", len(blocks), text)
	}
	for _, m := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`^actions/(setup-go|cache/restore|cache/save|upload-artifact)@v\d+$`).MatchString(m[1]) {
			t.Errorf("the action uses %s", m[1])
		}
	}
	return blocks
}

const (
	fakeGo = `#!/bin/sh
case "$1" in
env) echo go1.26.8 ;;
install)
	echo "$2 $GOBIN" >>"$RUNNER_TEMP/installed"
	mkdir -p "$GOBIN"
	cp "$RUNNER_TEMP/fake-coir" "$GOBIN/coir"
	;;
esac
`
	fakeCoir = `#!/bin/sh
if [ "$1" = version ]; then
	printf 'coir devel 0123, with changes\nbuilt with go\n'
	exit
fi
printf '<%s>' "$@"
exit 1
`
)

// The shell commands of the action install coir, name the caches, and run coir test with the flags as words.
func TestTheAction(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	temp, blocks := t.TempDir(), runBlocks(t)
	if err := os.Mkdir(filepath.Join(temp, "bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"bin/go": fakeGo, "fake-coir": fakeCoir} {
		if err := os.WriteFile(filepath.Join(temp, name), []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	block := func(id string, env ...string) (string, error) {
		c := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", blocks[id]) // as GitHub does
		c.Dir = temp
		c.Env = append(os.Environ(), "PATH="+filepath.Join(temp, "bin")+":"+os.Getenv("PATH"), "RUNNER_TEMP="+temp,
			"RUNNER_OS=Linux", "RUNNER_ARCH=X64", "HOME=home", "XDG_CACHE_HOME=", "GITHUB_OUTPUT="+filepath.Join(temp, "output"))
		c.Env = append(c.Env, env...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := block("install", "VERSION=v0.1.0", "FLAGS=-race"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(temp, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if got, want := read("installed"), "github.com/coir-go/coir/cmd/coir@v0.1.0 "+temp+"/coir\n"; got != want {
		t.Errorf("%q is installed, want %q", got, want)
	}
	want := regexp.MustCompile(`^cache=home/\.cache/coir\nbuild=home/\.cache/coir-go-build\n` +
		`key=Linux-X64-go1\.26\.8-coir-devel-0123--with-changes-\d+\n$`)
	if got := read("output"); !want.MatchString(got) {
		t.Errorf("the outputs are\n%s", got)
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"HTML=true", "FLAGS=-run Test* -budget 2s", "PACKAGES=./a ./..."},
			"<test><-html><" + temp + "/coir-pages><-run><Test*><-budget><2s><./a><./...>"},
		{[]string{"HTML=false", "FLAGS=", "PACKAGES=./..."}, "<test><./...>"},
	} {
		out, err := block("test", c.env...)
		if code := err.(*exec.ExitError).ExitCode(); code != 1 || out != c.want {
			t.Errorf("%v: exit code %d, %s, want %s", c.env, code, out, c.want)
		}
	}
	if cache, err := os.UserCacheDir(); err != nil || !slices.Contains([]string{".cache", "Caches"}, filepath.Base(cache)) &&
		os.Getenv("XDG_CACHE_HOME") == "" {
		t.Errorf("the action does not know the cache %s, %v", cache, err)
	}
}
