package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// UnknownIn says, in words, what a grant names that nobody has, as far as that is known:
// the servers are those of the configuration, what they have is what the running gateway
// knows or what was kept when they were first seen.
func UnknownIn(ctx context.Context, cfg *config.Config, g config.Grant) (said []string) {
	servers := ServerIDs(cfg)
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
			said = append(said, fmt.Sprintf("warning: the configuration has no server %s%s", server, spelling.Suggest(server, servers)))
		case slices.ContainsFunc(all, func(one string) bool { return server == "" || strings.HasPrefix(one, server+"__") }):
			said = append(said, fmt.Sprintf("warning: no %s is named %s%s", kind, name, spelling.Suggest(name, all)))
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
			said = append(said, fmt.Sprintf("warning: the configuration has no server %s%s", server, spelling.Suggest(server, servers)))
		}
	}
	for _, method := range g.Methods {
		if !slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return listsMethod(s, match.Pattern(method)) }) {
			said = append(said, fmt.Sprintf("warning: no server lists a method %s under methods", method))
		}
	}
	for _, group := range g.Groups {
		if err := CheckGroups(cfg, []string{group}); err != nil {
			said = append(said, "warning: "+err.Error())
		}
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// listsMethod reports whether a server lists a method that a pattern matches.
func listsMethod(s config.Server, p match.Pattern) bool {
	return slices.ContainsFunc(s.Methods, func(m string) bool { return p.Matches(m) || p.Matches(s.ID+"__"+m) })
}

// ServerIDs returns the ids of all that has tools in a configuration.
func ServerIDs(cfg *config.Config) []string {
	ids := []string{product.LocalServer, product.JobsServer, product.CatalogServer, product.GatewayServer}
	for _, s := range cfg.Servers {
		ids = append(ids, s.ID)
	}
	for _, m := range cfg.Tools {
		ids = append(ids, m.Server)
	}
	return ids
}

// known returns what is known to be there, by kind and as grants name it. Of a gateway
// that does not run these are tools alone.
func known(ctx context.Context, cfg *config.Config) map[string][]string {
	names := make(map[string][]string)
	tools, err := Declared(ctx, cfg)
	if err != nil {
		return names
	}
	for _, t := range tools {
		names["tool"] = append(names["tool"], t.Name.String())
	}
	r, err := Dial(ctx, cfg)
	if err != nil {
		return names
	}
	defer r.Close()
	others, err := r.Features(ctx, "", true)
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
