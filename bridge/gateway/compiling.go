package gateway

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/sandbox"
)

// errCompiling is why a module is not run yet.
var errCompiling = errors.New("it is being compiled")

const embeddedName = "embedded"

// later reports whether a module is better compiled in the background: compiling it takes time, and
// the caller need not know now whether it can be used.
func (g *Gateway) later(wasm []byte) bool { return g.cfg.LeaveOut && !g.runtime.Compiled(wasm) }

// compile compiles the modules that wait, one after the other, and then the embedded
// tools into the cache: those are loaded by their first call.
func (g *Gateway) compile(modules []loaded) {
	for _, next := range modules {
		if g.life.Err() != nil {
			break
		}
		g.working(next.Config.Name)
		next.code, next.tools, next.err = g.module(g.life, next.Module, next.secrets)
		if err := g.place(next); err != nil && g.life.Err() == nil {
			g.cfg.Log.Error("module left out", "module", next.Config.Name, "error", err)
		}
	}
	g.working("")
	if len(modules) > 0 {
		g.changing.Lock()
		for _, l := range g.made {
			l.Settle(time.Time{})
		}
		close(g.compiling.done)
		g.changing.Unlock()
	}
	if g.cfg.Embedded && g.cfg.LeaveOut {
		g.compileEmbedded()
	}
}

// compileEmbedded has the cache hold the embedded tools.
func (g *Gateway) compileEmbedded() {
	if err := g.precompile(); err != nil && g.life.Err() == nil {
		g.cfg.Log.Error("embedded tools not compiled", "error", err)
	}
	g.listed.Lock()
	g.compiling.embedded = false
	g.listed.Unlock()
	g.working("")
}

func (g *Gateway) precompile() error {
	if sandbox.EmbeddedCompiled(g.runtime) {
		return nil
	}
	g.listed.Lock()
	g.compiling.embedded = true
	g.listed.Unlock()
	g.working(embeddedName)
	return sandbox.CompileEmbedded(g.life, g.runtime)
}

func (g *Gateway) working(name string) {
	g.listed.Lock()
	defer g.listed.Unlock()
	g.compiling.current, g.compiling.since = name, time.Now()
}

// waiting returns the modules that wait to be compiled.
func (g *Gateway) waiting() (all []loaded) {
	g.listed.Lock()
	defer g.listed.Unlock()
	for _, m := range g.modules {
		if errors.Is(m.err, errCompiling) {
			all = append(all, m)
		}
	}
	return all
}

// place puts a module that was compiled in the place where it is waited for, if it still
// is. The error is why it is left out.
func (g *Gateway) place(next loaded) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	before := g.modules
	i := slices.IndexFunc(before, func(m loaded) bool { return errors.Is(m.err, errCompiling) && m.same(&next) })
	if i < 0 { // another configuration came meanwhile
		return closeUnused(g.life, []loaded{next}, before)
	}
	now := slices.Clone(before)
	now[i].tools = nil
	if next.err == nil {
		_, next.err = local.New(next.server(), g.toolOptions(), append(toolsOn(next.server(), g.own, now), next.tools...)...)
	}
	var unrecorded error
	if now[i] = next; next.err != nil {
		now[i].tools = nil
		unrecorded = g.leaveOut(&now[i])
	}
	return errors.Join(next.err, unrecorded, g.change(g.life, before, now))
}

// progress says how far a module is that is not compiled yet.
func (c *compiling) progress(name string) string {
	if c.current != name {
		return "waits to be compiled"
	}
	return fmt.Sprintf("is being compiled, for %v now", time.Since(c.since).Round(time.Second))
}
