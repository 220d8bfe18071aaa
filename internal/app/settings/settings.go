// Package settings puts the configuration of a gateway in place again when its files change.
package settings

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/app/logs"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/background"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/web"
)

// state is the outcome of the last reading of the configuration.
type state struct {
	read    time.Time // when what is in use was read
	cfg     *config.Config
	files   string          // as they were at the start; see files
	err     error           // why what the files hold now is not in use
	unset   []string        // parts that could not be put in place, and are tried again
	stuck   []config.Server // that could not be removed
	restart []string        // keys that have changed since the start, and wait for the next

	refused *policyfiles.Files // with which calls could not be decided on; nil if they can
	state   [32]byte           // of these, when they were read
}

// changed reports whether the policy files that kept a configuration from being put in place have
// changed since.
func (c *state) changed() bool { return c.refused != nil && c.refused.State() != c.state }

// Settings are the configuration that one gateway uses, and the parts of its files that are not in use.
// The exported fields are set before the files are watched.
type Settings struct {
	Gateway    *gateway.Gateway
	Servers    *translation.Servers
	Approvals  *approvals.Approvals
	Callers    *callers.Callers
	Logins     *logins.Logins
	Policies   *policies.Policies
	Background *background.Work
	Listens    []string // addresses for HTTP
	TLS        *web.TLS // of those that speak it; nil if none does
	// Reloaded is called after each reading of the files; the error says which parts of them are not in
	// use. It may be nil.
	Reloaded func(context.Context, error)

	start *config.Config
	log   *slog.Logger
	now   atomic.Pointer[state]
}

// New returns the settings of a gateway that starts with a configuration.
func New(cfg *config.Config, log *slog.Logger) *Settings {
	s := &Settings{start: cfg, log: log}
	s.now.Store(&state{read: time.Now(), cfg: cfg, files: files(cfg)})
	return s
}

// Config is the configuration in use.
func (set *Settings) Config() *config.Config { return set.now.Load().cfg }

// Read is when the configuration in use was read.
func (set *Settings) Read() time.Time { return set.now.Load().read }

// Failed reports whether the files have an error, so that an earlier configuration is in use.
func (set *Settings) Failed() bool { return set.now.Load().err != nil }

// Checks says how calls are checked under a configuration.
func (set *Settings) Checks(c *config.Config, node string) gateway.Config {
	to := translation.Checks(c, node)
	to.Approvals = set.Approvals.Options(c.Approvals, node)
	return to
}

// LogLeftOut logs the modules that cannot be used.
func (set *Settings) LogLeftOut() {
	for _, m := range set.Gateway.Modules() {
		if m.Error != "" {
			set.log.Error("module left out", "module", m.Module, "error", m.Error)
		}
	}
}

// Watch returns a function to be called regularly. It reads the configuration anew if one of its files,
// or of its modules' files, has changed and then rested (a file may be written in several steps), if a
// signal asks for it, or if a policy that kept a configuration out has changed.
func (set *Settings) Watch(ctx context.Context, hangup <-chan os.Signal) func() {
	read, last := set.now.Load().files, files(set.start)
	return func() {
		asked := set.now.Load().changed()
		select {
		case <-hangup:
			asked = true
		default:
		}
		now := files(set.Config())
		if asked || now == last && now != read { // once more if it names other modules
			read = now
			err := set.Reload(ctx) // it logs what is wrong
			if set.Reloaded != nil {
				set.Reloaded(ctx, err)
			}
		}
		last = now
	}
}

// files identifies a version of the files of the configuration and its modules, and of the servers'
// secrets.
func files(c *config.Config) (all string) {
	for _, f := range append(c.Files(), modules.Files(c)...) {
		all += f + " " + watch.State(f) + "\n"
	}
	for _, s := range translation.Enabled(c.Servers) {
		all += translation.SecretFiles(s)
	}
	return all
}

// Reload puts in place what the files say now. If anything is wrong with the files, everything stays as
// it is. The way in which calls are checked changes first, at once and as a whole; if that fails,
// nothing changes. A change that the gateway cannot make while it runs waits for a restart, and is
// named. A server that cannot be reached, or a module that cannot be used, is no error: the status
// reports it.
func (set *Settings) Reload(ctx context.Context) error {
	before := set.now.Load()
	next, err := before.cfg.Reread(config.Options{})
	if err != nil {
		after := *before
		after.err, after.refused = err, nil
		set.now.Store(&after)
		for line := range strings.Lines(err.Error()) {
			set.log.Error("configuration refused; the last good one is still in use", "error", strings.TrimSuffix(line, "\n"))
		}
		return errors.Join(err, set.Gateway.Operator().ConfigRefused(err))
	}
	checks := set.Checks(next, "")
	for _, s := range translation.Enabled(before.cfg.Servers) {
		if translation.At(translation.Enabled(next.Servers), s.ID) < 0 {
			translation.AddServer(s, &checks) // until it is removed it is called
		}
	}
	refused := policyfiles.New(next)
	was := refused.State()
	if err := set.Policies.Reconfigure(ctx, next, checks, callers.Same(before.cfg, next)); err != nil {
		after := *before
		after.unset, after.refused, after.state = []string{err.Error()}, refused, was
		set.now.Store(&after)
		set.log.Error("configuration not in place; the last good one is still in use", "error", err)
		return err
	}
	logs.Adjust(set.log, next.Log)
	return set.PutRest(ctx, next)
}

// PutRest puts in place the parts of a configuration that do not say how calls are checked.
func (set *Settings) PutRest(ctx context.Context, next *config.Config) error {
	before := set.now.Load()
	after := &state{read: time.Now(), cfg: next, restart: set.start.NeedRestart(next)}
	for _, key := range after.restart {
		set.log.Warn(toRestart(key))
	}
	errs := set.put(ctx, before, after)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, err := range errs {
		set.log.Error("not all of the configuration is in place", "error", err)
		after.unset = append(after.unset, err.Error())
	}
	set.now.Store(after)
	set.log.Info("configuration loaded", "servers", len(next.Servers))
	return errors.Join(errs...)
}

// toRestart says that what has changed under a key is not in use.
func toRestart(key string) string { return key + " changed: restart to apply it" }

// put puts in place the differences between two configurations, and returns the errors of those that
// failed. If some failed for the previous configuration, it puts all of the new one in place. Removals
// come first, to make room.
func (set *Settings) put(ctx context.Context, last, now *state) (errs []error) {
	before, next, again := last.cfg, now.cfg, len(last.unset) > 0
	fail := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	fail(set.removeServers(slices.Concat(before.Servers, last.stuck), now))
	if groups := next.AllGroups(); again || !reflect.DeepEqual(before.AllGroups(), groups) {
		fail(set.Gateway.SetGroups(groups))
	}
	if again || next.Catalog != before.Catalog {
		fail(set.Gateway.SetCatalog(translation.CatalogModes[next.Catalog.Mode]))
	}
	if again || !slices.Equal(before.Agents, next.Agents) {
		fail(set.Gateway.Operator().SetAgents(translation.AgentRules(next)))
	}
	if again || !reflect.DeepEqual(next.Audit, before.Audit) {
		fail(set.Gateway.Operator().SetAudit(translation.AuditOptions(next, "")))
	}
	fail(set.putCallers(before, next, again))
	if t := next.TLS; set.TLS != nil && t.Cert != "" && (again || TLSFiles(t) != TLSFiles(before.TLS)) {
		fail(set.TLS.Use(TLSFiles(t)))
	}
	set.Background.Put(next)
	set.Gateway.Operator().SetRequired(translation.Required(next))
	fail(set.setModules(ctx, next))
	if order := translation.IDs(next.Servers); again || !slices.Equal(translation.IDs(before.Servers), order) {
		fail(set.Gateway.SetOrder(order))
	}
	if again || before.Limits.Result != next.Limits.Result || before.Limits.Processes != next.Limits.Processes || before.Pins.TLSKey != next.Pins.TLSKey {
		before = &config.Config{} // connections hold these
	}
	set.Logins.Kept.Set(logins.Servers(next))
	fail(set.setServers(ctx, before.Servers, next))
	return errs
}

// putCallers puts in place the differences in who is let in.
func (set *Settings) putCallers(before, next *config.Config, again bool) error {
	if !again && callers.Same(before, next) {
		return nil
	}
	for _, addr := range set.Listens {
		if err := next.CheckListen(addr); err != nil { // it was given as a flag
			return err
		}
	}
	return set.Callers.Take(next)
}

// setModules puts the modules of a configuration in place. Their files are read again. A
// module that cannot be used is no error.
func (set *Settings) setModules(ctx context.Context, next *config.Config) error {
	secrets, err := modules.Secrets(next)
	if err != nil {
		return err
	}
	embedded := set.Gateway.SetEmbedded(next.EmbeddedTools())
	err = set.Gateway.SetModules(ctx, set.Servers.Modules.All(ctx, next), secrets)
	set.LogLeftOut()
	return errors.Join(embedded, besideModules(err))
}

// besideModules removes from a joined error the modules that were left out: the status reports those.
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
func (set *Settings) removeServers(before []config.Server, now *state) error {
	var errs []error
	for _, s := range translation.Enabled(before) {
		if translation.At(translation.Enabled(now.cfg.Servers), s.ID) >= 0 {
			continue
		}
		if err := set.Gateway.RemoveServer(s.ID); err != nil {
			errs = append(errs, err)
			if slices.ContainsFunc(set.Gateway.Fleet().Status(), func(o status.Server) bool { return o.Server == s.ID }) {
				now.stuck = append(now.stuck, s)
			}
			continue
		}
		set.log.Info("server removed", "server", s.ID)
	}
	return errors.Join(errs...)
}

// setServers replaces and adds servers that differ, all at once. One that cannot be
// reached is no error.
func (set *Settings) setServers(ctx context.Context, before []config.Server, next *config.Config) error {
	before, now := translation.Enabled(before), translation.Enabled(next.Servers)
	errs := make([]error, len(now))
	var wg sync.WaitGroup
	for i, s := range now {
		at := translation.At(before, s.ID)
		if at >= 0 {
			before[at].Required = s.Required // which is nothing that a connection has
		}
		if at >= 0 && reflect.DeepEqual(before[at], s) && !set.Servers.Changed(ctx, s) {
			continue
		}
		wg.Go(func() {
			if at < 0 {
				set.log.Info("server added", "server", s.ID)
			} else {
				set.log.Info("server changed", "server", s.ID)
			}
			errs[i] = set.Gateway.SetServer(ctx, set.Servers.Server(ctx, next, s))
			if _, ok := errors.AsType[*fault.Fault](errs[i]); ok {
				errs[i] = nil // its status says so
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Problems say which parts of the configuration's files are not in use, and why.
func (set *Settings) Problems() []string {
	c := set.now.Load()
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

// TLSFiles are those by which a gateway speaks TLS.
func TLSFiles(t config.TLS) web.Files {
	return web.Files{Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA, Required: t.Required}
}
