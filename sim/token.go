package sim

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/coir-go/coir/internal/replay"
)

// A token is a schedule as text: "s2." and, in base64, the clock's mode, the trace's hash, and the decisions that are
// not 0, each with the number of zeros before it.

const tokenVersion = "s2."

func encode(mode ClockMode, script []int, hash uint64) string {
	fields := binary.LittleEndian.AppendUint32([]byte{byte(mode)}, uint32(hash^hash>>32))
	return replay.Token(tokenVersion, fields, script)
}

// recording is a decoded token.
type recording struct {
	mode   ClockMode
	hash   uint32
	script []int
}

func decode(token string) (r recording, err error) {
	letters, ok := strings.CutPrefix(token, tokenVersion)
	if !ok {
		return r, fmt.Errorf("sim: token %q is not of this version, which begins with %s", token, tokenVersion)
	}
	r.script, err = replay.Parse(letters, func(b []byte) (rest []byte, ok bool) {
		if len(b) < 5 {
			return nil, false
		}
		r.mode, r.hash = ClockMode(b[0]), binary.LittleEndian.Uint32(b[1:])
		return b[5:], true
	})
	if err != nil {
		return recording{}, fmt.Errorf("sim: token %q %w", token, err)
	}
	return r, nil
}
