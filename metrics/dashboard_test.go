package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// token matches a token of a query: a text, a range, a number, a name, or another character.
var token = regexp.MustCompile(`"[^"]*"|\[[^]]*\]|\d+|[A-Za-z_]\w*|=~|\S`)

// query holds the names in a query of the dashboard.
type query struct {
	metrics []string
	labels  []string // in selectors and after "by"
	by      []string // after "by"
}

// parse reads a query. It supports only the syntax that the dashboard uses, and returns false for everything else. In
// TestPrometheusScrapesTheExample Prometheus answers each query.
func parse(expr string) (q query, ok bool) {
	tokens := append(token.FindAllString(expr, -1), "", "")
	name := regexp.MustCompile(`^[A-Za-z_]\w*$`)
	for i := 0; tokens[i] != ""; i++ {
		switch this, next := tokens[i], tokens[i+1]; {
		case this == "by" && next == "(":
			for i += 2; tokens[i] != ")"; i++ {
				if tokens[i] == "" {
					return q, false
				}
				if tokens[i] != "," {
					q.by = append(q.by, tokens[i])
					q.labels = append(q.labels, tokens[i])
				}
			}
		case slices.Contains([]string{"sum", "max"}, this) && (next == "(" || next == "by"):
		case this == "rate" && next == "(":
		case name.MatchString(this) && next == "{":
			q.metrics = append(q.metrics, this)
			for i += 2; tokens[i] != "}"; i++ {
				if tokens[i] == "" {
					return q, false
				}
				if name.MatchString(tokens[i]) {
					q.labels = append(q.labels, tokens[i])
				}
			}
		case name.MatchString(this):
			return q, false // the variables of the dashboard need a selector
		case !regexp.MustCompile(`^([()/>]|\d+|\[\$__rate_interval\])$`).MatchString(this):
			return q, false
		}
	}
	return q, len(q.metrics) > 0
}

func TestParse(t *testing.T) {
	q, ok := parse(`sum by (name) (rate(a{x=~"y",z=~"{b}"}[$__rate_interval])) / (max(c{x=~"y"}) > 0)`)
	if !ok || !slices.Equal(q.metrics, []string{"a", "c"}) || !slices.Equal(q.labels, []string{"name", "x", "z", "x"}) ||
		!slices.Equal(q.by, []string{"name"}) {
		t.Errorf("it has the metrics %q and the labels %q, by %q: %v", q.metrics, q.labels, q.by, ok)
	}
	for _, expr := range []string{"", "a", "sum(a)", "irate(a{})", "a{x", "sum by (a", "a{} or b{}", "a{}[5m]"} {
		if _, ok := parse(expr); ok {
			t.Errorf("%q is accepted", expr)
		}
	}
}

// The dashboard uses only metrics of the vocabulary, with labels that they have, and its panels and queries have
// different names.
func TestTheDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("grafana", "coir.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ RefID, Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for m := range All() {
		labels[m.Name] = append(m.Labels, "job", "instance") // added by Prometheus
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("the panel %s has the id %d, which is 0 or that of another one", p.Title, p.ID)
		}
		ids[p.ID] = true
		for y := range p.GridPos.H {
			for x := range p.GridPos.W {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if cells[at] != "" || at[0] >= 24 {
					t.Fatalf("the panel %s covers %s, or the edge", p.Title, cells[at])
				}
				cells[at] = p.Title
			}
		}
		if (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("the panel %s, a %s, has %d queries", p.Title, p.Type, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] {
				t.Errorf("a query of %s has no name, or that of another one", p.Title)
			}
			refs[target.RefID] = true
			q, ok := parse(target.Expr)
			if !ok {
				t.Errorf("%s is not understood: correct it, or parse", target.Expr)
			}
			for _, m := range q.metrics {
				for _, l := range q.labels {
					if !slices.Contains(labels[m], l) {
						t.Errorf("%s uses the label %s of %s, which has %q", target.Expr, l, m, labels[m])
					}
				}
				for _, l := range []string{"job", "instance"} {
					if !slices.Contains(q.labels, l) {
						t.Errorf("%s does not select by %s", target.Expr, l)
					}
				}
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(q.by, l[1]) {
					t.Errorf("the legend of %s has %s, which the query does not keep", target.Expr, l[1])
				}
			}
		}
	}
	// The variables are filled from metrics, too.
	variables, err := json.Marshal(d.Templating)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bcoir_\w+`).FindAllString(string(variables), -1) {
		if labels[name] == nil {
			t.Errorf("%s is no metric", name)
		}
	}
}
