package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	size := 1 << 20
	if testing.Short() {
		size = 1 << 16
	}
	var out bytes.Buffer
	if err := run(t.Context(), size, 3, &out); err != nil || !strings.Contains(out.String(), " 0 bad") {
		t.Errorf("%s, error %v", &out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out.Reset()
	if err := run(ctx, size, 3, &out); err != nil || !strings.Contains(out.String(), "stopped early") {
		t.Errorf("%s, error %v", &out, err)
	}
}
