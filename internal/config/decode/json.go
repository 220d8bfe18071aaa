package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// JSON returns a value as JSON, with the order of keys and the digits of numbers that the file has. It
// fails numbers that JSON cannot write.
func (v Value) JSON() []byte {
	var b bytes.Buffer
	v.json(&b)
	return b.Bytes()
}

func (v Value) json(b *bytes.Buffer) {
	switch v.Kind {
	case tree.Null:
		b.WriteString("null")
	case tree.Boolean:
		b.WriteString(strings.ToLower(v.Text))
	case tree.Number:
		if !json.Valid([]byte(v.Text)) {
			v.Fail("is a number that JSON cannot write: use decimal digits")
		}
		b.WriteString(v.Text)
	case tree.List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			v.Place(item, fmt.Sprintf("%s[%d]", v.Path, i)).json(b)
		}
		b.WriteByte(']')
	case tree.Table:
		b.WriteByte('{')
		for i, f := range v.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			text(b, f.Key)
			b.WriteByte(':')
			v.Place(f.Value, tree.Join(v.Path, f.Key)).json(b)
		}
		b.WriteByte('}')
	default:
		text(b, v.Text)
	}
}

func text(b *bytes.Buffer, s string) {
	out, _ := json.Marshal(s) // a string cannot fail
	b.Write(out)
}
