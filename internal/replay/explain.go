package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// An Explainer says why recorded calls were decided as they were.
type Explainer struct {
	Log    string // the audit log
	Policy gateway.Policy
	Groups bool // whether the configuration has groups
	// Tools are those that are known now; an error means that they cannot be asked for.
	Tools func(context.Context) ([]inventory.Tool, error)
}

// Decided reports whether a policy was asked about the call of a record.
func Decided(record audit.Entry) bool {
	return record.Tool != "" && record.Principal != "" && (record.Code != "refused_lookup" || record.Effect != "")
}

// Explain explains the decision in a record.
func (x Explainer) Explain(ctx context.Context, record audit.Entry) (*study.Explanation, error) {
	engine, err := policy.Load(ctx, x.Policy.Files, x.Policy.Options)
	if err != nil {
		return nil, err
	}
	used, err := usedIn(ctx, x.Log, record)
	if err != nil {
		return nil, err
	}
	q, unknown, err := queryOf(record, used)
	if err != nil {
		return nil, err
	}
	if !x.Groups {
		maps.DeleteFunc(unknown, func(part, _ string) bool { return strings.HasSuffix(part, ".groups") })
	}
	if used == gate.FeatureTool {
		x.describe(ctx, q.Tool, record.ToolDigest, unknown)
	}
	d := gate.Decision{Effect: record.Effect, Reasons: record.Reasons, Revision: record.PolicyRevision}
	why, err := study.Explain(ctx, engine, study.Case{Query: q, Unknown: unknown, Decision: d})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExplain, err)
	}
	return &why, nil
}

// ErrExplain is in the error if the policy fails on a call.
var ErrExplain = errors.New("the decision cannot be explained")

// A MissingError says that a log has no such call.
type MissingError struct{ ID, Log string }

func (e *MissingError) Error() string {
	if e.ID == "" {
		return fmt.Sprintf("no refused call is recorded in %s", e.Log)
	}
	return fmt.Sprintf("no call %q is recorded in %s; wasmgate audit shows the records", e.ID, e.Log)
}

// FindRecord returns the last record of a call: its outcome, or that it was granted if it has not
// ended. id is that of the call, or a beginning that only one call has; with "" it is the newest call
// that was refused.
func FindRecord(ctx context.Context, file, id string) (audit.Entry, error) {
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return audit.Entry{}, fmt.Errorf("there is no audit log at %s yet", file)
	}
	var found, begins audit.Entry
	several := false
	named := func(e *audit.Entry) bool { // records about its approval may come later
		return e.ID != "" && strings.HasPrefix(e.ID, id) && e.Event != gate.EventApproval
	}
	for e, err := range audit.Read(ctx, file, audit.Filter{Choose: named, Denied: id == ""}) {
		var chain *audit.ChainError
		switch {
		case errors.As(err, &chain):
		case err != nil:
			return audit.Entry{}, err
		case e.ID == id:
			found = e
		default:
			several = several || begins.ID != "" && begins.ID != e.ID
			begins = e
		}
	}
	switch {
	case found.Seq != 0:
		return found, nil
	case begins.Seq == 0:
		return audit.Entry{}, &MissingError{id, file}
	case several && id != "":
		return audit.Entry{}, &MissingError{id + "... (several begin so)", file}
	}
	return begins, nil
}

const toolUnknown = "the tool's definition is not recorded, and no gateway runs that knows it"

// describe completes a tool with what is known about it now, if its definition has not changed since
// the call.
func (x Explainer) describe(ctx context.Context, t *gate.Tool, digest string, unknown map[string]string) {
	tools, err := x.Tools(ctx)
	if err != nil {
		return
	}
	found, err := DefinitionsOf(tools, nil)
	if err != nil {
		return
	}
	known := found[Key{t.Name.Server, digest}]
	if known == nil {
		return
	}
	t.Local, t.Annotations, t.Sandboxed, t.Capabilities = known.Local, known.Annotations, known.Sandboxed, known.Capabilities
	t.Pinned, t.Findings, t.Groups = known.Pinned, known.Findings, known.Groups
	maps.DeleteFunc(unknown, func(_, why string) bool { return why == toolUnknown })
}

// usedIn returns the feature that the call of a record used. The record of a server's request does not
// say: the server asks on behalf of the parent call.
func usedIn(ctx context.Context, log string, e audit.Entry) (gate.Feature, error) {
	action := e.Action
	if actions.IsPeerRequest(action) && e.Parent != "" {
		parent, err := FindRecord(ctx, log, e.Parent)
		if err != nil {
			return "", fmt.Errorf("the call for which %s was asked: %w", e.Action, err)
		}
		action = parent.Action
	}
	uri := strings.Contains(e.Tool, ":") // as no name has it
	switch {
	case action == gate.GetSkill || action == gate.ReadDirectory:
		return gate.FeatureSkill, nil
	case uri && action == gate.Complete:
		return gate.FeatureTemplate, nil
	case uri:
		return gate.FeatureResource, nil
	case action == gate.GetPrompt || action == gate.Complete:
		return gate.FeaturePrompt, nil
	case action == actions.AgentCall:
		return gate.FeatureAgent, nil
	case action == gate.CallTool || actions.IsHostCall(action) || actions.IsPeerRequest(action):
		return gate.FeatureTool, nil
	default: // the action is a method that MCP does not have
		return gate.FeatureMethod, nil
	}
}

// queryOf makes the query for the call of a record, and says which parts of the input the record does
// not hold.
func queryOf(e audit.Entry, used gate.Feature) (gate.Query, map[string]string, error) {
	t := &gate.Tool{Feature: used, Name: gate.ToolName{Server: e.Server}, Local: e.Tool, Offered: e.Tool, Digest: e.ToolDigest}
	if used == gate.FeatureMethod {
		_, t.Local, _ = strings.Cut(e.Tool, "__")
		t.Name.Tool = t.Local
	}
	if used == gate.FeatureTool || used == gate.FeatureAgent || used == gate.FeaturePrompt {
		name, err := gate.ParseToolName(e.Tool)
		if err != nil {
			return gate.Query{}, nil, fmt.Errorf("record %s: %w", e.ID, err)
		}
		t.Name, t.Local = name, name.Tool
		t.Relay = used == gate.FeatureTool && product.RelaysCalls(name.Server)
	}
	if used == gate.FeatureSkill || used == gate.FeatureResource {
		t.Skill = skillOf(e, used)
	}
	owner := gate.Owner{Tenant: e.Tenant, ID: e.Principal}
	q := gate.Query{
		Call: &gate.Call{
			ID: e.ID, Parent: e.Parent, Action: e.Action, Name: e.Tool,
			Who:        &gate.Principal{Owner: owner, Auth: "local", Client: e.Client.ID, Roles: e.Roles},
			Session:    gate.SessionKey{Owner: owner, ID: e.Session},
			ClientName: e.Client.Name, ClientVersion: e.Client.Version,
		},
		Tool:    t,
		Session: gate.Session{Version: e.SessionVersion, Labels: e.LabelsBefore, Top: e.SessionTop},
	}
	if e.App != nil {
		q.Call.Renders, q.Call.OwnName, t.AppOnly = true, e.App.OwnName, e.App.Only
	}
	unknown := unknownOf(used)
	if t.Skill != nil {
		for _, part := range skillParts {
			unknown["input.skill."+part] = "only the name of the skill is recorded"
		}
	}
	if len(e.Arguments) == 0 {
		unknown["input.arguments"] = "arguments not recorded"
		if actions.IsHostCall(e.Action) || actions.IsPeerRequest(e.Action) {
			unknown["input.request"] = "arguments not recorded"
		}
		return q, unknown, nil
	}
	var err error
	if q.Call.Args, err = gate.ParseDoc(e.Arguments); err != nil {
		return gate.Query{}, nil, fmt.Errorf("record %s: arguments: %w", e.ID, err)
	}
	return q, unknown, nil
}

// skillFile ends the URI of each skill.
const skillFile = "SKILL.md"

// skillOf returns the skill of a record. A read of a file has its label, and no read of other
// resources has.
func skillOf(e audit.Entry, used gate.Feature) *gate.Skill {
	_, path, _ := strings.Cut(e.Tool, "://")
	if used == gate.FeatureSkill {
		return &gate.Skill{Name: e.Server + "/" + strings.TrimSuffix(path, "/"+skillFile), URI: e.Tool}
	}
	for _, name := range (gate.Session{Labels: e.LabelsAfter}).LoadedSkills() {
		if strings.HasPrefix(e.Server+"/"+path, name+"/") {
			return &gate.Skill{Name: name}
		}
	}
	return nil
}

// unknownOf says which parts of the input no record holds, and how to say so.
func unknownOf(used gate.Feature) map[string]string {
	unknown := map[string]string{
		"input.provenance":       "provenance not recorded",
		"input.carried":          "provenance not recorded",
		"input.values":           "provenance not recorded",
		"input.principal.auth":   "authentication not recorded",
		"input.principal.claims": "claims not recorded",
	}
	parts, why := []string{"tool.annotations", "tool.sandboxed", "tool.capabilities", "tool.pinned", "tool.findings", "tool.groups"}, toolUnknown
	switch used {
	case gate.FeatureAgent:
		parts = nil // the gateway knows no more of an agent's own tool than its name
	case gate.FeaturePrompt:
		parts, why = []string{"prompt.groups"}, "the groups of a prompt are not recorded"
	case gate.FeatureMethod:
		parts, why = []string{"method.groups"}, "the groups of a method are not recorded"
	case gate.FeatureResource:
		parts, why = []string{"resource.mime_type", "resource.template", "resource.groups"}, "what the resource is, beside its URI, is not recorded"
	case gate.FeatureTemplate:
		parts, why = []string{"resource.mime_type", "resource.groups"}, "what the resource is, beside its template, is not recorded"
	}
	for _, part := range parts {
		unknown["input."+part] = why
	}
	return unknown
}

// Otherwise says what no grant can do about rules of deny, and what would be decided
// without them.
func Otherwise(a *study.Alternative) string {
	const head = "A grant cannot help, because deny overrides allow. Change the arguments or the rules, so that one condition of each rule above fails. "
	switch {
	case a.Effect == "":
		return head + "What would be decided then depends on what is not known"
	case a.Remedy != "":
		return head + "Nothing allows it then either; what would: " + a.Remedy
	default:
		return head + "Then: " + string(a.Effect)
	}
}
