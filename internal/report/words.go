package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file holds the words shared by the text reports about fibers and about goroutines.

// Place returns the place at the beginning of a step's title, such as file.go:12, or "".
func Place(title string) string {
	at, _, _ := strings.Cut(title, "\n")
	at, _, _ = strings.Cut(at, ", ")
	place, ok := strings.CutPrefix(at, "at ")
	if !ok {
		return ""
	}
	return place
}

// CommonFile returns the most frequent file of the places, or the first of several such files.
func CommonFile(places []string) (most string) {
	count := map[string]int{}
	for _, place := range places {
		if file, _ := cutLine(place); file != "" {
			count[file]++
		}
	}
	for _, place := range places {
		if file, _ := cutLine(place); count[file] > count[most] {
			most = file
		}
	}
	return most
}

// ShortPlace returns a place without its directory, and only its line (:12) if the file is the common one.
func ShortPlace(place, common string) string {
	file, line := cutLine(place)
	switch file {
	case "":
		return ""
	case common:
		return line
	}
	return filepath.Base(file) + line
}

// cutLine splits a place into its file and its line: file.go and :12.
func cutLine(place string) (file, line string) {
	at := strings.LastIndexByte(place, ':')
	if at < 0 {
		return place, ""
	}
	return place[:at], place[at:]
}

// Sign is a mark of a table.
type Sign struct {
	Used          bool // the table contains it
	Mark, Meaning string
}

// Legend writes a line that explains the marks that a table uses.
func Legend(w io.Writer, indent string, signs ...Sign) {
	var texts []string
	for _, s := range signs {
		if s.Used {
			texts = append(texts, s.Mark+" "+s.Meaning)
		}
	}
	if len(texts) > 0 {
		fmt.Fprintf(w, "%smarks: %s\n", indent, strings.Join(texts, "; "))
	}
}

// WaitMark marks the step in which an actor waits at the end.
const WaitMark = "*"

// leastCrowd is the least number of actors that are grouped if they do the same.
const leastCrowd = 3

// Crowds groups elements with the same key, if there are at least three. Other elements, and elements with an empty
// key, stay alone. The groups are in the order of their first elements.
func Crowds[T any](all []T, key func(T) string) (crowds [][]T) {
	count, at := map[string]int{}, map[string]int{}
	for _, x := range all {
		count[key(x)]++
	}
	for _, x := range all {
		k := key(x)
		i, ok := at[k]
		if k == "" || count[k] < leastCrowd || !ok {
			at[k] = len(crowds)
			crowds = append(crowds, []T{x})
			continue
		}
		crowds[i] = append(crowds[i], x)
	}
	return crowds
}

// Names lists at most most names. Names that differ only in consecutive numbers become one: worker[0..6].
func Names(names []string, most int) string {
	var texts []string
	for i := 0; i < len(names); {
		head, n, tail, ok := numbered(names[i])
		end := i + 1
		for ; ok && end < len(names) && names[end] == head+strconv.Itoa(n+end-i)+tail; end++ {
		}
		if end-i < 3 {
			texts, i = append(texts, names[i]), i+1
			continue
		}
		texts, i = append(texts, fmt.Sprintf("%s%d..%d%s", head, n, n+end-i-1, tail)), end
	}
	if more := len(texts) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), more)
	}
	return strings.Join(texts, ", ")
}

// numbered splits a name into a number and the text before and after it: worker[3], pool_test.go:80 (3), worker#3.
func numbered(name string) (head string, n int, tail string, ok bool) {
	text := strings.TrimRight(name, ")]")
	at := strings.LastIndexAny(text, "[(#") + 1
	n, err := strconv.Atoi(text[at:])
	if at == 0 || err != nil || strconv.Itoa(n) != text[at:] {
		return "", 0, "", false
	}
	return name[:at], n, name[len(text):], true
}

// words returns the words of a text. The mark of a wait belongs to the word before it.
func words(text string) []string {
	all := strings.Fields(text)
	if n := len(all); n > 1 && all[n-1] == WaitMark {
		all[n-2] += " " + WaitMark
		all = all[:n-1]
	}
	return all
}

// Wrap breaks text into lines of at most most characters, between words if possible.
func Wrap(text string, most int) (lines []string) {
	if utf8.RuneCountInString(text) <= most {
		return []string{text}
	}
	line := ""
	for _, word := range words(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for letters := []rune(line); len(letters) > most; letters = []rune(line) { // a long path
			lines = append(lines, string(letters[:most]))
			line = string(letters[most:])
		}
	}
	return append(lines, line)
}
