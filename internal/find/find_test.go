package find_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/find"
)

func TestSearch(t *testing.T) {
	const offered, own, title, description = "files__read_text_file", "read_text_file", "Read a Text", "Returns the content, as UTF-8."
	for query, want := range map[string]bool{
		"":                                true,
		"READ":                            true,
		"text read":                       true,
		"files utf":                       true,
		"  content ":                      true,
		"read_text_file":                  true,
		"files__read":                     true,
		"read binary":                     false,
		"file content of nothing":         false,
		"__":                              false,
		"files__read_text_file_and_more":  false,
		"a read of the text: content, as": false,
	} {
		if got := find.NewSearch(query).Finds(offered, own, title, description); got != want {
			t.Errorf("%q: found = %t", query, got)
		}
	}
}

func TestResolve(t *testing.T) {
	named := func(server, local, offered string) *gate.Tool {
		return &gate.Tool{Name: gate.ToolName{Server: server, Tool: strings.ReplaceAll(local, ".", "_")}, Local: local, Offered: offered}
	}
	read, other := named("files", "read", "files__read"), named("notes", "read", "notes__read")
	list, bare := named("files", "list.all", "files__list_all"), named("web", "fetch", "fetch")
	hidden := named("mail", "send", "mail__send")
	known := []*gate.Tool{read, other, list, bare, hidden}
	visible := []*gate.Tool{read, other, list, bare}
	for name, tt := range map[string]struct {
		want      string
		ambiguous []string
	}{
		"files__read": {"files__read", nil},
		"fetch":       {"fetch", nil},
		"web__fetch":  {"web__fetch", nil},
		"list.all":    {"files__list_all", nil},
		"list_all":    {"files__list_all", nil},
		"read":        {"", []string{"files__read", "notes__read"}},
		"send":        {"send", nil}, // hidden: the result does not reveal that there is one
		"mail__send":  {"mail__send", nil},
		"nothing":     {"nothing", nil},
	} {
		got, err := find.Resolve(name, known, visible)
		var several *find.AmbiguousError
		if errors.As(err, &several); got != tt.want || (several == nil) != (tt.ambiguous == nil) || several != nil && !cmp.Equal(several.Candidates, tt.ambiguous) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
