package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/config"
)

// usedIn returns what is used by what a record tells of, which the record does not say
// of what a server asks: it asks on behalf of the parent.
func usedIn(ctx context.Context, cfg *config.Config, e audit.Entry) (gate.Feature, error) {
	action := e.Action
	if action.IsPeerRequest() && e.Parent != "" {
		parent, err := findRecord(ctx, cfg.Audit.Path, e.Parent)
		if err != nil {
			return "", fmt.Errorf("the call for which %s was asked: %w", e.Action, err)
		}
		action = parent.Action
	}
	uri := strings.Contains(e.Tool, ":") // as no name has it
	switch {
	case uri && action == gate.Complete:
		return gate.FeatureTemplate, nil
	case uri:
		return gate.FeatureResource, nil
	case action == gate.GetPrompt || action == gate.Complete:
		return gate.FeaturePrompt, nil
	case action == gate.CallTool || action.IsHostCall() || action.IsPeerRequest():
		return gate.FeatureTool, nil
	default: // the action is a method that MCP does not have
		return gate.FeatureMethod, nil
	}
}

// queryOf makes the query of which a record tells, and says which parts of the
// input a record does not hold.
func queryOf(e audit.Entry, used gate.Feature) (gate.Query, map[string]string, error) {
	t := &gate.Tool{Feature: used, Name: gate.ToolName{Server: e.Server}, Local: e.Tool, Offered: e.Tool, Digest: e.ToolDigest}
	if used == gate.FeatureMethod {
		_, t.Local, _ = strings.Cut(e.Tool, "__")
		t.Name.Tool = t.Local
	}
	if used == gate.FeatureTool || used == gate.FeaturePrompt {
		name, err := gate.ParseToolName(e.Tool)
		if err != nil {
			return gate.Query{}, nil, fmt.Errorf("record %s: %w", e.ID, err)
		}
		t.Name, t.Local = name, name.Tool
		t.Relay = used == gate.FeatureTool && gateway.Relays(name.Server)
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
	unknown := unrecorded(used)
	if len(e.Arguments) == 0 {
		unknown["input.arguments"] = "arguments not recorded"
		if e.Action.IsHostCall() || e.Action.IsPeerRequest() {
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

// unrecorded says which parts of the input no record holds, and how to say so.
func unrecorded(used gate.Feature) map[string]string {
	unknown := map[string]string{
		"input.provenance":       "provenance not recorded",
		"input.carried":          "provenance not recorded",
		"input.values":           "provenance not recorded",
		"input.principal.auth":   "authentication not recorded",
		"input.principal.claims": "claims not recorded",
	}
	parts, why := []string{"tool.annotations", "tool.sandboxed", "tool.capabilities", "tool.pinned", "tool.findings", "tool.groups"}, toolUnknown
	switch used {
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
