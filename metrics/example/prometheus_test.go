package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/metrics"
)

// remote begins the names of the metrics of remote channels. The example has none, because this module does not require
// the module of package remote.
const remote = "coir_remote_"

// TestPrometheusScrapesTheExample checks that a real Prometheus can scrape the example, gets every other metric of the
// vocabulary, and answers every query of the dashboard.
func TestPrometheusScrapesTheExample(t *testing.T) {
	promtool, server := installed(t, "promtool"), installed(t, "prometheus")
	addr := serve(t)

	// The text is valid, and follows the naming conventions.
	text := get(t, "http://"+addr+"/metrics")
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}

	api := start(t, server, addr)
	var names []string
	for m := range metrics.All() {
		if !strings.HasPrefix(m.Name, remote) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	var have []string
	await(t, "all metrics", func() bool {
		have = nil
		for _, s := range query(t, api, `count by (__name__) ({__name__=~"coir_.+"})`) {
			have = append(have, s.Metric["__name__"])
		}
		slices.Sort(have)
		return slices.Equal(have, names)
	}, &have)

	for _, expr := range dashboard(t) {
		if strings.Contains(expr, remote) {
			query(t, api, expr) // it fails if Prometheus cannot read the query
			continue
		}
		var found []series
		await(t, "an answer to "+expr, func() bool {
			found = query(t, api, expr)
			return len(found) > 0
		}, &found)
	}
	for _, s := range query(t, api, `coir_channel_capacity{name="orders"}`) {
		if s.Value[1] != "64" {
			t.Errorf("the capacity of orders is %v, not 64", s.Value[1])
		}
	}
}

// serve runs the example until the test ends, and returns its address.
func serve(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l.Addr().String()
}

// dashboard returns the queries of the dashboard, as Grafana sends them.
func dashboard(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "grafana", "coir.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "1m")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, values.Replace(target.Expr))
		}
	}
	if len(all) == 0 {
		t.Fatal("the dashboard has no query")
	}
	return all
}

// installed returns the path of a program in Debian's package prometheus.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed. On Debian, apt-get install prometheus brings it.")
	}
	return path
}

// stopping runs a server, and stops it when its own input ends, so that no server is left if the test is killed. It
// closes its own standard error, so that the end of that output means the end of the server.
const stopping = `"$0" "$@" & exec 2>&-; read -r _; kill $!; wait $!`

// start starts a Prometheus that scrapes addr, and returns the address of its API. Prometheus is stopped when the test
// ends.
func start(t *testing.T, server, addr string) (api string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n- job_name: shop\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n"+
		"  static_configs:\n  - targets: [%q]\n", addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", stopping, server, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Prometheus listens on a port that the system chooses, and logs the port.
	listening := regexp.MustCompile(`address=(127\.0\.0\.1:[1-9]\d*)`)
	var said strings.Builder
	lines := bufio.NewScanner(log)
	for api == "" && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			api = "http://" + m[1]
		}
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, log)
	}()
	t.Cleanup(func() {
		_ = stop.Close()
		<-rest
		if err := cmd.Wait(); err != nil && api != "" {
			t.Errorf("Prometheus: %v", err)
		}
	})
	if api == "" {
		t.Fatalf("Prometheus did not start:\n%s", said.String())
	}
	await(t, "Prometheus to be ready", func() bool {
		r, err := http.Get(api + "/-/ready")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode == http.StatusOK
	}, nil)
	return api
}

// await calls ask until it returns true, for at most a minute.
func await(t *testing.T, what string, ask func() bool, got any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ask() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waited a minute for %s; the last answer was %v", what, got)
		}
	}
}

// series is one element of the answer to a query.
type series struct {
	Metric map[string]string
	Value  [2]any // the time and the value
}

func query(t *testing.T, api, expr string) []series {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []series }
	}
	text := get(t, api+"/api/v1/query?query="+url.QueryEscape(expr))
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v, %s", expr, err, text)
	}
	return answer.Data.Result
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %d, %.500s", address, err, r.StatusCode, text)
	}
	return text
}
