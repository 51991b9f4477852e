package buf

import (
	"errors"
	"fmt"
)

// errEncode is the error of encoding a Buf. Without the methods below, encoding/json would encode a Buf as {}.
var errEncode = errors.New("buf: a Buf names memory of its process and cannot be encoded; encode the slice that Bytes " +
	"returns")

// MarshalJSON returns an error, because a Buf names memory of its process. A channel to another process returns this
// error when a Buf is sent. Send the slice that [Buf.Bytes] returns. The error is not [errors.ErrUnsupported], which
// encoding/json does not accept from a MarshalJSON since Go 1.27.
func (b Buf) MarshalJSON() ([]byte, error) { return nil, errEncode }

// MarshalBinary returns an error that matches [errors.ErrUnsupported], for encoders such as encoding/gob: see
// [Buf.MarshalJSON].
func (b Buf) MarshalBinary() ([]byte, error) {
	// Spec: BU-07 (missing descriptor support is ErrUnsupported)
	return nil, fmt.Errorf("%w: %w", errEncode, errors.ErrUnsupported)
}
