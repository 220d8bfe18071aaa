package app

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app/logs"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
)

// watchConfig returns what reads the configuration anew if its files, or those of its modules,
// have changed and then rested, for they may be written in several steps, or a signal asks
// for it, or a policy that kept it out has changed.
func (a *App) watchConfig(ctx context.Context, hangup <-chan os.Signal) func() {
	read, last := a.config.Load().files, configFiles(a.cfg)
	return func() {
		asked := a.config.Load().mended()
		select {
		case <-hangup:
			asked = true
		default:
		}
		now := configFiles(a.Config())
		if asked || now == last && now != read { // once more if it names other modules
			read = now
			err := a.reloadConfig(ctx) // it logs what is wrong
			if a.reloaded != nil {
				a.reloaded(ctx, a, err)
			}
		}
		last = now
	}
}

// configFiles tells one version of the configuration's files, of its modules' and of its servers'
// secrets from another.
func configFiles(c *config.Config) (all string) {
	for _, f := range append(c.Files(), modules.Files(c)...) {
		all += f + " " + watch.State(f) + "\n"
	}
	for _, s := range translation.Enabled(c.Servers) {
		all += translation.SecretFiles(s)
	}
	return all
}

// reloadConfig puts in place what the files say now. If anything is wrong with the
// files, all stays as it is. How calls are checked changes first, at once and whole, and if
// that cannot be nothing does. What cannot change while the gateway runs waits for a
// restart, and is named. A server that cannot be reached, or a module that cannot be
// used, is no error: status tells of it.
func (a *App) reloadConfig(ctx context.Context) error {
	before := a.config.Load()
	next, err := before.cfg.Reread(config.Options{})
	if err != nil {
		after := *before
		after.err, after.refused = err, nil
		a.config.Store(&after)
		for line := range strings.Lines(err.Error()) {
			a.log.Error("configuration refused; the last good one is still in use", "error", strings.TrimSuffix(line, "\n"))
		}
		return errors.Join(err, a.gateway.Operator().ConfigRefused(err))
	}
	checks := a.checks(next, "")
	for _, s := range translation.Enabled(before.cfg.Servers) {
		if translation.At(translation.Enabled(next.Servers), s.ID) < 0 {
			translation.AddServer(s, &checks) // until it is removed it is called
		}
	}
	files := policyfiles.New(next)
	state := files.State()
	if err := a.reconfigure(ctx, next, checks); err != nil {
		after := *before
		after.unset, after.refused, after.state = []string{err.Error()}, files, state
		a.config.Store(&after)
		a.log.Error("configuration not in place; the last good one is still in use", "error", err)
		return err
	}
	logs.Adjust(a.log, next.Log)
	return a.putRest(ctx, before, next)
}

// putRest puts in place what is beside how calls are checked.
func (a *App) putRest(ctx context.Context, before *configState, next *config.Config) error {
	after := &configState{read: time.Now(), cfg: next, restart: a.cfg.NeedRestart(next)}
	for _, key := range after.restart {
		a.log.Warn(toRestart(key))
	}
	errs := a.put(ctx, before, after)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, err := range errs {
		a.log.Error("not all of the configuration is in place", "error", err)
		after.unset = append(after.unset, err.Error())
	}
	a.config.Store(after)
	a.log.Info("configuration loaded", "servers", len(next.Servers))
	return errors.Join(errs...)
}

// toRestart says that what has changed under a key is not in use.
func toRestart(key string) string { return key + " changed: restart to apply it" }

// put puts in place what differs between two configurations, and returns what could not
// be; if that was so of the one before, all of the next one. What goes makes room for what
// comes.
func (a *App) put(ctx context.Context, last, now *configState) (errs []error) {
	before, next, again := last.cfg, now.cfg, len(last.unset) > 0
	fail := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	fail(a.removeServers(slices.Concat(before.Servers, last.stuck), now))
	if groups := next.AllGroups(); again || !reflect.DeepEqual(before.AllGroups(), groups) {
		fail(a.gateway.SetGroups(groups))
	}
	if again || next.Catalog != before.Catalog {
		fail(a.gateway.SetCatalog(translation.CatalogModes[next.Catalog.Mode]))
	}
	if again || !slices.Equal(before.Agents, next.Agents) {
		fail(a.gateway.Operator().SetAgents(translation.AgentRules(next)))
	}
	if again || !reflect.DeepEqual(next.Audit, before.Audit) {
		fail(a.gateway.Operator().SetAudit(translation.AuditOptions(next, "")))
	}
	fail(a.putSenders(before, next, again))
	if t := next.TLS; a.tls != nil && t.Cert != "" && (again || tlsFiles(t) != tlsFiles(before.TLS)) {
		fail(a.tls.Use(tlsFiles(t)))
	}
	a.beside.Put(next)
	a.gateway.Operator().SetRequired(translation.Required(next))
	fail(a.setModules(ctx, next))
	if order := translation.IDs(next.Servers); again || !slices.Equal(translation.IDs(before.Servers), order) {
		fail(a.gateway.SetOrder(order))
	}
	if again || before.Limits.Result != next.Limits.Result || before.Limits.Processes != next.Limits.Processes || before.Pins.TLSKey != next.Pins.TLSKey {
		before = &config.Config{} // connections hold these
	}
	a.logins.Set(loginServers(next))
	fail(a.setServers(ctx, before.Servers, next))
	return errs
}

// setModules puts the modules of a configuration in place. Their files are read again. A
// module that cannot be used is no error.
func (a *App) setModules(ctx context.Context, next *config.Config) error {
	secrets, err := modules.Secrets(next)
	if err != nil {
		return err
	}
	embedded := a.gateway.SetEmbedded(next.EmbeddedTools())
	err = a.gateway.SetModules(ctx, a.servers.Modules.All(ctx, next), secrets)
	a.logLeftOut()
	return errors.Join(embedded, besideModules(err))
}

// besideModules returns what of a joined error is no module that was left out, whose status
// says so.
func besideModules(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range all.Unwrap() {
			rest = append(rest, besideModules(one))
		}
		return errors.Join(rest...)
	}
	if _, left := errors.AsType[*gateway.ModuleError](err); left {
		return nil
	}
	return err
}

// removeServers ends those that there are no more, and keeps which could not be.
func (a *App) removeServers(before []config.Server, now *configState) error {
	var errs []error
	for _, s := range translation.Enabled(before) {
		if translation.At(translation.Enabled(now.cfg.Servers), s.ID) >= 0 {
			continue
		}
		if err := a.gateway.RemoveServer(s.ID); err != nil {
			errs = append(errs, err)
			if slices.ContainsFunc(a.gateway.Fleet().Status(), func(o status.Server) bool { return o.Server == s.ID }) {
				now.stuck = append(now.stuck, s)
			}
			continue
		}
		a.log.Info("server removed", "server", s.ID)
	}
	return errors.Join(errs...)
}

// setServers replaces and adds servers that differ, all at once. One that cannot be
// reached is no error.
func (a *App) setServers(ctx context.Context, before []config.Server, next *config.Config) error {
	before, now := translation.Enabled(before), translation.Enabled(next.Servers)
	errs := make([]error, len(now))
	var wg sync.WaitGroup
	for i, s := range now {
		at := translation.At(before, s.ID)
		if at >= 0 {
			before[at].Required = s.Required // which is nothing that a connection has
		}
		if at >= 0 && reflect.DeepEqual(before[at], s) && !a.servers.Changed(ctx, s) {
			continue
		}
		wg.Go(func() {
			if at < 0 {
				a.log.Info("server added", "server", s.ID)
			} else {
				a.log.Info("server changed", "server", s.ID)
			}
			errs[i] = a.gateway.SetServer(ctx, a.servers.Server(ctx, next, s))
			if _, ok := errors.AsType[*fault.Fault](errs[i]); ok {
				errs[i] = nil // its status says so
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// configProblems says what of the configuration's files is not in use.
func (a *App) configProblems() []string {
	c := a.config.Load()
	var problems []string
	if c.err != nil {
		for line := range strings.Lines(c.err.Error()) {
			problems = append(problems, "configuration: "+strings.TrimSuffix(line, "\n")+"; the last good one is in use")
		}
	}
	for _, p := range c.unset {
		problems = append(problems, "configuration: "+p)
	}
	for _, key := range c.restart {
		problems = append(problems, "configuration: "+toRestart(key))
	}
	for _, w := range c.cfg.Warnings {
		problems = append(problems, w.String())
	}
	return problems
}
