package buf

import (
	"errors"
	"fmt"
)

// errEncode says that a Buf cannot be encoded. Without its methods below, encoding/json would write {} for one.
var errEncode = errors.New("buf: a Buf names memory of its process and cannot be encoded; encode the slice that Bytes " +
	"returns")

// MarshalJSON returns an error: a Buf names memory of its process. A channel to another process returns it from a send
// of a Buf. Send the slice that [Buf.Bytes] returns. The error is not [errors.ErrUnsupported], which encoding/json does
// not accept from a MarshalJSON since Go 1.27.
func (b Buf) MarshalJSON() ([]byte, error) { return nil, errEncode }

// MarshalBinary returns an error that matches [errors.ErrUnsupported], for encoding/gob and the like: see
// [Buf.MarshalJSON].
func (b Buf) MarshalBinary() ([]byte, error) {
	// Spec: BU-07 (missing descriptor support is ErrUnsupported)
	return nil, fmt.Errorf("%w: %w", errEncode, errors.ErrUnsupported)
}
