// Package replay encodes the decisions of a schedule, and makes a failing schedule smaller. Package sim uses it for
// fibers, and `coir test`, which lays it over the standard library, for goroutines.
package replay

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
)

// Decision is a decision that a schedule made: the way taken, the number of ways, and whether it is about a fault: then
// way 0 is that the fault does not happen.
type Decision struct {
	Way, Ways int
	Fault     bool
}

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

// MostDecisions is the largest number of decisions that a token may have. Each decision takes 8 bytes when the token is
// read, and a number of a few bytes stands for any number of zeros. So without this limit, a damaged token could use
// all memory. `coir test` records 1<<18 decisions of a schedule, and sim makes a few for each of at most 10,000
// operations, unless WithSteps allows more.
const MostDecisions = 1 << 22

// Token encodes a script as text: the head, and in base64 the fields and the decisions that are not 0, each with the
// number of zeros before it. It returns "" if the script has more than MostDecisions, because Parse would refuse it.
func Token(head string, fields []byte, script []int) string {
	if len(script) > MostDecisions {
		return ""
	}
	b := fields
	zeros := uint64(0)
	for _, d := range script {
		if d == 0 {
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
var ErrDamaged = errors.New("the token is damaged")

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
	length := 0 // at most MostDecisions, before any memory is allocated
	for rest := b; len(rest) > 0; {
		zeros, d, size := pair(rest)
		if size == 0 || d > math.MaxInt || zeros >= uint64(MostDecisions-length) {
			return nil, ErrDamaged
		}
		length += int(zeros) + 1
		rest = rest[size:]
	}
	script = make([]int, 0, length)
	for len(b) > 0 {
		zeros, d, size := pair(b)
		script = append(script[:len(script)+int(zeros)], int(d))
		b = b[size:]
	}
	return script, nil
}

// pair decodes a decision and the number of zeros before it, and returns their size: 0 if they are damaged.
func pair(b []byte) (zeros, d uint64, size int) {
	zeros, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, 0
	}
	d, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return 0, 0, 0
	}
	return zeros, d, n + m
}
