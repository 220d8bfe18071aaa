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

// compile compiles the modules that wait, one after the other, and then the embedded
// tools into the cache: those are loaded by their first call.
func (l *locals) compile(modules []loaded) {
	for _, next := range modules {
		if l.life.Err() != nil {
			break
		}
		l.working(next.Config.Name)
		next.code, next.tools, next.err = l.module(l.life, next.Module, next.secrets)
		if err := l.place(next); err != nil && l.life.Err() == nil {
			l.cfg.Log.Error("module left out", "module", next.Config.Name, "error", err)
		}
	}
	l.working("")
	if len(modules) > 0 {
		l.changing.Lock()
		for _, one := range l.made {
			one.Settle(time.Time{})
		}
		close(l.compiling.done)
		l.changing.Unlock()
	}
	if l.cfg.Embedded && l.cfg.LeaveOut {
		l.compileEmbedded()
	}
}

// compileEmbedded has the cache hold the embedded tools.
func (l *locals) compileEmbedded() {
	if err := l.precompile(); err != nil && l.life.Err() == nil {
		l.cfg.Log.Error("embedded tools not compiled", "error", err)
	}
	l.listed.Lock()
	l.compiling.embedded = false
	l.listed.Unlock()
	l.working("")
}

func (l *locals) precompile() error {
	if sandbox.EmbeddedCompiled(l.machine.runtime) {
		return nil
	}
	l.listed.Lock()
	l.compiling.embedded = true
	l.listed.Unlock()
	l.working(embeddedName)
	return sandbox.CompileEmbedded(l.life, l.machine.runtime)
}

func (l *locals) working(name string) {
	l.listed.Lock()
	defer l.listed.Unlock()
	l.compiling.current, l.compiling.since = name, time.Now()
}

// waiting returns the modules that wait to be compiled.
func (l *locals) waiting() (all []loaded) {
	l.listed.Lock()
	defer l.listed.Unlock()
	for _, m := range l.modules {
		if errors.Is(m.err, errCompiling) {
			all = append(all, m)
		}
	}
	return all
}

// place puts a module that was compiled in the place where it is waited for, if it still
// is. The error is why it is left out.
func (l *locals) place(next loaded) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	before := l.modules
	i := slices.IndexFunc(before, func(m loaded) bool { return errors.Is(m.err, errCompiling) && m.same(&next) })
	if i < 0 { // another configuration came meanwhile
		return closeUnused(l.life, []loaded{next}, before)
	}
	now := slices.Clone(before)
	now[i].tools = nil
	if next.err == nil {
		_, next.err = local.New(next.server(), l.checking.toolOptions(), append(toolsOn(next.server(), l.own, now), next.tools...)...)
	}
	var unrecorded error
	if now[i] = next; next.err != nil {
		now[i].tools = nil
		unrecorded = l.leaveOut(&now[i])
	}
	return errors.Join(next.err, unrecorded, l.change(l.life, before, now))
}

// compiling is what is compiled in the background, so that a gateway listens before its modules are
// ready.
type compiling struct {
	done     chan struct{} // closed when no module of the start waits any more
	current  string        // the module that is compiled; guarded by locals.listed, as are
	since    time.Time
	embedded bool // the embedded tools wait, or are compiled
}

// progress says how far a module is that is not compiled yet.
func (c *compiling) progress(name string) string {
	if c.current != name {
		return "waits to be compiled"
	}
	return fmt.Sprintf("is being compiled, for %v now", time.Since(c.since).Round(time.Second))
}
