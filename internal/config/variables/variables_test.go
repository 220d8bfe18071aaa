package variables_test

import (
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config/variables"
)

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "a", "EMPTY": "", "NESTED": "${A}"}[name]
		return v, ok
	}
	for s, want := range map[string]string{
		"": "", "plain": "plain", "${A}": "a", "x${A}y${env:A}z": "xayaz", "${A:-b}": "a", "${NONE:-b}": "b", "${EMPTY:-b}": "b", "${EMPTY}": "", "${NONE:-}": "",
		"$$": "$", "$${A}": "${A}", "$": "$", "$A": "$A", "5$": "5$", "${NESTED}": "${A}", "${NONE:-${A}": "${A",
	} {
		if got, err := variables.Expand(s, lookup); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"${", "${A", "${}", "${input:x}", "${1}", "${A B}"} {
		if got, err := variables.Expand(s, lookup); err == nil {
			t.Errorf("%q: %q", s, got)
		}
	}
	_, err := variables.Expand("${NONE}", lookup)
	if _, ok := errors.AsType[*variables.UnsetError](err); !ok {
		t.Errorf("an unset variable: %v", err)
	}
}

func TestName(t *testing.T) {
	for s, want := range map[string]string{"api-key": "API_KEY", "X_1": "X_1", "1a": "VALUE_1A", "--": "VALUE_", "ü b": "B"} {
		if got := variables.Name(s); got != want || !variables.Is(got) {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
