package engine

import (
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/forms"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// Subject names what a query is about.
func Subject(q gate.Query) string {
	if actions.IsHostCall(q.Call.Action) {
		return string(q.Call.Action) + " of " + q.Tool.Name.String()
	}
	if forms.AsksSecret(q.Call.Action, q.Call.Args) {
		return SecretSubject(q)
	}
	if actions.IsPeerRequest(q.Call.Action) {
		return string(q.Call.Action) + " by server " + q.Tool.Name.Server
	}
	return q.Subject()
}

func SecretSubject(q gate.Query) string {
	return string(q.Call.Action) + " for a secret by server " + q.Tool.Name.Server
}

// Remedy returns what would allow what nothing allows: a command for a tool, a line of
// the grants file for what else grants can grant, and "" for the rest.
func (e *Engine) Remedy(q gate.Query) string {
	if !e.Granting {
		return ""
	}
	who := match.Name(q.Call.Who.Tenant, q.Call.Who.ID)
	if q.Tool.Feature == gate.FeatureMethod && !Within(q.Call.Action) {
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "")
	}
	if q.Tool.Skill != nil {
		return grantLine(who, "skills", q.Tool.Skill.Name, "")
	}
	switch a := q.Call.Action; a {
	case gate.CallTool:
		return remedy(q.Tool.Name.String(), who)
	case actions.AgentCall:
		return remedy("--agent "+q.Tool.Name.String(), who)
	case gate.Complete:
		if q.Tool.Feature != gate.FeaturePrompt {
			return "" // who can read what a template stands for is asked of each URI
		}
		return grantLine(who, "prompts", q.Subject(), "")
	case gate.GetPrompt, gate.ReadResource, gate.Subscribe:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "")
	case actions.Sample:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "sampling")
	case actions.ListRoots:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "roots")
	case actions.Elicit:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "secrets")
	default:
		return ""
	}
}

// grantKey is the key of the patterns of a feature in a grant.
func grantKey(f gate.Feature) string {
	switch f {
	case gate.FeaturePrompt:
		return "prompts"
	case gate.FeatureMethod:
		return "methods"
	case gate.FeatureResource, gate.FeatureTemplate:
		return "resources"
	default:
		return "tools"
	}
}

// grantLine says which line of the grants file grants what is named, and lets its
// server ask for what asks says; "" if who cannot be named, or if the pattern would
// match more.
func grantLine(who, key, name, asks string) string {
	if tables.ParseSubject(who).Kind != "id" || strings.Contains(name, "*") {
		return ""
	}
	if asks != "" {
		asks = ", asks: [" + asks + "]"
	}
	return fmt.Sprintf("write into the grants file: - {to: [%q], %s: [%q]%s}", who, key, name, asks)
}

// remedy returns the command that grants a tool, as its argument or flag says, or "" if who cannot be named.
func remedy(tool, who string) string {
	command := "wasmgate grant " + tool
	switch {
	case who == gate.Local().ID: // the default of the command
		return command
	case tables.ParseSubject(who).Kind != "id":
		return ""
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@:/+="
	if who == "" || strings.Trim(who, plain) != "" || who[0] == '-' {
		return command + " --to='" + strings.ReplaceAll(who, "'", `'\''`) + "'"
	}
	return command + " --to " + who
}

func NothingAllows(what, who string) string { return "no policy allows " + what + " for " + who }
