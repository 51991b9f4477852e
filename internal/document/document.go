// Package document replaces the parts of documents that programs and tests write.
package document

import (
	"fmt"
	"os"
	"strings"
)

// Replace replaces what is between begin and end in a text by part. It returns the new text, and what was there.
func Replace(text, begin, end, part string) (now, was string, err error) {
	before, rest, found := strings.Cut(text, begin)
	was, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", "", fmt.Errorf("no part between %q and %q", begin, end)
	}
	return before + begin + part + end + after, was, nil
}

// Keep reports whether part is between begin and end in a file. If it is not, and write is true, Keep writes it there,
// and reports true as well.
func Keep(file, begin, end, part string, write bool) (bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	now, was, err := Replace(string(text), begin, end, part)
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	if was == part || !write {
		return was == part, nil
	}
	return true, os.WriteFile(file, []byte(now), 0o644)
}
