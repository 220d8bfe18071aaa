package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/console/pages"
	"github.com/wasmgate/wasmgate/internal/match"
)

// overviewHandlers serve the status of the gateway.
type overviewHandlers struct {
	*frame
	log *auditLog
}

func (h *overviewHandlers) getStatus(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, h.status(), nil)
}

func (h *overviewHandlers) overviewPage(w http.ResponseWriter, r *http.Request) error {
	calls, byCode, byTool, byWho := 0, map[string]int{}, map[string]int{}, map[string]int{}
	now := time.Now()
	hour := pages.LastHour(now)
	p, err := h.log.index.Each(r.Context(), index.Query{Event: gate.Done, Since: now.Add(-time.Hour)}, func(r index.Row) bool {
		calls++
		byCode[r.Code]++
		byTool[r.Tool]++
		byWho[match.Name(r.Tenant, r.Principal)]++
		hour.Add(r.Time, r.Code)
		return true
	})
	if err != nil {
		return err
	}
	s, ready := h.status(), 0
	for _, one := range s.Servers {
		if one.Error == "" {
			ready++
		}
	}
	return h.show(w, r, "overview", "Overview", map[string]any{
		"Status": s, "Problems": problemsOf(s), "Calls": calls, "Codes": counted(byCode), "Tools": counted(byTool), "Principals": counted(byWho), "Ready": ready,
		"Quarantined": quarantinedIn(s), "Chart": pages.Chart(hour), "Paused": slices.Contains(s.Paused, ""), "Indexed": p,
	})
}

// count is how often something was.
type count struct {
	Name string
	N    int
}

// mostOf is how many counts a table of the overview shows.
const mostOf = 8

// counted returns counts, the greatest first, at most mostOf.
func counted(of map[string]int) (all []count) {
	for name, n := range of {
		all = append(all, count{name, n})
	}
	slices.SortFunc(all, func(a, b count) int { return cmp.Or(b.N-a.N, strings.Compare(a.Name, b.Name)) })
	return all[:min(len(all), mostOf)]
}

// A trouble is what a person should look at.
type trouble struct{ Text, Page string }

// problemsOf lists them, each with the page that shows more.
func problemsOf(s *overview.Status) (all []trouble) {
	add := func(page, format string, args ...any) { all = append(all, trouble{fmt.Sprintf(format, args...), page}) }
	for _, p := range s.Problems {
		add("", "%s", p)
	}
	switch {
	case s.Approvals == 1:
		add("/ui/approvals", "A call needs approval.")
	case s.Approvals > 1:
		add("/ui/approvals", "%d calls need approval.", s.Approvals)
	}
	for _, one := range s.Servers {
		page := "/ui/servers/" + url.PathEscape(one.Server)
		if one.Error != "" {
			add(page, "Server %s: %s", one.Server, one.Error)
		}
		if one.Circuit != "" {
			add(page, "Server %s fails: its circuit is %s.", one.Server, one.Circuit)
		}
		for _, what := range one.Unenforced {
			add(page, "Server %s is not fully confined: %s", one.Server, what)
		}
		for _, name := range one.Quarantined {
			add("/ui/pins", "Server %s: %s needs approval.", one.Server, name)
		}
		for _, n := range one.Notes {
			if n.Quarantined && !slices.Contains(one.Quarantined, n.Tool) {
				add(page, "Server %s: %s %s", one.Server, n.Tool, n.Text)
			}
		}
	}
	return all
}
