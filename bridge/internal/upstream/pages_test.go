package upstream_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

// TestPages: the pages of a listing that came are used if the rest does not come, and the status
// says why.
func TestPages(t *testing.T) {
	page := func(name, cursor string) string {
		return `{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}],"nextCursor":"` + cursor + `"}`
	}
	tests := map[string]struct {
		pages []string // by the number of requests before; the last stays
		tools string
		note  string // begins one of the notes; "" if there is none
	}{
		"a cursor that the server ignores": {[]string{page("a", "x")}, "s__a", "tools/list: the listing goes in circles"},
		"a circle of two":                  {[]string{page("a", "x"), page("b", "y"), page("a", "x")}, "s__a s__b", "tools/list: the listing goes in circles"},
		"the second page fails":            {[]string{page("a", "x"), "?no such cursor"}, "s__a", `tools/list: page 2 failed: "no such cursor"`},
		"the first again, then the end":    {[]string{page("a", "x"), page("a", "")}, "s__a", ""},
		"another of one name":              {[]string{page("a", "x"), `{"tools":[{"name":"a","inputSchema":{"type":"object","title":"b"}}]}`}, "s__a", "listed twice, with different definitions"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := rig.NewScript(nil)
			s.Pages("tools/list", tt.pages...)
			e := rig.Ready(t, s.Config("s"))
			if got := strings.Join(rig.Offered(e, t), " "); got != tt.tools {
				t.Errorf("tools %q, want %q", got, tt.tools)
			}
			st := e.Status()
			if st.Phase != status.Ready {
				t.Errorf("%+v", st)
			}
			said := ""
			for _, n := range st.Notes {
				said += n.Text
			}
			if !strings.HasPrefix(said, tt.note) || tt.note == "" && said != "" {
				t.Errorf("notes %q, want %q", said, tt.note)
			}
		})
	}
}
