package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/internal/control"
)

// telling is a backend that sends notes while it carries a request out, and may do so later.
type telling struct {
	fails bool
	later chan func()
}

func (b *telling) Handle(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
	for i := range 3 {
		control.Note(ctx, i)
	}
	b.later <- func() { control.Note(ctx, "late") }
	if b.fails {
		return nil, &control.Error{Code: "broken", Message: "it broke"}
	}
	return control.Listens(ctx), nil
}

func (b *telling) Client(string, []string) (func(context.Context, io.Reader, io.Writer) error, error) {
	return nil, errors.New("no clients")
}

// TestNotes: a caller that listens gets what the gateway says meanwhile, in order and before the
// outcome; a caller that does not listen only gets the outcome.
func TestNotes(t *testing.T) {
	for name, tt := range map[string]struct {
		listens, fails bool
		want           []string
	}{
		"who listens is told":                       {true, false, []string{"0", "1", "2"}},
		"who does not is not":                       {false, false, nil},
		"an error comes after the notes":            {true, true, []string{"0", "1", "2"}},
		"an error comes to who does not listen too": {false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := &telling{fails: tt.fails, later: make(chan func(), 1)}
			state := t.TempDir()
			serveBackend(t, state, b)
			c := dial(t, state)
			var told []string
			var note func(json.RawMessage)
			if tt.listens {
				note = func(m json.RawMessage) { told = append(told, string(m)) }
			}
			var heard bool
			err := c.CallNoted(t.Context(), "x", nil, &heard, note)
			(<-b.later)() // sends nothing, because the outcome was sent already
			if e := new(control.Error); tt.fails != errors.As(err, &e) || tt.fails && e.Code != "broken" {
				t.Errorf("the error is %v", err)
			}
			if !tt.fails && heard != tt.listens || !slices.Equal(told, tt.want) {
				t.Errorf("told %v, and the other side heard %s", told, fmt.Sprint(heard))
			}
		})
	}
}
