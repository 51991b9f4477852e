// Package replay encodes the decisions of a schedule, and makes a failing schedule smaller. Package sim uses it for
// fibers, and `coir test`, which lays it over the standard library, for goroutines.
package replay

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
)

// Decision is a decision that a schedule made: the way taken, and the number of ways.
type Decision struct{ Way, Ways int }

// Script returns the ways of decisions, without the zeros at the end.
func Script(decisions []Decision) []int {
	end := 0
	for i := range decisions {
		if decisions[i].Way != 0 {
			end = i + 1
		}
	}
	script := make([]int, end)
	for i := range script {
		script[i] = decisions[i].Way
	}
	return script
}

// Switches returns how many decisions of a script are not 0.
func Switches(script []int) (n int) {
	for _, d := range script {
		if d != 0 {
			n++
		}
	}
	return n
}

// mostZeros is the largest number of zeros that one number may stand for, so that a damaged token cannot use all
// memory.
const mostZeros = 1 << 20

// Token encodes a script as text: the head, and in base64 the fields and the decisions that are not 0, each with the
// number of zeros before it.
func Token(head string, fields []byte, script []int) string {
	b := fields
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
	return head + base64.RawURLEncoding.EncodeToString(b)
}

// ErrDamaged is the error of a token that cannot be decoded.
var ErrDamaged = errors.New("is damaged")

// Parse decodes a token without its head. It calls fields with the decoded bytes; fields returns the bytes that follow
// the fields.
func Parse(letters string, fields func(b []byte) (rest []byte, ok bool)) (script []int, err error) {
	b, err := base64.RawURLEncoding.DecodeString(letters)
	if err != nil {
		return nil, ErrDamaged
	}
	b, ok := fields(b)
	if !ok {
		return nil, ErrDamaged
	}
	for len(b) > 0 {
		zeros, n := binary.Uvarint(b)
		d, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || zeros > mostZeros || d > math.MaxInt {
			return nil, ErrDamaged
		}
		script = append(append(script, make([]int, zeros)...), int(d))
		b = b[n+m:]
	}
	return script, nil
}
