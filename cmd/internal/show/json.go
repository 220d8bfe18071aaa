package show

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/wasmgate/wasmgate/internal/escaped"
)

// JSON writes a value so that a terminal shows it as it is: texts of servers and clients are in it.
func JSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, escaped.JSON(b.Bytes()))
	return err
}
