package message

import (
	"bytes"
	"encoding/json"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// Peek returns what a lenient parser makes of the beginning of a message. It
// is used for nothing but the answer and the record.
func Peek(body []byte) (id []byte, method, name string) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if t, _ := d.Token(); t != json.Delim('{') {
		return nil, "", ""
	}
	members(d, func(key string, value json.Token) (entered bool) {
		text, isText := value.(string)
		number, isNumber := value.(json.Number)
		switch {
		case key == "method":
			method = text
		case key == "id" && isText && len(text) <= mcp.MaxID:
			id = mcp.MustJSON(text)
		case key == "id" && isNumber && len(number) <= mcp.MaxID:
			id = []byte(number)
		case key == "params" && value == json.Delim('{'):
			members(d, func(key string, value json.Token) bool {
				if text, ok := value.(string); ok && (key == "name" || key == "uri") {
					name = text
				}
				return false
			})
			return true
		}
		return false
	})
	return id, method, name
}

// members gives f the members of the object that d has entered, until something is wrong. Of an
// array or object f gets the opening delimiter; the rest is skipped unless f has entered it.
func members(d *json.Decoder, f func(key string, value json.Token) (entered bool)) {
	for d.More() {
		key, _ := d.Token()
		value, err := d.Token()
		if err != nil {
			return
		}
		name, _ := key.(string)
		if _, ok := value.(json.Delim); !f(name, value) && ok {
			for depth := 1; depth > 0; {
				delim, err := nextDelim(d)
				if err != nil {
					return
				}
				if delim == '{' || delim == '[' {
					depth++
				} else {
					depth--
				}
			}
		}
	}
	_, _ = d.Token() // the end of the object
}

func nextDelim(d *json.Decoder) (json.Delim, error) {
	for {
		t, err := d.Token()
		if err != nil {
			return 0, err
		}
		if delim, ok := t.(json.Delim); ok {
			return delim, nil
		}
	}
}
