package operation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app/operation"
)

type pair struct{ A, B int }

var (
	sum  = operation.New[pair, int]("sum")
	ping = operation.New[operation.None, string]("ping")
)

// An operation is the same with values and with JSON.
func TestTable(t *testing.T) {
	table := operation.Table{}
	sum.Add(table, func(_ context.Context, p pair) (int, error) {
		if p.A < 0 {
			return 0, operation.Misuse("%d is below 0", p.A)
		}
		return p.A + p.B, nil
	})
	operation.AddPlain(table, ping, func(context.Context) (string, error) { return "pong", nil })

	if n, err := sum.Ask(t.Context(), table, pair{1, 2}); n != 3 || err != nil {
		t.Errorf("%d, error %v", n, err)
	}
	if n, err := table.Handle(t.Context(), "sum", json.RawMessage(`{"A":1,"B":2}`)); n != 3 || err != nil {
		t.Errorf("%v, error %v", n, err)
	}
	if s, err := table.Handle(t.Context(), "ping", json.RawMessage("null")); s != "pong" || err != nil {
		t.Errorf("%v, error %v", s, err)
	}
	var misuse *operation.MisuseError
	if _, err := sum.Ask(t.Context(), table, pair{A: -1}); !errors.As(err, &misuse) {
		t.Errorf("error %v", err)
	}
	for name, err := range map[string]error{
		"read the request":          second(table.Handle(t.Context(), "sum", json.RawMessage(`[]`))),
		`does not know "nothing"`:   second(table.Handle(t.Context(), "nothing", nil)),
		`does not know "different"`: second(operation.New[operation.None, int]("different").Ask(t.Context(), table, operation.None{})),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %s", err, name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
