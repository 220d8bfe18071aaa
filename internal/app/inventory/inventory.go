// Package inventory lists what servers offer: tools, prompts, resources, methods and skills, to whom, and why
// something is not offered.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/traits"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/find"
	"github.com/wasmgate/wasmgate/internal/scan/report"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// The operations of an inventory.
var (
	Tools    = operation.New[Request, []Tool]("tools")
	Features = operation.New[Request, []Tool]("features")
	Skills   = operation.New[Request, []Skill]("skills")
	Scan     = operation.New[ScanRequest, *report.Report]("scan")
)

// A Request asks what the principal As is offered; "" is the local one. With All it asks for the rest, too.
type Request struct {
	As  string `json:"as"`
	All bool   `json:"all"`
}

// A ScanRequest names a server to scan; "" is all.
type ScanRequest struct {
	Server string `json:"server"`
}

// Gateway is the one whose servers these are.
type Gateway interface {
	Fleet() gateway.Fleet
	Pins() (gate.Pins, error)
	Policy() *policy.Engine
	Tools(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error)
	Features(ctx context.Context, who *gate.Principal, f gate.Feature) ([]*gate.Tool, error)
}

// Inventory is that of one gateway.
type Inventory struct {
	Gateway Gateway
	Config  func() *config.Config // in use
	// Scan scans what a server declares, or all if server is "": see [report.Servers].
	Scan func(ctx context.Context, server string) (*report.Report, error)
}

// Operations adds those of the inventory to a table.
func (i *Inventory) Operations(t operation.Table) {
	Tools.Add(t, func(ctx context.Context, r Request) ([]Tool, error) { return i.Tools(ctx, r.As, r.All) })
	Features.Add(t, func(ctx context.Context, r Request) ([]Tool, error) { return i.Features(ctx, r.As, r.All) })
	Skills.Add(t, func(ctx context.Context, r Request) ([]Skill, error) { return i.Skills(ctx, r.As) })
	Scan.Add(t, func(ctx context.Context, r ScanRequest) (*report.Report, error) { return i.Scan(ctx, r.Server) })
}

// A Tool is a tool as the commands show it, or a prompt, a resource, a template of
// resources or a method.
type Tool struct {
	Kind        string   `json:"kind,omitempty"`       // prompt, resource, template or method; "" for a tool
	Name        string   `json:"name"`                 // as offered
	Local       string   `json:"local_name,omitempty"` // its name at the server
	Server      string   `json:"server"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Groups      []string `json:"groups,omitempty"`
	Offered     bool     `json:"offered"`
	Why         string   `json:"why,omitempty"` // it is not offered
	// Verdict says which calls could pass, Condition on what that depends, in
	// words. Both are absent unless all tools are asked for.
	Verdict    study.Verdict   `json:"verdict,omitempty"`
	Condition  string          `json:"condition,omitempty"`
	Sandboxed  bool            `json:"sandboxed"`
	Digest     string          `json:"digest"`
	Definition json.RawMessage `json:"definition,omitempty"`
	Traits     *traits.Traits  `json:"traits,omitempty"` // absent unless all tools are asked for
}

// Described returns the tool as policies see it; nil without Traits.
func (t Tool) Described() (*gate.Tool, error) {
	if t.Traits == nil {
		return nil, nil
	}
	return t.Traits.Tool(t.Name, t.Digest, t.Definition)
}

// KnownTools are the tools of all servers as they were last listed, without waiting for any.
func (i *Inventory) KnownTools() []*gate.Tool {
	return i.Gateway.Fleet().KnownFeatures(gate.FeatureTool)
}

// Tools returns what the principal as is offered, and if all is true the rest
// too. It waits as a listing does.
func (i *Inventory) Tools(ctx context.Context, as string, all bool) ([]Tool, error) {
	ctx = i.Gateway.Fleet().Settle(ctx)
	who, err := naming.Principal(i.Config(), as)
	if err != nil {
		return nil, err
	}
	shown, err := i.Gateway.Tools(ctx, who)
	if err != nil {
		return nil, err
	}
	visible := make(map[string]*gate.Tool, len(shown)) // as the principal sees it, which may be narrowed
	for _, t := range shown {
		visible[t.Offered] = t
	}
	tools := []Tool{}
	for _, t := range i.Gateway.Fleet().Tools(ctx) {
		seen := visible[t.Offered]
		if seen == nil && !all {
			continue
		}
		definition := t.Definition
		if seen != nil {
			definition = seen.Definition
		}
		tool := Tool{
			Name: t.Offered, Local: t.Local, Server: t.Name.Server, Title: find.Title(t), Description: t.Definition.Get("description").Text(),
			Groups: t.Groups, Offered: seen != nil, Sandboxed: t.Sandboxed, Digest: t.Digest, Definition: definition.Raw(),
		}
		if !tool.Offered {
			tool.Why = i.whyNot(t, who)
		}
		if all {
			tool.Traits = traits.Of(t)
			if tool.Verdict, tool.Condition, err = study.VerdictOf(ctx, i.Gateway.Policy(), who, t); err != nil {
				return nil, err
			}
		}
		tools = append(tools, tool)
	}
	if !all {
		return tools, nil
	}
	for _, s := range i.Gateway.Fleet().Status() {
		for _, n := range s.Notes {
			if n.Quarantined && n.Feature == gate.FeatureTool {
				tools = append(tools, Tool{Name: s.Server + "__" + n.Tool, Server: s.Server, Why: "quarantined: " + n.Text})
			}
		}
	}
	return tools, nil
}

// Definitions returns those of a server's tools, by their qualified names.
func Definitions(of []Tool, server string) (map[string]gate.Doc, error) {
	all := make(map[string]gate.Doc)
	for _, t := range of {
		if t.Server != server || len(t.Definition) == 0 {
			continue
		}
		name := t.Name
		if !strings.HasPrefix(name, server+"__") {
			name = server + "__" + name
		}
		d, err := gate.ParseDoc(t.Definition)
		if err != nil {
			return nil, fmt.Errorf("definition of %s: %w", name, err)
		}
		all[name] = d
	}
	return all, nil
}

// Matches reports whether the tool is in one of the groups, if there are any, and a
// search finds it.
func (t Tool) Matches(groups []string, s find.Search) bool {
	in := len(groups) == 0 || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(t.Groups, g) })
	return in && s.Finds(t.Name, t.Local, t.Title, t.Description)
}

// whyNot says why a tool is not offered to a principal.
func (i *Inventory) whyNot(t *gate.Tool, who *gate.Principal) string {
	if t.AppOnly {
		return "only for the app of " + t.Name.Server + ": offered to clients that show it"
	}
	if why := i.quarantine(t); why != "" && t.Feature != gate.FeatureResource { // which come and go with what they are of
		return "quarantined: " + why
	}
	if !who.Groups.Has(t) {
		return "in none of the groups that " + who.ID + " is offered"
	}
	return "no policy allows it for " + who.ID
}

// quarantine returns why a feature is offered to no one, or "".
func (i *Inventory) quarantine(t *gate.Tool) string {
	if t.Quarantine != "" {
		return t.Quarantine
	}
	if pins, err := i.Gateway.Pins(); err == nil {
		if err := pins.Check(t); err != nil {
			return err.Error()
		}
	}
	return ""
}
