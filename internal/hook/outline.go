package hook

import (
	"bytes"
	"encoding/json"
	"slices"
)

// outlined are the members that name an event and its session.
var outlined = []string{"hook_event_name", "session_id", "agent_id", "tool_name", "tool_use_id"}

// Outline returns, as an object, the members that name an event and its session. The event may be cut off, nested too deep, or no JSON at all.
func Outline(event []byte) json.RawMessage {
	found := make(map[string]string)
	depth, key := 0, ""
	for i := 0; i < len(event); i++ {
		switch event[i] {
		case '{', '[':
			depth++
			key = ""
		case '}', ']':
			depth--
		case ',':
			key = ""
		case '"':
			end := stringEnd(event[i:])
			if end == 0 {
				return marshalled(found)
			}
			var text string
			whole := json.Unmarshal(event[i:i+end], &text) == nil
			i += end - 1
			switch {
			case depth != 1 || !whole:
			case bytes.HasPrefix(bytes.TrimLeft(event[i+1:], " \t\r\n"), []byte(":")):
				key = text
			case slices.Contains(outlined, key) && found[key] == "":
				found[key] = text
			}
		}
	}
	return marshalled(found)
}

// stringEnd returns the length of the JSON string that b begins with; 0 if it does not end.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

func marshalled(found map[string]string) json.RawMessage {
	b, _ := json.Marshal(found) // of texts alone
	return b
}

// Decides reports whether an event is of a call that has not been made yet, or cannot be
// told from one.
func Decides(event []byte) bool {
	var e struct {
		Name string `json:"hook_event_name"`
	}
	_ = json.Unmarshal(Outline(event), &e) // it is an object of texts
	return e.Name == "" || e.Name == "PreToolUse" || e.Name == "BeforeTool"
}
