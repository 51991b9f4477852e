package sim

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// A token is a schedule in letters: "s2." and, in base64, the clock's mode, the trace's hash, and of the decisions
// those that are not 0, each with the number of zeros before it.

const tokenVersion = "s2."

// mostZeros is how many zeros one number stands for, so that a damaged token does not take all memory.
const mostZeros = 1 << 20

func encode(mode ClockMode, script []int, hash uint64) string {
	b := []byte{byte(mode)}
	b = binary.LittleEndian.AppendUint32(b, uint32(hash^hash>>32))
	zeros := uint64(0)
	for _, d := range script {
		if d == 0 && zeros < mostZeros {
			zeros++
			continue
		}
		b = binary.AppendUvarint(b, zeros)
		b = binary.AppendUvarint(b, uint64(d))
		zeros = 0
	}
	return tokenVersion + base64.RawURLEncoding.EncodeToString(b)
}

// recording is a token, read.
type recording struct {
	mode   ClockMode
	hash   uint32
	script []int
}

func decode(token string) (r recording, err error) {
	rest, ok := strings.CutPrefix(token, tokenVersion)
	if !ok {
		return r, fmt.Errorf("sim: token %q is not of this version, which begins with %s", token, tokenVersion)
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || len(b) < 5 {
		return r, fmt.Errorf("sim: token %q is damaged", token)
	}
	r.mode, r.hash = ClockMode(b[0]), binary.LittleEndian.Uint32(b[1:])
	for b = b[5:]; len(b) > 0; {
		zeros, n := binary.Uvarint(b)
		d, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || zeros > mostZeros || d > 1<<20 {
			return r, fmt.Errorf("sim: token %q is damaged", token)
		}
		r.script = append(append(r.script, make([]int, zeros)...), int(d))
		b = b[n+m:]
	}
	return r, nil
}
