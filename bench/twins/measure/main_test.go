package main

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestRows: each program can be measured, and stopped under load.
func TestRows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has no SIGTERM, and the processor time is measured by getrusage")
	}
	*turn, *turns = 50*time.Millisecond, 1
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			row, err := measure(p, p.sides[0])
			if err != nil || strings.Count(row, "|") != 9 {
				t.Errorf("%s\n%v", row, err)
			}
			t.Log(row)
		})
	}
}
