package buf_test

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/coir-go/coir/buf"
)

// A Buf cannot be encoded, alone or inside another value. The error says so, and the buffer stays with its owner.
//
// Spec: BU-07 (missing descriptor support is ErrUnsupported)
func TestBufIsNotEncoded(t *testing.T) {
	type frame struct {
		Number int
		Body   buf.Buf
	}
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 1, opt)
		b := with(t, p, "hello")
		for name, v := range map[string]any{
			"alone": b, "pointer": &b, "in a struct": frame{1, b}, "in a slice": []buf.Buf{b}, "zero": buf.Buf{},
		} {
			_, errJSON := json.Marshal(v)
			errGob := gob.NewEncoder(io.Discard).Encode(v)
			for _, err := range []error{errJSON, errGob} {
				if err == nil || !strings.Contains(err.Error(), "buf: a Buf names memory") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if !errors.Is(errGob, errors.ErrUnsupported) {
				t.Errorf("%s: %v", name, errGob)
			}
		}
		if string(b.Bytes()) != "hello" {
			t.Errorf("after decoding, the buffer is %v, want one with hello", b)
		}
		b.Release()
	})
}
