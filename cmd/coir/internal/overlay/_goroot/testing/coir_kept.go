package testing

import (
	"internal/coir"
	"internal/replay"
	"internal/search"
	"os"
	"slices"
	"strings"
)

// coirKept holds the schedules of a test that did something new. Each is kept as a token, in a file that later
// processes read. Half of all schedules branch off a kept one: they begin with its first decisions, and then make
// random ones.
type coirKept struct {
	path   string
	tokens []string
	saved  []string // those of earlier failures
	read   int      // tokens[:read] have been run; the others were read from the file
	rng    search.RNG
	turn   bool
	near   int // how many more schedules may branch off; negative: any number
}

// coirNear is the number of schedules that branch off each schedule of an earlier failure, because the program may have
// changed slightly since.
const coirNear = 50

// coirMostKept is the most schedules that are kept for a test. If there are that many, a new schedule replaces a random
// one, and a schedule that failed replaces the last one.
const coirMostKept = 256

// coirReadKept reads the file, if path is not empty, and adds the schedules of earlier failures. A missing file counts
// as empty.
func coirReadKept(path string, failed []string, seed uint64) *coirKept {
	k := &coirKept{path: path, saved: failed, near: coirNear * len(failed)}
	k.rng.Of(seed, -1)
	if path != "" {
		k.near = -1
		text, _ := os.ReadFile(path)
		failed = append(failed[:len(failed):len(failed)], strings.Fields(string(text))...)
	}
	for _, token := range failed {
		if _, _, err := coirDecode(token); err == "" && len(k.tokens) < coirMostKept {
			k.tokens = append(k.tokens, token)
		}
	}
	return k
}

// next returns a schedule to run: first each schedule of the file, unchanged, and then, every second time, a branch of
// a kept schedule. It reports false if it is the strategy's turn.
func (k *coirKept) next() (c coirConfig, ok bool) {
	if k.read < len(k.tokens) {
		c, _, _ = coirDecode(k.tokens[k.read])
		c.saved = slices.Contains(k.saved, k.tokens[k.read])
		c.kept = !c.saved
		k.read++
		return c, true
	}
	if k.turn = !k.turn; k.turn || len(k.tokens) == 0 || k.near == 0 {
		return c, false
	}
	k.near--
	c, _, _ = coirDecode(k.tokens[k.rng.Below(len(k.tokens))])
	s := c.strategy.(*search.Script)
	s.Ways = s.Ways[:k.rng.Below(len(s.Ways)+1)]
	s.Rest = search.Random(k.rng.Next(), 50)
	s.Begin(0)
	return c, true
}

// saw keeps the schedule r if it failed or did something new. A failure goes to the front, so that the next process
// runs it first.
func (k *coirKept) saw(r *coirRun) {
	if k.path == "" || r.News == 0 && r.kind == coir.KindPass || r.Overflow {
		return
	}
	token := coirEncode(r.config, replay.Script(r.allDecisions()), 0)
	switch {
	case slices.Contains(k.tokens, token):
	case r.kind != coir.KindPass:
		k.tokens = slices.Insert(k.tokens, 0, token)
		k.tokens = k.tokens[:min(len(k.tokens), coirMostKept)]
		k.read = min(k.read+1, len(k.tokens))
	case len(k.tokens) < coirMostKept:
		k.tokens = slices.Insert(k.tokens, k.read, token)
		k.read++
	default:
		k.tokens[k.rng.Below(len(k.tokens))] = token
	}
}

func (k *coirKept) write() {
	if k.path == "" || len(k.tokens) == 0 {
		return
	}
	temp := k.path + ".new"
	if os.WriteFile(temp, []byte(strings.Join(k.tokens, "\n")+"\n"), 0o666) == nil {
		os.Rename(temp, k.path)
	}
}
