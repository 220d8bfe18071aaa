package policies_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/policy"
)

// Tools that carry out other tools are decided on like any tool. A configuration that offers them to no
// one gives a warning.
func TestRelayWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		packs []string
		rules string
		mode  string
		offer bool
		want  string // words of the warnings, one after the other
	}{
		"the packs as they come":     {nil, "", "only", true, ""},
		"nothing is offered":         {[]string{}, "", "off", false, ""},
		"nothing allows them":        {[]string{}, `allow contains "mail" if input.tool.server == "mail"`, "beside", true, "catalog.mode: beside jobs.offer: true"},
		"a rule allows them":         {[]string{}, `allow contains "relay" if input.tool.relay`, "beside", true, ""},
		"a rule allows them to some": {[]string{}, `allow contains "alice" if input.principal.id == "alice"`, "beside", false, ""},
		"a rule denies the one":      {nil, `deny contains "no jobs" if input.tool.server == "jobs"`, "only", true, "jobs.offer: true"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := policy.Load(t.Context(), fstest.MapFS{"a.rego": {Data: []byte("package wasmgate\n" + tt.rules)}}, policy.Options{Packs: tt.packs})
			if err != nil {
				t.Fatal(err)
			}
			cfg := &config.Config{Catalog: config.Catalog{Mode: tt.mode}, Jobs: config.Jobs{Offer: tt.offer}, Principals: []config.Principal{{ID: "alice"}}}
			problems := policies.RelayWarnings(t.Context(), cfg, e)
			var said []string
			for _, p := range problems {
				key, _, _ := strings.Cut(p.Message, " offers ")
				said = append(said, key)
			}
			if got := strings.Join(said, " "); got != tt.want {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
}
