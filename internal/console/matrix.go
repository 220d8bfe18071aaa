package console

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/match"
)

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
