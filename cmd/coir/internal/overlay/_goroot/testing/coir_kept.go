package testing

import (
	"internal/coir"
	"internal/replay"
	"internal/search"
	"os"
	"slices"
	"strings"
)

// coirKept holds the schedules of a test that did something new. Each is kept as a token, in a file that outlives the
// process. Half of all schedules branch off one of them: they make its first decisions, and then others.
type coirKept struct {
	path   string
	tokens []string
	read   int // tokens[:read] have been run; the others are from the file
	rng    search.RNG
	turn   bool
	near   int // how many schedules may still branch off; negative: any number
}

// coirNear is how many schedules branch off each schedule of an earlier failure: the program may have changed a little.
const coirNear = 50

// coirMostKept is the number of schedules that are kept for a test. When there are that many, a new one replaces a
// random one, and one that failed replaces the last one.
const coirMostKept = 256

// coirReadKept reads the file, if path is not empty, and adds the schedules of earlier failures. A missing file counts
// as empty.
func coirReadKept(path string, failed []string, seed uint64) *coirKept {
	k := &coirKept{path: path, near: coirNear * len(failed)}
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

// next returns a schedule to run: first those of the file, unchanged, and then, each second time, a branch of one. It
// reports false if the strategy has the turn.
func (k *coirKept) next() (c coirConfig, ok bool) {
	if k.read < len(k.tokens) {
		c, _, _ = coirDecode(k.tokens[k.read])
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

// saw keeps a schedule that was run, if it failed or did something new. A failure goes to the front, so that the next
// process runs it first.
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
