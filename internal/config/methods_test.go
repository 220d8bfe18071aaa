package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
)

func TestMethods(t *testing.T) {
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("acme/m%d", i))
	}
	const at = "wasmgate.yaml:1: servers.x.methods"
	for name, tt := range map[string]struct {
		methods string
		want    []string
		err     string
	}{
		"nothing said":            {"", nil, ""},
		"some":                    {"acme/search, acme/index/$all", []string{"acme/search", "acme/index/$all"}, ""},
		"as many as there can be": {strings.Join(many[1:], ", "), many[1:], ""},
		"too many":                {strings.Join(many, ", "), nil, at + ": has 65 methods; at most 64 are allowed"},
		"a method of MCP":         {"acme/search, tools/call", nil, at + `[1]: "tools/call" begins with tools/, as methods of MCP or of the gateway do`},
		"a notification":          {"notifications/x", nil, at + `[0]: "notifications/x" begins with notifications/, as methods of MCP or of the gateway do`},
		"a pattern":               {`"acme/*"`, nil, at + `[0]: "acme/*" is not a method such as acme/search: letters, digits and _ . $ - in two parts or more, with / between them`},
		"one part":                {"search", nil, at + `[0]: "search" is not a method such as acme/search: letters, digits and _ . $ - in two parts or more, with / between them`},
		"with a server":           {"x__acme/search", nil, at + `[0]: "x__acme/search" holds "__", which stands between a server and its method`},
		"one twice":               {"acme/a, acme/a", nil, at + `[1]: "acme/a" is listed twice`},
		"a hidden character":      {`"acme/se\u200barch"`, nil, at + `[0]: "acme/se\u200barch" is not a method such as acme/search: letters, digits and _ . $ - in two parts or more, with / between them`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("wasmgate.yaml", []byte("servers: {x: {command: sh, methods: ["+tt.methods+"]}}\n"), options(t.TempDir()))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Servers[0].Methods; !slices.Equal(got, tt.want) {
				t.Errorf("methods %q, want %q", got, tt.want)
			}
			again, err := config.Parse("wasmgate.yaml", edit.Render(c.Servers), options(t.TempDir()))
			if err != nil || !slices.Equal(again.Servers[0].Methods, tt.want) {
				t.Errorf("written and read again: %v", err)
			}
		})
	}
}
