// Package unknown finds what a grant names that does not exist, and what it may have meant.
package unknown

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// In says, in words, what a grant names that does not exist, and what it may have meant,
// as far as that is known: servers, principals and roles are those of the configuration, what
// servers have is what the running gateway knows or what was kept when they were first seen.
func In(ctx context.Context, cfg *config.Config, g policydata.Grant) (said []string) {
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	servers := naming.Servers(cfg)
	has := known(ctx, cfg)
	unknown := func(kind, name, server string) {
		all, p := has[kind], match.Pattern(name)
		prefix, open := p.Cut()
		if slices.ContainsFunc(all, p.Matches) ||
			kind == "resource" && slices.ContainsFunc(has["template"], func(begin string) bool {
				return strings.HasPrefix(prefix, begin) || open && strings.HasPrefix(begin, prefix)
			}) {
			return
		}
		switch {
		case server != "" && !slices.Contains(servers, server):
			say("the configuration has no server %s%s", server, spelling.Suggest(server, servers))
		case slices.ContainsFunc(all, func(one string) bool { return server == "" || strings.HasPrefix(one, server+"__") }):
			say("no %s is named %s%s", kind, name, spelling.Suggest(name, p.Like(all)))
		}
	}
	for kind, patterns := range map[string][]string{"tool": g.Tools, "prompt": g.Prompts, "resource": g.Resources} {
		for _, name := range patterns {
			server, _, whole := strings.Cut(name, "__")
			if !whole || kind == "resource" {
				server = ""
			}
			unknown(kind, name, server)
		}
	}
	for _, server := range g.Servers {
		if !slices.Contains(servers, server) {
			say("the configuration has no server %s%s", server, spelling.Suggest(server, servers))
		}
	}
	for _, method := range g.Methods {
		if !slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return listsMethod(s, match.Pattern(method)) }) {
			say("no server lists a method %s under methods", method)
		}
	}
	for _, group := range g.Groups {
		if err := naming.CheckGroups(cfg, []string{group}); err != nil {
			say("%v", err)
		}
	}
	var recipients []string
	for _, role := range naming.Policy(cfg, nil).Roles {
		recipients = append(recipients, "role:"+role)
	}
	for _, p := range cfg.Principals {
		recipients = append(recipients, match.Name(p.Tenant, p.ID))
	}
	for _, to := range g.To {
		suggest := spelling.Suggest(to, recipients)
		switch role, isRole := strings.CutPrefix(to, "role:"); {
		case to == "*":
		case isRole && !slices.Contains(recipients, to):
			say("no principal has the role %s%s: give it to a principal in the configuration, or map a value to it under auth", role, suggest)
		case !isRole && !naming.CanCome(cfg, to):
			say("no principal is named %s%s: list it under principals in the configuration", to, suggest)
		}
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// listsMethod reports whether a server lists a method that a pattern matches.
func listsMethod(s config.Server, p match.Pattern) bool {
	return slices.ContainsFunc(s.Methods, func(m string) bool { return p.Matches(m) || p.Matches(s.ID+"__"+m) })
}

// known returns what is known to be there, by kind and as grants name it. Of a gateway
// that does not run these are tools alone.
func known(ctx context.Context, cfg *config.Config) map[string][]string {
	names := make(map[string][]string)
	tools, err := app.Declared(ctx, cfg)
	if err != nil {
		return names
	}
	for _, t := range tools {
		names["tool"] = append(names["tool"], t.Name.String())
	}
	r, err := app.Dial(ctx, cfg)
	if err != nil {
		return names
	}
	defer r.Close()
	others, err := inventory.Features.Ask(ctx, r, inventory.Request{All: true})
	if err != nil {
		return names
	}
	for _, t := range others {
		switch gate.Feature(t.Kind) {
		case gate.FeaturePrompt:
			names["prompt"] = append(names["prompt"], t.Name)
		case gate.FeatureResource:
			names["resource"] = append(names["resource"], t.Name)
		case gate.FeatureTemplate: // any URI that begins so may be there
			begin, _, _ := strings.Cut(t.Name, "{")
			names["template"] = append(names["template"], begin)
		}
	}
	return names
}
