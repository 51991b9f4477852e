package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The dashboard is a value of the types that Grafana publishes for dashboards. So it has no field that Grafana does not
// know, and every field that Grafana needs.
func TestTheDashboardFitsGrafana(t *testing.T) {
	if os.Getenv("COIR_GRAFANA") == "" {
		t.Skip("set COIR_GRAFANA=1 to run it: it installs the types of Grafana with npm")
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	types, err := os.ReadFile(filepath.Join("testdata", "dashboard.ts"))
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := os.ReadFile(filepath.Join("..", "..", "metrics", "grafana", "coir.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dashboard.ts"), append(types, dashboard...), 0o600); err != nil {
		t.Fatal(err)
	}
	run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", ".",
		"@grafana/schema@13.2.3", "typescript@5.9.3")
	run("node", filepath.Join("node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck",
		"--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "dashboard.ts")
}
