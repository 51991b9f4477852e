package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/coir-go/coir/internal/replay"
)

// A token is a schedule as text: "s3." and, in base64, the clock's mode, the trace's hash, the marks, and the decisions
// that are not 0, each with the number of zeros before it.
//
// A mark is a byte of the hash after each 64 operations. If the program has changed, the first mark that differs shows
// where the operations first differ. Short schedules, like most, have no marks. Of very long ones every second mark is
// kept, or every fourth, and so on.

const (
	tokenVersion = "s3."
	markEvery    = 64
	mostMarks    = 256
	hasMarks     = 1 << 7 // a flag in the byte of the mode
)

func encode(mode ClockMode, script []int, hash uint64, marks []byte) string {
	fields := binary.LittleEndian.AppendUint32([]byte{byte(mode)}, fold(hash))
	if len(marks) > 0 {
		every := strideOf(len(marks))
		kept := len(marks) / every
		fields[0] |= hasMarks
		fields = binary.AppendUvarint(append(fields, byte(bits.TrailingZeros(uint(every)))), uint64(kept))
		for i := range kept {
			fields = append(fields, marks[(i+1)*every-1])
		}
	}
	return replay.Token(tokenVersion, fields, script)
}

// fold returns the 32 bits of a hash that a token has.
func fold(hash uint64) uint32 { return uint32(hash ^ hash>>32) }

// strideOf returns which of n marks a token keeps: 1 for every mark, 2 for every second.
func strideOf(n int) int {
	every := 1
	for n/every > mostMarks {
		every *= 2
	}
	return every
}

// recording is a decoded token.
type recording struct {
	mode   ClockMode
	hash   uint32
	every  int // the number of operations between two marks
	marks  []byte
	script []int
}

func decode(token string) (r recording, err error) {
	letters, ok := strings.CutPrefix(token, tokenVersion)
	if !ok {
		return r, fmt.Errorf("sim: cannot read %q: a token of this version begins with %s", token, tokenVersion)
	}
	r.script, err = replay.Parse(letters, func(b []byte) (rest []byte, ok bool) {
		if len(b) < 5 {
			return nil, false
		}
		r.mode, r.hash, r.every = ClockMode(b[0]&^hasMarks), binary.LittleEndian.Uint32(b[1:]), markEvery
		marked := b[0]&hasMarks != 0
		if b = b[5:]; !marked {
			return b, true
		}
		if len(b) == 0 || b[0] > 32 {
			return nil, false
		}
		r.every <<= b[0]
		n, size := binary.Uvarint(b[1:])
		if b = b[1:]; size <= 0 || n > mostMarks || uint64(len(b)-size) < n {
			return nil, false
		}
		r.marks, b = b[size:size+int(n)], b[size+int(n):]
		return b, true
	})
	if err != nil {
		return recording{}, fmt.Errorf("sim: cannot read %q: %w", token, err)
	}
	return r, nil
}

// differs describes where the operations of a run differ from the recorded ones, as the end of a sentence.
func (r *recording) differs(marks []byte, steps int) string {
	from := 0
	for i, want := range r.marks {
		at := (i+1)*r.every/markEvery - 1 // the index of the mark in the run
		if at >= len(marks) {
			break // the run ended before that
		}
		if marks[at] != want {
			return fmt.Sprintf("between step %d and step %d", from+1, from+r.every)
		}
		from = (i + 1) * r.every
	}
	if from+1 >= steps {
		return fmt.Sprintf("after step %d", min(from, steps))
	}
	return fmt.Sprintf("between step %d and step %d, its last", from+1, steps)
}
