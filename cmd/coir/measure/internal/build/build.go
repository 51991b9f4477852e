// Package build builds and runs the programs for the measurements.
package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/events"
)

// Coir builds the command coir in dir, and returns the path of the program. The working directory must be in coir's
// module.
func Coir(dir string) (string, error) {
	name := filepath.Join(dir, "coir")
	return name, Run(nil, "go", "build", "-o", name, "github.com/coir-go/coir/cmd/coir")
}

// Temp builds the command coir in a new directory. It returns the path of the program, the directory, and a function
// that removes the directory.
func Temp() (tool, dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "coir-measure-")
	if err != nil {
		return "", "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if tool, err = Coir(dir); err != nil {
		remove()
	}
	return tool, dir, remove, err
}

// Explore runs coir test with -json in a directory, and returns its events. A test that fails is not an error.
func Explore(tool, dir string, args ...string) (all []events.Event, err error) {
	c := exec.Command(tool, append([]string{"test", "-json"}, args...)...)
	c.Dir = dir
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, fmt.Errorf("coir test: %w\n%s%s", err, &out, &errs)
	}
	for d := json.NewDecoder(&out); d.More(); {
		var e events.Event
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("the output of coir: %w", err)
		}
		all = append(all, e)
	}
	return all, nil
}

// Run runs a program with the variables env added to the environment.
func Run(env []string, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
