package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
)

// getGrants also says by ETag which state of the file it is.
func (c *Console) getGrants(w http.ResponseWriter, r *http.Request) error {
	all, seen, err := policydata.SeeGrants(r.Context(), c.app.Policies.Grants())
	if err != nil {
		return err
	}
	list := make([]policy.Grant, 0, len(all)) // whose names in JSON are those of the file
	for _, g := range all {
		list = append(list, policy.Grant(g))
	}
	w.Header().Set("ETag", strconv.Quote(seen))
	return answer(w, list, nil)
}

// putGrants puts the whole list in the place of the one that If-Match names (RFC 9110, 13.1.1).
func (c *Console) putGrants(w http.ResponseWriter, r *http.Request) error {
	seen, err := strconv.Unquote(r.Header.Get("If-Match"))
	if err != nil {
		return &misused{"If-Match has to be the ETag of the grants as they were seen"}
	}
	var list []policy.Grant
	if err := read(r, &list); err != nil {
		return err
	}
	next := make([]policydata.Grant, 0, len(list))
	for _, g := range list {
		next = append(next, policydata.Grant(g))
	}
	if err := c.setGrants(r.Context(), seen, next); err != nil {
		return err
	}
	return c.getGrants(w, r)
}

// setGrants puts grants in place. Each that comes or goes is decided on, and recorded, by itself.
func (c *Console) setGrants(ctx context.Context, seen string, next []policydata.Grant) error {
	now, is, err := policydata.SeeGrants(ctx, c.app.Policies.Grants())
	if err != nil {
		return err
	}
	if is != seen {
		return policydata.ErrGrantsChanged
	}
	for _, g := range next {
		if len(g.To) == 0 || g.Empty() {
			return &misused{"a grant names who, and what"}
		}
	}
	for _, change := range []struct {
		op       string
		of, less []policydata.Grant
	}{{"grants.grant", next, now}, {"grants.revoke", now, next}} {
		for _, g := range change.of {
			if slices.ContainsFunc(change.less, g.Equal) {
				continue
			}
			if err := c.may(ctx, "admin/grant", change.op, g.String(), true); err != nil {
				return err
			}
		}
	}
	return c.app.Policies.SetGrants(ctx, seen, next)
}

func (c *Console) grantsPage(w http.ResponseWriter, r *http.Request) error {
	all, seen, err := policydata.SeeGrants(r.Context(), c.app.Policies.Grants())
	if err != nil {
		return err
	}
	used := make(map[use]int)
	p, err := c.index.Each(r.Context(), index.Query{Event: gate.Done, Code: codes.OK, Since: time.Now().AddDate(0, 0, -7)}, func(r index.Row) bool {
		used[use{gate.Action(r.Action), r.Server, r.Tool, r.Tenant, r.Principal, r.Roles}]++
		return true
	})
	if err != nil {
		return err
	}
	var kinds []string
	for _, k := range grantKinds {
		kinds = append(kinds, k.name)
	}
	rows := grantRows(all, used)
	return c.show(w, r, "grants", "Grants", map[string]any{"Rows": rows, "Matrix": matrixOf(all, rows, used), "File": c.status().Grants, "Seen": seen, "Kinds": kinds, "Names": c.grantable(), "Indexed": p})
}

// grantable are the names of servers and tools that there are.
func (c *Console) grantable() (names []string) {
	for _, s := range c.status().Servers {
		names = append(names, s.Server)
	}
	for _, t := range c.app.Inventory.KnownTools() {
		names = append(names, t.Name.String())
	}
	slices.Sort(names)
	return names
}

// grantPage grants what a form names, or revokes a row of the page.
func (c *Console) grantPage(w http.ResponseWriter, r *http.Request) error {
	at := slices.IndexFunc(grantKinds, func(k grantKind) bool { return k.name == r.PostFormValue("kind") })
	pattern := strings.TrimSpace(r.PostFormValue("pattern"))
	if at < 0 || pattern == "" {
		return &misused{"the form names nothing that can be granted"}
	}
	kind := grantKinds[at]
	all, _, err := policydata.SeeGrants(r.Context(), c.app.Policies.Grants()) // if it differs from what was seen, nothing is done
	if err != nil {
		return err
	}
	what := "granted"
	if entry := r.PostFormValue("entry"); entry != "" {
		i, err := strconv.Atoi(entry)
		if err != nil || i < 0 || i >= len(all) {
			return policydata.ErrGrantsChanged
		}
		what = "revoked"
		all = slices.Clone(all)
		of := kind.patterns(&all[i])
		*of = slices.DeleteFunc(slices.Clone(*of), func(p string) bool { return p == pattern })
		if kind.name == "tools" {
			all[i].Always = slices.DeleteFunc(slices.Clone(all[i].Always), func(p string) bool { return p == pattern })
		}
		if all[i].Empty() {
			all = slices.Delete(all, i, i+1)
		}
	} else {
		to := strings.TrimSpace(r.PostFormValue("to"))
		if to == "" {
			return &misused{"the form does not say to whom"}
		}
		g := policydata.Grant{To: []string{to}}
		*kind.patterns(&g) = []string{pattern}
		all = append(slices.Clone(all), g)
	}
	if err := c.setGrants(r.Context(), r.PostFormValue("seen"), all); err != nil {
		return err
	}
	return c.done(w, r, "/ui/grants", fmt.Sprintf("%s: %s %s", what, kind.name, pattern))
}

// A grantKind is a key of a grant.
type grantKind struct {
	name     string
	patterns func(*policydata.Grant) *[]string
	matches  func(pattern string, u use) bool // nil: it is not known here
}

var grantKinds = []grantKind{
	{"tools", func(g *policydata.Grant) *[]string { return &g.Tools }, func(p string, u use) bool { return u.action == gate.CallTool && match.Pattern(p).Matches(u.tool) }},
	{"servers", func(g *policydata.Grant) *[]string { return &g.Servers }, func(p string, u use) bool { return u.server == p }},
	{"groups", func(g *policydata.Grant) *[]string { return &g.Groups }, nil},
	{"prompts", func(g *policydata.Grant) *[]string { return &g.Prompts }, func(p string, u use) bool { return u.action == gate.GetPrompt && match.Pattern(p).Matches(u.tool) }},
	{"resources", func(g *policydata.Grant) *[]string { return &g.Resources }, func(p string, u use) bool { return u.action == gate.ReadResource && match.Pattern(p).Matches(u.tool) }},
	{"methods", func(g *policydata.Grant) *[]string { return &g.Methods }, func(p string, u use) bool { return match.Pattern(p).Matches(string(u.action)) }},
	{"agents", func(g *policydata.Grant) *[]string { return &g.Agents }, func(p string, u use) bool { return u.action == actions.AgentCall && match.Pattern(p).Matches(u.tool) }},
}

// use is what calls are counted by.
type use struct {
	action                  gate.Action
	server, tool            string
	tenant, principal, role string // roles, as the index has them
}

// of reports whether the caller is one to whom a grant is given.
func (u use) of(to []string) bool {
	var roles []string
	_ = json.Unmarshal([]byte(u.role), &roles) // "" for none
	return match.Listed(to, u.tenant, u.principal, roles)
}

// grantRow is one pattern of one grant.
type grantRow struct {
	Entry             int // of the file
	To, Kind, Pattern string
	Except            []string
	Used              int // by calls of the last week that it let pass; -1: it is not known
}

func grantRows(all []policydata.Grant, used map[use]int) (rows []grantRow) {
	for i, g := range all {
		for _, kind := range grantKinds {
			for _, p := range *kind.patterns(&g) {
				rows = append(rows, grantRow{Entry: i, To: strings.Join(g.To, ", "), Kind: kind.name, Pattern: p, Except: g.Except, Used: kind.usedBy(p, []policydata.Grant{g}, used)})
			}
		}
	}
	return rows
}

// usedBy counts the calls that a pattern of some grants has let pass; -1 if that is not known.
func (k grantKind) usedBy(pattern string, grants []policydata.Grant, used map[use]int) (calls int) {
	if k.matches == nil {
		return -1
	}
	for u, n := range used {
		if k.matches(pattern, u) && slices.ContainsFunc(grants, func(g policydata.Grant) bool {
			return u.of(g.To) && !slices.ContainsFunc(g.Except, func(p string) bool { return match.Pattern(p).Matches(u.tool) })
		}) {
			calls += n
		}
	}
	return calls
}

// A grantMatrix is who is granted what, as far as it can be taken in at one look.
type grantMatrix struct {
	Who  []string
	What []matrixRow
	Left bool // there is more than it shows
}

// matrixRow is what one pattern is to each of those who have a column.
type matrixRow struct {
	Kind, Pattern string
	Used          int
	Cells         []string // "": not granted
}

const (
	matrixColumns = 12
	matrixRows    = 200
)

func matrixOf(all []policydata.Grant, rows []grantRow, used map[use]int) (m grantMatrix) {
	column := make(map[string]int)
	for _, g := range all {
		for _, who := range g.To {
			if _, there := column[who]; there {
				continue
			}
			if len(m.Who) == matrixColumns {
				m.Left = true
				continue
			}
			column[who] = len(m.Who)
			m.Who = append(m.Who, who)
		}
	}
	type what struct{ kind, pattern string }
	at, by := make(map[what]int), make(map[what][]policydata.Grant)
	for _, r := range rows {
		i, there := at[what{r.Kind, r.Pattern}]
		if !there {
			if len(m.What) == matrixRows {
				m.Left = true
				continue
			}
			i = len(m.What)
			at[what{r.Kind, r.Pattern}] = i
			m.What = append(m.What, matrixRow{Kind: r.Kind, Pattern: r.Pattern, Cells: make([]string, len(m.Who))})
		}
		by[what{r.Kind, r.Pattern}] = append(by[what{r.Kind, r.Pattern}], all[r.Entry])
		granted := "yes"
		if len(r.Except) > 0 {
			granted = "but not " + strings.Join(r.Except, ", ")
		}
		for _, who := range all[r.Entry].To {
			if c, there := column[who]; there && m.What[i].Cells[c] != "yes" {
				m.What[i].Cells[c] = granted
			}
		}
	}
	for i, row := range m.What {
		for _, kind := range grantKinds {
			if kind.name == row.Kind {
				m.What[i].Used = kind.usedBy(row.Pattern, by[what{row.Kind, row.Pattern}], used)
			}
		}
	}
	return m
}
