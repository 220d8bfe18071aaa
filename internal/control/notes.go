package control

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// linesType is what a client accepts that wants to be told something while its request
// is carried out: a line for each note, and one with the outcome. A gateway that does
// not know it answers as ever.
const linesType = "application/x-ndjson"

// A line is one of such an answer.
type line struct {
	Note   json.RawMessage `json:"note,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

type noteKey struct{}

// Note tells the other side something while [Backend.Handle] runs with ctx, as far as it
// listens. It may be called concurrently.
func Note(ctx context.Context, v any) {
	if note, ok := ctx.Value(noteKey{}).(func(any)); ok {
		note(v)
	}
}

// Listens reports whether the other side listens to notes.
func Listens(ctx context.Context) bool { return ctx.Value(noteKey{}) != nil }

// notes answers a request in lines.
func (s *server) notes(w http.ResponseWriter, r *http.Request, params json.RawMessage) {
	w.Header().Set("Content-Type", linesType)
	var mu sync.Mutex
	over := false
	write := func(l line) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		over = l.Note == nil
		_ = json.NewEncoder(w).Encode(l) // an error means that the other side has gone
		_ = http.NewResponseController(w).Flush()
	}
	ctx := context.WithValue(r.Context(), noteKey{}, func(v any) {
		if b, err := json.Marshal(v); err == nil {
			write(line{Note: b})
		}
	})
	res, err := s.backend.Handle(ctx, r.PathValue("method"), params)
	if err == nil {
		var b []byte
		if b, err = json.Marshal(res); err == nil {
			write(line{Result: b})
			return
		}
	}
	write(line{Error: wired(err)})
}

// readLines reads such an answer.
func readLines(in io.Reader, result any, note func(json.RawMessage)) error {
	for d := json.NewDecoder(in); ; {
		var l line
		if err := d.Decode(&l); err != nil {
			return unanswered(err)
		}
		switch {
		case l.Error != nil:
			return l.Error
		case l.Note != nil:
			note(l.Note)
		default:
			return json.Unmarshal(l.Result, result)
		}
	}
}
