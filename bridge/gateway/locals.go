package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/product"
)

// Modules tells how each module is, in the order of the configuration.
func (g *Gateway) Modules() []status.Module {
	g.listed.Lock()
	defer g.listed.Unlock()
	var all []status.Module
	for _, m := range g.modules {
		s := status.Module{Module: m.Config.Name, Server: m.server(), Tools: len(m.tools), Development: m.Development}
		switch {
		case errors.Is(m.err, errCompiling):
			s.Progress = g.compiling.progress(m.Config.Name)
		case m.err != nil:
			s.Error = m.err.Error()
		case m.newer != nil:
			s.Note = fmt.Sprintf("its file has changed, but the new version cannot run: %v; the earlier version still runs", m.newer)
		case m.code != nil:
			s.Note = m.code.Note()
		}
		all = append(all, s)
	}
	if g.compiling.embedded {
		all = append(all, status.Module{Module: embeddedName, Server: product.LocalServer, Tools: len(g.own[product.LocalServer]), Progress: g.compiling.progress(embeddedName)})
	}
	return all
}

// newLocals builds the servers in this process, in the order in which they are listed.
func (g *Gateway) newLocals(ctx context.Context) ([]*local.Server, error) {
	if g.cfg.Embedded || g.cfg.LeaveOut || len(g.cfg.Modules)+len(g.cfg.Guests) > 0 { // LeaveOut: modules may come later
		if err := g.machine.open(ctx, &g.cfg); err != nil {
			return nil, err
		}
	}
	g.own, g.made = make(map[string][]options.LocalTool), make(map[string]*local.Server)
	var order []string
	if g.cfg.Embedded {
		tools, err := g.embedded()
		if err != nil {
			return nil, fmt.Errorf("embedded tools: %w", err)
		}
		order, g.own[product.LocalServer] = append(order, product.LocalServer), g.player.Stubbed("", tools)
	}
	for server, tools := range g.cfg.Functions {
		g.own[server] = append(g.own[server], g.replayed(server, tools)...)
	}
	g.starting, g.began = true, time.Now()
	modules, left, err := g.load(ctx, g.cfg.Modules, g.cfg.Secrets)
	g.modules, g.starting = modules, false
	if err != nil || left != nil && !g.cfg.LeaveOut {
		return nil, errors.Join(left, err)
	}
	for _, m := range modules {
		if m.err == nil {
			order = append(order, m.server())
		}
	}
	if g.cfg.Catalog != CatalogOff {
		order, g.own[product.CatalogServer] = append(order, product.CatalogServer), g.catalogTools()
	}
	order = append(order, slices.Sorted(maps.Keys(g.cfg.Functions))...)
	if g.jobsOffered = g.cfg.Jobs != nil && g.cfg.Jobs.Offer; g.jobsOffered {
		order, g.own[product.JobsServer] = append(order, product.JobsServer), g.jobTools()
	}
	if g.proposes = g.cfg.Propose; g.proposes {
		order, g.own[product.GatewayServer] = append(order, product.GatewayServer), local.ProposeTools()
	}
	return g.makeLocals(order)
}

// makeLocals makes the servers of the given ids, each once.
func (g *Gateway) makeLocals(order []string) (all []*local.Server, err error) {
	done := make(map[string]bool)
	for _, server := range order {
		if done[server] {
			continue
		}
		done[server] = true
		l, err := local.New(server, g.toolOptions(), toolsOn(server, g.own, g.modules)...)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(g.modules, func(m loaded) bool { return m.server() == server && errors.Is(m.err, errCompiling) }) {
			l.Settle(g.began)
		}
		all = append(all, l)
		functions, has := g.cfg.Functions[server]
		shared := server == product.LocalServer && g.cfg.Embedded || slices.ContainsFunc(g.modules, func(m loaded) bool { return m.server() == server })
		switch {
		case has && !shared:
			g.published.add(server, l, functions)
		case !product.RelaysCalls(server):
			g.made[server] = l
		}
	}
	return all, nil
}

// toolsOn returns the tools of a server: its own, and those of modules.
func toolsOn(server string, own map[string][]options.LocalTool, modules []loaded) []options.LocalTool {
	tools := slices.Clone(own[server])
	for _, m := range modules {
		if m.server() == server {
			tools = append(tools, m.tools...)
		}
	}
	return tools
}

// load returns modules as they can be used, those that were in use before as they were.
// Left joins a [*ModuleError] for each that cannot be used, and is left out; err is that
// this could not be recorded.
func (g *Gateway) load(ctx context.Context, modules []Module, secrets []dial.Secret) (all []loaded, left, err error) {
	for _, m := range modules {
		next := loaded{Module: m, secrets: secrets}
		i := slices.IndexFunc(g.modules, func(o loaded) bool { return o.err == nil && o.same(&next) })
		if i >= 0 {
			next = g.modules[i]
		} else {
			next = g.loadOne(ctx, next)
		}
		if next.newer != nil {
			left = errors.Join(left, &ModuleError{m.Config.Name, next.newer})
		}
		if next.err == nil { // its tools may be no tools, or another module's
			_, next.err = local.New(next.server(), g.toolOptions(), append(toolsOn(next.server(), g.own, all), next.tools...)...)
		}
		if errors.Is(next.err, errCompiling) {
			all = append(all, next)
			continue
		}
		if next.err != nil {
			g.forgetDeveloped(&next)
			next.tools = nil
			left, err = errors.Join(left, &ModuleError{m.Config.Name, next.err}), errors.Join(err, g.leaveOut(&next))
		}
		all = append(all, next)
	}
	return all, left, err
}

// loadOne compiles a module, or has it compiled later, at the start. If only its file has changed,
// and the new file cannot be used, the module stays as it was.
func (g *Gateway) loadOne(ctx context.Context, next loaded) loaded {
	if g.starting && next.Broken == "" && g.later(next.WASM) {
		next.err = errCompiling
		return next
	}
	next.code, next.tools, next.err = g.module(ctx, next.Module, next.secrets)
	if next.err == nil || next.Broken != "" || next.Named {
		return next
	}
	i := slices.IndexFunc(g.modules, func(o loaded) bool {
		then := next
		then.WASM, then.Config.Manifest = o.WASM, o.Config.Manifest
		return o.err == nil && o.same(&then)
	})
	if i < 0 {
		return next
	}
	stays := g.modules[i]
	stays.newer = next.err
	return stays
}

// leaveOut records that a module cannot be used.
func (g *Gateway) leaveOut(m *loaded) error {
	return g.note(audit.Entry{
		Event: audit.Server, Server: m.server(), Code: "failed", Error: m.err.Error(),
		Reasons: []string{fmt.Sprintf("configuration: module %s left out", m.Config.Name)},
	})
}

// SetModules puts other modules in the place of Config.Modules, which can be granted
// these secrets, and tells the clients. A module that stays as it is goes on as it is;
// calls under way of one that is replaced or removed go on to their end. One that cannot
// be used is left out, unless nothing but its file has changed, and no digest names the
// one that is meant: it stays as it was then. [Gateway.Modules] says why, and the error
// joins a [*ModuleError] for each. The audit log has a change before it is
// made.
func (g *Gateway) SetModules(ctx context.Context, modules []Module, secrets []dial.Secret) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	if g.runtime == nil {
		return errors.New("this gateway was built without modules, and runs none")
	}
	before := g.modules
	now, left, unrecorded := g.load(ctx, modules, secrets)
	return errors.Join(g.change(ctx, before, now), left, unrecorded)
}

// SetEmbedded offers the tools that the gateway brings along, or takes them away, and tells the
// clients. It returns an error if Config.Functions has tools on the same server.
func (g *Gateway) SetEmbedded(on bool) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	if _, has := g.own[product.LocalServer]; on == has {
		return nil
	}
	what := "taken out"
	var tools []options.LocalTool
	switch {
	case g.runtime == nil || len(g.cfg.Functions[product.LocalServer]) > 0:
		return errors.New("the embedded tools of this gateway are fixed when gateway.New makes it")
	case on:
		embedded, err := g.embedded()
		if err != nil {
			return fmt.Errorf("embedded tools: %w", err)
		}
		what, tools = "set", g.player.Stubbed("", embedded)
	}
	if err := g.note(audit.Entry{Event: audit.Server, Server: product.LocalServer, Code: codes.OK, Reasons: []string{"configuration: embedded tools " + what}}); err != nil {
		return fmt.Errorf("the embedded tools were not changed: %w", err)
	}
	g.listed.Lock()
	if delete(g.own, product.LocalServer); on {
		g.own[product.LocalServer] = tools
	}
	g.listed.Unlock()
	if on {
		g.serving.Go(g.compileEmbedded)
	}
	return g.setLocal(product.LocalServer, toolsOn(product.LocalServer, g.own, g.modules))
}

// change puts modules in the place of others. It is held that they change.
func (g *Gateway) change(ctx context.Context, before, now []loaded) error {
	servers, err := g.noteModules(before, now)
	if err != nil {
		return fmt.Errorf("the modules were not changed: %w", errors.Join(err, closeUnused(ctx, now, before)))
	}
	var errs []error
	for _, server := range servers {
		if err := g.setLocal(server, toolsOn(server, g.own, now)); err != nil {
			errs = append(errs, err)
			for i := range now {
				if now[i].server() == server && now[i].err == nil {
					now[i].tools, now[i].err = nil, err
				}
			}
		}
	}
	g.listed.Lock()
	g.modules = now
	g.listed.Unlock()
	g.serving.Go(func() { // when the calls under way have ended
		if err := closeUnused(context.WithoutCancel(ctx), slices.Concat(before, now), now); err != nil {
			g.cfg.Log.Warn("module not closed", "error", err)
		}
	})
	return errors.Join(errs...)
}

// noteModules records which modules come, change and go, and returns the servers whose tools change
// by that.
func (g *Gateway) noteModules(before, now []loaded) (servers []string, err error) {
	note := func(m *loaded, what string) {
		if !slices.Contains(servers, m.server()) {
			servers = append(servers, m.server())
		}
		err = errors.Join(err, g.note(audit.Entry{
			Event: audit.Server, Server: m.server(), Code: codes.OK, Reasons: []string{fmt.Sprintf("configuration: module %s %s", m.Config.Name, what)},
		}))
	}
	for i := range before {
		if o := &before[i]; o.err == nil && !slices.ContainsFunc(now, func(m loaded) bool { return m.code == o.code && m.err == nil }) {
			note(o, "taken out")
		}
	}
	for i := range now {
		if m := &now[i]; m.err == nil && !slices.ContainsFunc(before, func(o loaded) bool { return m.code == o.code && o.err == nil }) {
			note(m, "set")
		}
	}
	return servers, err
}

// setLocal gives a server its tools: it comes with the first and goes with the last.
func (g *Gateway) setLocal(server string, tools []options.LocalTool) error {
	l := g.made[server]
	switch {
	case l != nil && len(tools) == 0:
		delete(g.made, server)
		return g.fleet.Remove(server)
	case l != nil:
		return l.Set(tools...)
	case len(tools) == 0:
		return nil
	}
	l, err := local.New(server, g.toolOptions(), tools...)
	if err != nil {
		return err
	}
	select {
	case <-g.compiling.done:
	default:
		l.Settle(g.began)
	}
	if err := g.fleet.AddLocal(l); err != nil {
		return err
	}
	g.made[server] = l
	return nil
}

// closeUnused closes the modules of some that are not in use among others.
func closeUnused(ctx context.Context, some, others []loaded) error {
	var errs []error
	for _, m := range some {
		if m.code != nil && !slices.ContainsFunc(others, func(o loaded) bool { return o.code == m.code && o.err == nil }) {
			errs = append(errs, m.code.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// addLocal offers tools of the gateway's own.
func (g *Gateway) addLocal(server string, tools []options.LocalTool) error {
	l, err := local.New(server, g.toolOptions(), tools...)
	if err != nil {
		return err
	}
	return g.fleet.AddLocal(l)
}
