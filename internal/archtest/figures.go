package archtest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Figures in README and in the documents are written by the command figures: counts from the tree, and ratios from
// docs/figures.json, which has what bench/ratios measured, at which commit and on which machine. The bounds beside them
// come from the code of bench/ratios. TestFigures fails if one of them is not what the command would write.

// A Ratio is one comparison of bench/ratios.
type Ratio struct {
	Name    string  `json:"name"`
	Ratio   float64 `json:"ratio"`
	Allocs  float64 `json:"allocs"`
	Commit  string  `json:"commit"`
	Machine string  `json:"machine"`
}

// RatiosFile has the ratios that were measured, and figuresFile the table of them.
const (
	RatiosFile  = "docs/figures.json"
	figuresFile = "docs/figures.md"
)

// ReadRatios reads RatiosFile.
func ReadRatios(root string) ([]Ratio, error) {
	text, err := os.ReadFile(filepath.Join(root, RatiosFile))
	if err != nil {
		return nil, err
	}
	var ratios []Ratio
	return ratios, json.Unmarshal(text, &ratios)
}

// WriteRatios writes RatiosFile, one ratio a line.
func WriteRatios(root string, ratios []Ratio) error {
	lines := make([]string, len(ratios))
	for i, r := range ratios {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines[i] = string(line)
	}
	return os.WriteFile(filepath.Join(root, RatiosFile), []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}

// Figures returns the documents that have figures, as they should be.
func Figures(root string) (map[string]string, error) {
	ratios, err := ReadRatios(root)
	if err != nil {
		return nil, err
	}
	bounds, err := readBounds(root)
	if err != nil {
		return nil, err
	}
	documents := make(map[string]string)
	for _, c := range counts {
		if err := edit(root, documents, c.file, func(text string) (string, error) {
			n, err := c.count(root)
			if err != nil {
				return "", err
			}
			m := regexp.MustCompile(c.sentence).FindStringSubmatchIndex(text)
			if m == nil {
				return "", fmt.Errorf("%s has no %q: take it out of counts in internal/archtest/figures.go", c.file, c.sentence)
			}
			return text[:m[2]] + strconv.Itoa(n) + text[m[3]:], nil
		}); err != nil {
			return nil, err
		}
	}
	err = edit(root, documents, figuresFile, func(text string) (string, error) {
		return withRatios(text, ratios, bounds)
	})
	if err != nil {
		return nil, err
	}
	err = edit(root, documents, "README.md", func(text string) (string, error) { return withMemory(text, ratios) })
	return documents, err
}

func edit(root string, documents map[string]string, file string, change func(string) (string, error)) error {
	text, ok := documents[file]
	if !ok {
		read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		text = string(read)
	}
	text, err := change(text)
	documents[file] = text
	return err
}

// counts lists the numbers in sentences: the group of each pattern matches the number. A pattern has \s+ where a line
// may end.
var counts = []struct {
	file, sentence string
	count          func(root string) (int, error)
}{
	{"README.md", `\[(\d+) well-known\s+modules\]`, modules},
	{"docs/guide/coir-test.md", `about (\d+) well-known\s+modules\]`, modules},
	{"docs/guide/coir-test-real-code.md", `\| (\d+) modules \|`, modules},
	{"docs/design/0011-schedules-of-plain-go.md", `tests of (\d+) modules`, modules},
	{"docs/design/0011-schedules-of-plain-go.md", `has (\d+) edits`, edits},
	{"docs/design/0011-schedules-of-plain-go.md", `edits of (\d+)\s+files`, editedFiles},
	{"docs/design/0011-schedules-of-plain-go.md", `and (\d+) files of\s+ours`, addedFiles},
	{"docs/design/0008-exploring-the-real-code.md", `has (\d+) changes`, mutantsOf("internal/interleave")},
}

// modules counts the modules whose tests coir test has explored.
func modules(root string) (int, error) {
	return occurrences(root, "cmd/coir/measure/modules/modules.txt", `(?m)^[^#\s]`, "")
}

// edits counts the edits of the standard library, and editedFiles the files that they are in.
func edits(root string) (int, error) { return occurrences(root, editsDiff, `(?m)^@@ `, "") }

func editedFiles(root string) (int, error) { return occurrences(root, editsDiff, `(?m)^--- `, "") }

const editsDiff = "cmd/coir/internal/overlay/edits.diff"

// addedFiles counts the files that the overlay adds to the standard library, but for those of internal/coir,
// internal/search and internal/replay.
func addedFiles(root string) (int, error) {
	files, err := Files(filepath.Join(root, "cmd", "coir", "internal", "overlay", "_goroot"))
	return len(files), err
}

// mutantsOf returns a count of the changes of the code that the tests of a package must notice.
func mutantsOf(pkg string) func(root string) (int, error) {
	return func(root string) (int, error) {
		return occurrences(root, pkg+"/mutants_test.go", `(?m)^\t\{"`, "var changes = ")
	}
}

// occurrences counts the matches in a file, from a text on and up to the end of its braces.
func occurrences(root, file, pattern, from string) (int, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return 0, err
	}
	_, text, found := strings.Cut(string(b), from)
	if !found {
		return 0, fmt.Errorf("%s has no %q", file, from)
	}
	if from != "" {
		text, _, _ = strings.Cut(text, "\n}\n")
	}
	return len(regexp.MustCompile(pattern).FindAllString(text, -1)), nil
}

// quoted matches a name in a table.
var quoted = regexp.MustCompile("`([a-z0-9-]+)`")

// withRatios writes the ratios, and their bounds, into the rows of the table of figuresFile. A ratio above its bound is
// in bold.
func withRatios(text string, ratios []Ratio, bounds map[string]float64) (string, error) {
	by := make(map[string]Ratio)
	for _, r := range ratios {
		by[r.Name] = r
	}
	lines := strings.Split(text, "\n")
	rows, used := 0, make(map[string]bool)
	for i, line := range lines {
		cells := strings.Split(line, " | ")
		if len(cells) != 6 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| What |") {
			continue
		}
		var shown, atMost, commits []string
		allocs := 0.0
		for _, name := range quoted.FindAllStringSubmatch(cells[0], -1) {
			if r, ok := by[name[1]]; ok {
				used[r.Name] = true
				figure, bound := Figure(r.Ratio), "-"
				if most := bounds[r.Name]; most > 0 {
					bound = strconv.FormatFloat(most, 'g', -1, 64)
					if r.Ratio > most {
						figure = "**" + figure + "**"
					}
				}
				shown, atMost = append(shown, figure), append(atMost, bound)
				commits = append(commits, r.Commit)
				allocs = max(allocs, r.Allocs)
			}
		}
		if shown == nil {
			return "", fmt.Errorf("%s: no ratio of %s is in %s: run make figures", figuresFile, line, RatiosFile)
		}
		rows++
		cells[2] = strings.Join(shown, ", ")
		cells[3] = strings.Join(atMost, ", ")
		if len(slices.Compact(slices.Clone(atMost))) == 1 {
			cells[3] = atMost[0]
		}
		if cells[4] != "-" {
			cells[4] = strconv.Itoa(int(allocs + 0.5))
		}
		cells[5] = strings.Join(slices.Compact(commits), ", ") + " |"
		lines[i] = strings.Join(cells, " | ")
	}
	if rows == 0 || len(used) != len(ratios) {
		return "", fmt.Errorf("%s shows %d of %d ratios, in %d rows: name each ratio of %s in a row of the table",
			figuresFile, len(used), len(ratios), rows, RatiosFile)
	}
	return strings.Join(lines, "\n"), nil
}

// boundsFile has the comparisons with their bounds. It belongs to another module, so it is parsed, not imported.
const boundsFile = "bench/ratios/table.go"

// readBounds returns the bounds of the comparisons in boundsFile that have one. A comparison is a literal with a name
// and a bound. Those that a function makes from its parameter name have the bound of the literal in that function.
func readBounds(root string) (map[string]float64, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(boundsFile)), nil, 0)
	if err != nil {
		return nil, err
	}
	bounds := make(map[string]float64)
	makers := make(map[string]float64)
	for _, d := range file.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			name, bound := comparisonOf(literal)
			if maker, ok := d.(*ast.FuncDecl); ok {
				makers[maker.Name.Name] = bound
			} else if name != "" {
				bounds[name] = bound
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
			if maker, ok := call.Fun.(*ast.Ident); ok && makers[maker.Name] > 0 {
				bounds[stringOf(call.Args[0])] = makers[maker.Name]
			}
		}
		return true
	})
	if len(bounds) == 0 {
		return nil, fmt.Errorf("%s has no bounds: change readBounds in internal/archtest/figures.go", boundsFile)
	}
	return bounds, nil
}

// comparisonOf returns the name and the bound of a literal, or zero values for what it has not.
func comparisonOf(literal *ast.CompositeLit) (name string, bound float64) {
	for _, e := range literal.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := field.Key.(*ast.Ident)
		switch {
		case ok && key.Name == "name":
			name = stringOf(field.Value)
		case ok && key.Name == "bound":
			if value, ok := field.Value.(*ast.BasicLit); ok {
				bound, _ = strconv.ParseFloat(value.Value, 64)
			}
		}
	}
	return name, bound
}

// stringOf returns the value of a string literal, or "".
func stringOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// withMemory writes the memory of a parked fiber into README.
func withMemory(text string, ratios []Ratio) (string, error) {
	memory := regexp.MustCompile(`takes ([\d.]+) times the\s+memory`).FindStringSubmatchIndex(text)
	i := slices.IndexFunc(ratios, func(r Ratio) bool { return r.Name == "parked-memory" })
	if memory == nil || i < 0 {
		return "", fmt.Errorf("README.md does not say what a parked fiber takes, or %s has no parked-memory", RatiosFile)
	}
	return text[:memory[2]] + Figure(ratios[i].Ratio) + text[memory[3]:], nil
}

// Figure formats a ratio with two significant decimals.
func Figure(ratio float64) string {
	if ratio < 0.01 {
		return strconv.FormatFloat(ratio, 'f', 3, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}
