package archtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Figures in README and in the documents are written by the command figures: counts from the tree, and ratios from
// docs/benchmarks.json, which make report writes. TestFigures fails if one of them is not what the command would write.

// benchmarksFile has what make report measured.
const benchmarksFile = "docs/benchmarks.json"

// readRatios returns the ratios of benchmarksFile by name.
func readRatios(root string) (map[string]float64, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(benchmarksFile)))
	if err != nil {
		return nil, err
	}
	var measured struct {
		Ratios []struct {
			Name  string
			Ratio float64
		}
	}
	if err := json.Unmarshal(text, &measured); err != nil {
		return nil, fmt.Errorf("%s: %w", benchmarksFile, err)
	}
	ratios := make(map[string]float64)
	for _, r := range measured.Ratios {
		ratios[r.Name] = r.Ratio
	}
	return ratios, nil
}

// Figures returns the documents that have figures, as they should be.
func Figures(root string) (map[string]string, error) {
	ratios, err := readRatios(root)
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
	for _, m := range measuredIn {
		change := func(text string) (string, error) { return withRatio(text, m, ratios) }
		if err := edit(root, documents, m.file, change); err != nil {
			return nil, err
		}
	}
	return documents, nil
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

// A measured is a ratio in a sentence: the group of the pattern matches the figure.
type measured struct{ file, sentence, ratio string }

// measuredIn lists the ratios in sentences.
var measuredIn = []measured{
	{"README.md", `takes ([\d.]+) times the\s+memory`, "parked-memory"},
}

// withRatio writes a ratio into its sentence.
func withRatio(text string, m measured, ratios map[string]float64) (string, error) {
	at := regexp.MustCompile(m.sentence).FindStringSubmatchIndex(text)
	if at == nil {
		return "", fmt.Errorf("%s has no %q: take it out of measuredIn in internal/archtest/figures.go", m.file, m.sentence)
	}
	ratio, ok := ratios[m.ratio]
	if !ok {
		return "", fmt.Errorf("%s has no ratio %s, which %s shows: run make report", benchmarksFile, m.ratio, m.file)
	}
	return text[:at[2]] + figure(ratio) + text[at[3]:], nil
}

// figure formats a ratio with two significant decimals.
func figure(ratio float64) string {
	if ratio < 0.01 {
		return strconv.FormatFloat(ratio, 'f', 3, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}
