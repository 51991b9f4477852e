// Package build makes the programs that the measurements run.
package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Coir builds the command coir into dir. The working directory is in its module.
func Coir(dir string) (string, error) {
	name := filepath.Join(dir, "coir")
	return name, Run(nil, "go", "build", "-o", name, "github.com/coir-go/coir/cmd/coir")
}

// Run runs a program, with variables added to the environment.
func Run(env []string, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
