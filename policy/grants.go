package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// A Grant is one entry of the grants file: who gets what. A pattern is a
// literal, or a literal with * at its end, which stands for anything. The pack
// grants allows what grants say.
type Grant struct {
	// To names who: the id of a principal, role:NAME, or * for everybody. Those of a tenant
	// are TENANT/ID, role:TENANT/NAME and TENANT/*, those of any role:*/NAME and */*.
	To []string `json:"to"`
	// Tools are patterns of tools' names, server__tool; Servers are names of
	// servers, all of whose tools, prompts, resources, skills and methods are granted.
	Tools   []string `json:"tools,omitempty"`
	Servers []string `json:"servers,omitempty"`
	// Groups are names of groups: what is in one is granted as what a server has is.
	Groups []string `json:"groups,omitempty"`
	// Except are patterns of names, and of URIs, that this grant does not grant.
	Except []string `json:"except,omitempty"`
	// Always are patterns of names of tools whose calls a person has approved once
	// and for all: the pack approve does not ask about them. They are not granted by
	// that.
	Always []string `json:"always,omitempty"`
	// Resources are patterns of URIs, Prompts of names, server__prompt.
	Resources []string `json:"resources,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	// Skills are patterns of skills, SERVER/PATH.
	Skills []string `json:"skills,omitempty"`
	// Methods are patterns of methods that MCP does not have, of all servers that list
	// them, or of one: server__method.
	Methods []string `json:"methods,omitempty"`
	// Agents are patterns of the tools that agents have themselves, agent__tool.
	Agents []string `json:"agents,omitempty"`
	// Asks say what servers may ask of the client while it uses what this grant
	// grants, besides forms: roots, sampling, secrets (forms that ask for one).
	Asks []string `json:"asks,omitempty"`
}

// An EntryError says what is wrong with one grant, label or rate limit.
type EntryError struct {
	Entry string // such as grants[0] or labels.files__*
	Field string // such as tools[1]; "" for the entry as a whole
	Err   error
}

// Error begins with the place of what is wrong.
func (e *EntryError) Error() string {
	return strings.TrimSuffix(e.Entry+"."+e.Field, ".") + ": " + e.Err.Error()
}

// Unwrap returns what is wrong, without its place.
func (e *EntryError) Unwrap() error { return e.Err }

// CheckGrants returns all that is wrong with the grants, in their order.
// [Load] refuses grants for which it returns anything.
func CheckGrants(grants []Grant) []*EntryError {
	var problems []*EntryError
	for i, g := range grants {
		wrong := func(field string, err error) {
			problems = append(problems, &EntryError{fmt.Sprintf("grants[%d]", i), field, err})
		}
		check := checkEach(wrong)
		check("to", g.To, tables.CheckSubject)
		check("tools", g.Tools, checkTool)
		check("servers", g.Servers, checkServer)
		check("groups", g.Groups, checkGroup)
		check("except", g.Except, checkPattern)
		check("always", g.Always, checkTool)
		check("resources", g.Resources, checkPattern)
		check("prompts", g.Prompts, checkPattern)
		check("skills", g.Skills, checkPattern)
		check("methods", g.Methods, checkPattern)
		check("agents", g.Agents, checkTool)
		check("asks", g.Asks, checkAsk)
		if len(g.To) == 0 {
			wrong("to", tables.ErrNobody)
		}
		if len(g.Tools)+len(g.Servers)+len(g.Groups)+len(g.Always)+len(g.Resources)+len(g.Prompts)+len(g.Skills)+len(g.Methods)+len(g.Agents) == 0 {
			wrong("", errors.New("grants nothing; add tools, servers, groups, resources, prompts, skills, methods or agents"))
		}
	}
	return problems
}

// checkEach returns a check of the values of a field, one by one, which tells wrong what it
// finds.
func checkEach(wrong func(field string, err error)) func(field string, values []string, check func(string) error) {
	return func(field string, values []string, check func(string) error) {
		for i, v := range values {
			if err := check(v); err != nil {
				wrong(fmt.Sprintf("%s[%d]", field, i), err)
			}
		}
	}
}

func checkPattern(p string) error { return match.Pattern(p).Check() }

func checkTool(tool string) error {
	if err := checkPattern(tool); err != nil {
		return err
	}
	literal, open := match.Pattern(tool).Cut()
	switch {
	case !open:
	case literal == "":
		return nil // all tools
	case strings.Contains(literal, "__"):
		literal += "x"
	default: // the beginning of a server's name
		literal = strings.TrimSuffix(literal, "_") + "__x"
	}
	if _, err := gate.ParseToolName(literal); err != nil {
		return fmt.Errorf("pattern %q matches no tool; expected server__tool, or its beginning and *", tool)
	}
	return nil
}

func checkServer(server string) error {
	_, err := gate.NewToolName(server, "x")
	return err
}

// asks are what a grant can say that servers may ask of the client.
var asks = []string{"roots", "sampling", "secrets"}

func checkAsk(ask string) error {
	if !slices.Contains(asks, ask) {
		return fmt.Errorf("%q is not a kind of request that a server sends; expected %s", ask, strings.Join(asks, ", "))
	}
	return nil
}

var groupName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

func checkGroup(group string) error {
	if !groupName.MatchString(group) {
		return errors.New("a group is named with lower-case letters, digits and -")
	}
	return nil
}

// newIndex returns the index of grants by what they grant.
func newIndex(grants []Grant) tables.Index {
	ix := tables.Index{}
	order := 0
	for _, g := range grants {
		except := tables.NewMatcher(g.Except...)
		for _, to := range g.To {
			row := ix.Row(to)
			next := func(what string) *tables.Entry {
				order++
				return &tables.Entry{Order: order, Reason: ast.StringTerm(what + " is granted to " + to), Except: except, Asks: g.Asks}
			}
			for _, named := range []struct {
				kind     string
				patterns []string
			}{
				{"tools", g.Tools}, {"always", g.Always}, {"resources", g.Resources}, {"prompts", g.Prompts},
				{"skills", g.Skills}, {"methods", g.Methods}, {"agents", g.Agents},
			} {
				for _, pattern := range named.patterns {
					row.Add(named.kind, pattern, next(pattern))
				}
			}
			for _, server := range g.Servers {
				row.AddServer(server, next("server "+server))
			}
			for _, group := range g.Groups {
				row.AddGroup(group, next("group "+group))
			}
		}
	}
	return ix
}

// readGrants returns an index of grants that a test has put in the place of data.grants.
func readGrants(list ast.Value) (tables.Index, error) {
	grants, err := tables.Entries[Grant]("grants", list)
	if err != nil {
		return nil, err
	}
	if problems := CheckGrants(grants); problems != nil {
		return nil, fmt.Errorf("data.%w", problems[0])
	}
	return newIndex(grants), nil
}
