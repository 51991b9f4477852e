package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// checkOut makes a work tree of commit in dir, which must not exist. The returned function removes the tree.
func checkOut(ctx context.Context, repo, commit, dir string) (tree string, remove func() error, err error) {
	if _, err := output(ctx, repo, "git", "worktree", "add", "--detach", dir, commit); err != nil {
		return "", nil, fmt.Errorf("%s cannot be checked out: %w", commit, err)
	}
	return dir, func() error {
		// Not with ctx, because this must also run after an interrupt.
		_, err := output(context.Background(), repo, "git", "worktree", "remove", "--force", dir)
		return err
	}, nil
}

// A command is a build of ratios.
type command struct {
	binary string
	names  []string // its comparisons
}

// build builds the ratios command of the repository at tree.
func build(ctx context.Context, tree, binary string) (*command, error) {
	bench := filepath.Join(tree, "bench")
	if _, err := output(ctx, bench, "go", "build", "-buildvcs=false", "-o", binary, "./ratios"); err != nil {
		return nil, err
	}
	list, err := output(ctx, bench, binary, "-list")
	if err != nil {
		return nil, err
	}
	return &command{binary: binary, names: listed(list)}, nil
}

// listed returns the names in the output of -list: two lines for each comparison, the second of which begins with a
// space.
func listed(list []byte) []string {
	var names []string
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(line, f[0]) {
			names = append(names, f[0])
		}
	}
	return names
}

// A figure is the part of the output of ratios -json that this command needs.
type figure struct {
	Ratio  float64 `json:"ratio"`
	Allocs float64 `json:"allocs"`
	Bound  float64 `json:"bound"`
	Goal   float64 `json:"goal"`
}

// run measures one comparison in a separate process.
func (c *command) run(ctx context.Context, name string, rounds int) (figure, error) {
	var f figure
	out, err := output(ctx, ".", c.binary, "-json", "-only", name, "-rounds", strconv.Itoa(rounds))
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, err
	}
	if f.Ratio <= 0 {
		return f, errors.New("a process gave no ratio")
	}
	return f, nil
}

// output runs a program in dir and returns its standard output. Its standard error is part of the error.
func output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}
