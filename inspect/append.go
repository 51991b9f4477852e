package inspect

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/coir-go/coir/snapshot"
)

// A page requests all fibers once a second, and most of the work is to encode them. Package encoding/json takes three
// times as long as the functions below. TestFibersAreEncodedAsTheirTagsSay compares both.

// appendFiber appends a fiber as JSON.
func appendFiber(b []byte, f *snapshot.Fiber) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendUint(b, f.ID, 10)
	b = appendText(append(b, `,"name":`...), f.Name)
	b = strconv.AppendUint(append(b, `,"nursery":`...), f.Nursery, 10)
	b = appendTrue(b, `,"main":true`, f.Main)
	b = appendText(append(b, `,"state":`...), string(f.State))
	b = appendTime(b, `,"since":`, f.Since)
	b = appendText(append(b, `,"spawned":`...), f.Spawned)
	if len(f.Wait) > 0 {
		b = append(b, `,"wait":[`...)
		for i := range f.Wait {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendWait(b, &f.Wait[i])
		}
		b = append(b, ']')
	}
	b = appendNumber(b, `,"more":`, uint64(f.More))
	b = strconv.AppendUint(append(b, `,"waits":`...), f.Waits, 10)
	b = appendTime(b, `,"until":`, f.Until)
	b = appendTrue(b, `,"foreign":true`, f.Foreign)
	b = appendSome(b, `,"stack":`, f.Stack)
	b = appendSome(b, `,"at":`, f.At)
	b = appendTrue(b, `,"system":true`, f.System)
	b = appendSome(b, `,"call":`, f.Call)
	return append(b, '}')
}

func appendWait(b []byte, w *snapshot.Wait) []byte {
	b = appendText(append(b, `{"kind":`...), string(w.Kind))
	b = appendText(append(b, `,"text":`...), w.Text)
	b = appendNumber(b, `,"object":`, w.Object)
	b = appendNumber(b, `,"fiber":`, w.Fiber)
	b = appendNumber(b, `,"nursery":`, w.Nursery)
	return append(b, '}')
}

// appendText appends a string. If it must be escaped, encoding/json encodes it.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // cannot happen with a string
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendSome(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendText(append(b, name...), s)
}

func appendTrue(b []byte, text string, is bool) []byte {
	if !is {
		return b
	}
	return append(b, text...)
}

func appendNumber(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), n, 10)
}

func appendTime(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(append(b, name...), '"')
	return append(t.AppendFormat(b, time.RFC3339Nano), '"')
}
