package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/guest"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/product"
)

// locals are the servers in this process: of modules, of the embedded tools, of Go
// functions.
type locals struct {
	cfg      *Config
	journal  *journal
	checking *checking
	machine  *machine
	player   *player.Player  // nil without Config.Replay
	panics   *slog.Logger    // of the program's own functions; nil is slog.Default
	fleet    *fleet.Fleet    // which they are in, once it is there
	life     context.Context // of what is compiled and closed in the background
	serving  *sync.WaitGroup

	published published // those of nothing but functions
	proposes  bool      // the tool that proposes calls is offered; changed with Gateway.setting
	compiling compiling

	starting bool                           // the modules are loaded for the first time
	began    time.Time                      // when that began
	changing sync.Mutex                     // held over a change of the modules: one at a time
	own      map[string][]options.LocalTool // by server: tools other than those of modules
	made     map[string]*local.Server       // by id: servers that modules are in, or can come to
	listed   sync.Mutex                     // guards modules
	modules  []loaded                       // in order

	inDevelopment sync.Map // digests of definitions by server and name, as they were first seen
}

// status tells how each module is, in the order of the configuration.
func (l *locals) status() []status.Module {
	l.listed.Lock()
	defer l.listed.Unlock()
	var all []status.Module
	for _, m := range l.modules {
		s := status.Module{Module: m.Config.Name, Server: m.server(), Tools: len(m.tools), Development: m.Development}
		switch {
		case errors.Is(m.err, errCompiling):
			s.Progress = l.compiling.progress(m.Config.Name)
		case m.err != nil:
			s.Error = m.err.Error()
		case m.newer != nil:
			s.Note = fmt.Sprintf("its file has changed, but the new version cannot run: %v; the earlier version still runs", m.newer)
		case m.code != nil:
			s.Note = m.code.Note()
		}
		all = append(all, s)
	}
	if l.compiling.embedded {
		all = append(all, status.Module{Module: embeddedName, Server: product.LocalServer, Tools: len(l.own[product.LocalServer]), Progress: l.compiling.progress(embeddedName)})
	}
	return all
}

// open makes the servers in this process, in the order in which they are listed. relays are the
// tools by which clients make further calls, by server.
func (l *locals) open(ctx context.Context, relays map[string][]options.LocalTool) ([]*local.Server, error) {
	if l.cfg.Embedded || l.cfg.LeaveOut || len(l.cfg.Modules)+len(l.cfg.Guests) > 0 { // LeaveOut: modules may come later
		if err := l.machine.open(ctx); err != nil {
			return nil, err
		}
	}
	l.own, l.made = make(map[string][]options.LocalTool), make(map[string]*local.Server)
	var order []string
	if l.cfg.Embedded {
		tools, err := l.machine.embedded()
		if err != nil {
			return nil, fmt.Errorf("embedded tools: %w", err)
		}
		order, l.own[product.LocalServer] = append(order, product.LocalServer), l.player.Stubbed("", tools)
	}
	for server, tools := range l.cfg.Functions {
		l.own[server] = append(l.own[server], l.replayed(server, tools)...)
	}
	l.starting, l.began = true, time.Now()
	modules, left, err := l.load(ctx, l.cfg.Modules, l.cfg.Secrets)
	l.modules, l.starting = modules, false
	if err != nil || left != nil && !l.cfg.LeaveOut {
		return nil, errors.Join(left, err)
	}
	for _, m := range modules {
		if m.err == nil {
			order = append(order, m.server())
		}
	}
	add := func(servers ...string) {
		for _, server := range servers {
			if tools, has := relays[server]; has {
				order, l.own[server] = append(order, server), tools
			}
		}
	}
	add(product.CatalogServer)
	order = append(order, slices.Sorted(maps.Keys(l.cfg.Functions))...)
	add(product.JobsServer, product.GatewayServer)
	return l.build(order)
}

// build makes the servers of the given ids, each once.
func (l *locals) build(order []string) (all []*local.Server, err error) {
	done := make(map[string]bool)
	for _, server := range order {
		if done[server] {
			continue
		}
		done[server] = true
		made, err := local.New(server, l.checking.toolOptions(), toolsOn(server, l.own, l.modules)...)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(l.modules, func(m loaded) bool { return m.server() == server && errors.Is(m.err, errCompiling) }) {
			made.Settle(l.began)
		}
		all = append(all, made)
		functions, has := l.cfg.Functions[server]
		shared := server == product.LocalServer && l.cfg.Embedded || slices.ContainsFunc(l.modules, func(m loaded) bool { return m.server() == server })
		switch {
		case has && !shared:
			l.published.add(server, made, functions)
		case !product.RelaysCalls(server):
			l.made[server] = made
		}
	}
	return all, nil
}

// loaded is a module as it is in use, or out of it.
type loaded struct {
	Module
	secrets []dial.Secret // that could be granted
	code    *guest.Module
	tools   []options.LocalTool
	err     error // why the module is left out; nil if it is not
	newer   error // why the module's new version is not in use; nil if there is none
}

func (m *loaded) server() string { return cmp.Or(m.Server, product.LocalServer) }

// same reports whether a module and its grants are unchanged.
func (m *loaded) same(next *loaded) bool {
	return reflect.DeepEqual(m.Module, next.Module) && (len(m.Grant.Secrets) == 0 || reflect.DeepEqual(m.secrets, next.secrets))
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
func (l *locals) load(ctx context.Context, modules []Module, secrets []dial.Secret) (all []loaded, left, err error) {
	for _, m := range modules {
		next := loaded{Module: m, secrets: secrets}
		i := slices.IndexFunc(l.modules, func(o loaded) bool { return o.err == nil && o.same(&next) })
		if i >= 0 {
			next = l.modules[i]
		} else {
			next = l.loadOne(ctx, next)
		}
		if next.newer != nil {
			left = errors.Join(left, &ModuleError{m.Config.Name, next.newer})
		}
		if next.err == nil { // its tools may be no tools, or another module's
			_, next.err = local.New(next.server(), l.checking.toolOptions(), append(toolsOn(next.server(), l.own, all), next.tools...)...)
		}
		if errors.Is(next.err, errCompiling) {
			all = append(all, next)
			continue
		}
		if next.err != nil {
			l.forgetDeveloped(&next)
			next.tools = nil
			left, err = errors.Join(left, &ModuleError{m.Config.Name, next.err}), errors.Join(err, l.leaveOut(&next))
		}
		all = append(all, next)
	}
	return all, left, err
}

// loadOne compiles a module, or has it compiled later, at the start. If only its file has changed,
// and the new file cannot be used, the module stays as it was.
func (l *locals) loadOne(ctx context.Context, next loaded) loaded {
	if l.starting && next.Broken == "" && l.machine.later(next.WASM) {
		next.err = errCompiling
		return next
	}
	next.code, next.tools, next.err = l.module(ctx, next.Module, next.secrets)
	if next.err == nil || next.Broken != "" || next.Named {
		return next
	}
	i := slices.IndexFunc(l.modules, func(o loaded) bool {
		then := next
		then.WASM, then.Config.Manifest = o.WASM, o.Config.Manifest
		return o.err == nil && o.same(&then)
	})
	if i < 0 {
		return next
	}
	stays := l.modules[i]
	stays.newer = next.err
	return stays
}

// leaveOut records that a module cannot be used.
func (l *locals) leaveOut(m *loaded) error {
	return l.journal.note(audit.Entry{
		Event: audit.Server, Server: m.server(), Code: "failed", Error: m.err.Error(),
		Reasons: []string{fmt.Sprintf("configuration: module %s left out", m.Config.Name)},
	})
}

// setModules is [Gateway.SetModules].
func (l *locals) setModules(ctx context.Context, modules []Module, secrets []dial.Secret) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if l.machine.runtime == nil {
		return errors.New("this gateway was built without modules, and runs none")
	}
	before := l.modules
	now, left, unrecorded := l.load(ctx, modules, secrets)
	return errors.Join(l.change(ctx, before, now), left, unrecorded)
}

// setEmbedded is [Gateway.SetEmbedded].
func (l *locals) setEmbedded(on bool) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if _, has := l.own[product.LocalServer]; on == has {
		return nil
	}
	what := "taken out"
	var tools []options.LocalTool
	switch {
	case l.machine.runtime == nil || len(l.cfg.Functions[product.LocalServer]) > 0:
		return errors.New("the embedded tools of this gateway are fixed when gateway.New makes it")
	case on:
		embedded, err := l.machine.embedded()
		if err != nil {
			return fmt.Errorf("embedded tools: %w", err)
		}
		what, tools = "set", l.player.Stubbed("", embedded)
	}
	if err := l.journal.note(audit.Entry{Event: audit.Server, Server: product.LocalServer, Code: codes.OK, Reasons: []string{"configuration: embedded tools " + what}}); err != nil {
		return fmt.Errorf("the embedded tools were not changed: %w", err)
	}
	l.listed.Lock()
	if delete(l.own, product.LocalServer); on {
		l.own[product.LocalServer] = tools
	}
	l.listed.Unlock()
	if on {
		l.serving.Go(l.compileEmbedded)
	}
	return l.set(product.LocalServer, toolsOn(product.LocalServer, l.own, l.modules))
}

// change puts modules in the place of others. It is held that they change.
func (l *locals) change(ctx context.Context, before, now []loaded) error {
	servers, err := l.noteModules(before, now)
	if err != nil {
		return fmt.Errorf("the modules were not changed: %w", errors.Join(err, closeUnused(ctx, now, before)))
	}
	var errs []error
	for _, server := range servers {
		if err := l.set(server, toolsOn(server, l.own, now)); err != nil {
			errs = append(errs, err)
			for i := range now {
				if now[i].server() == server && now[i].err == nil {
					now[i].tools, now[i].err = nil, err
				}
			}
		}
	}
	l.listed.Lock()
	l.modules = now
	l.listed.Unlock()
	l.serving.Go(func() { // when the calls under way have ended
		if err := closeUnused(context.WithoutCancel(ctx), slices.Concat(before, now), now); err != nil {
			l.cfg.Log.Warn("module not closed", "error", err)
		}
	})
	return errors.Join(errs...)
}

// noteModules records which modules come, change and go, and returns the servers whose tools change
// by that.
func (l *locals) noteModules(before, now []loaded) (servers []string, err error) {
	note := func(m *loaded, what string) {
		if !slices.Contains(servers, m.server()) {
			servers = append(servers, m.server())
		}
		err = errors.Join(err, l.journal.note(audit.Entry{
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

// set gives a server its tools: it comes with the first and goes with the last.
func (l *locals) set(server string, tools []options.LocalTool) error {
	made := l.made[server]
	switch {
	case made != nil && len(tools) == 0:
		delete(l.made, server)
		return l.fleet.Remove(server)
	case made != nil:
		return made.Set(tools...)
	case len(tools) == 0:
		return nil
	}
	made, err := local.New(server, l.checking.toolOptions(), tools...)
	if err != nil {
		return err
	}
	select {
	case <-l.compiling.done:
	default:
		made.Settle(l.began)
	}
	if err := l.fleet.AddLocal(made); err != nil {
		return err
	}
	l.made[server] = made
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

// add offers tools of the gateway's own.
func (l *locals) add(server string, tools []options.LocalTool) error {
	made, err := local.New(server, l.checking.toolOptions(), tools...)
	if err != nil {
		return err
	}
	return l.fleet.AddLocal(made)
}

// setPropose offers the tool that proposes calls, or takes it away. The caller holds Gateway.setting.
func (l *locals) setPropose(on bool) error {
	if on == l.proposes {
		return nil
	}
	l.proposes = on
	if !on {
		return l.fleet.Remove(product.GatewayServer)
	}
	return l.add(product.GatewayServer, local.ProposeTools())
}
