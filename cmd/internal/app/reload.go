package app

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/config"
)

// configState is the outcome of the last reading of the configuration.
type configState struct {
	read    time.Time // when what is in use was read
	cfg     *config.Config
	err     error    // why what the files hold now is not in use
	servers []string // problems of servers that were changed
	restart []string // keys that have changed since the start, and wait for the next
}

// server puts a server of the configuration into the words of a gateway.
func (a *App) server(ctx context.Context, s config.Server) gateway.Server {
	to := gateway.Server{EndpointConfig: endpoint(s), Sanitize: s.Sanitize, Concurrent: s.Concurrent}
	to.Written, to.PinTLS = s.Written, a.cfg.Pins.TLSKey
	if a.learn != nil {
		to.Confine, to.Learn = nil, a.learn
	}
	if !isModule(s) {
		return to
	}
	guest, err := a.guest(ctx, s)
	if err != nil {
		to.Broken = err.Error()
		return to
	}
	to.Guest = &guest
	return to
}

// watchConfig reads the configuration anew whenever its files have changed and then
// rest, for an editor may write them in several steps, or a signal asks for it, until
// ctx ends.
func (a *App) watchConfig(ctx context.Context) {
	hangup, stop := hangups()
	defer stop()
	state := func() (all string) {
		for _, f := range a.cfg.Files() {
			all += fileState(f) + "\n"
		}
		return all
	}
	read, last := state(), state()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		asked := false
		select {
		case <-tick.C:
		case <-hangup:
			asked = true
		case <-ctx.Done():
			return
		}
		now := state()
		if asked || now == last && now != read {
			read = now
			_ = a.reloadConfig(ctx) // it logs what is wrong
		}
		last = now
	}
}

// reloadConfig puts the servers that the files name now in place. If anything is
// wrong with the files, all stays as it is. What has changed beside servers waits for
// a restart. A server that cannot be reached is no error.
func (a *App) reloadConfig(ctx context.Context) error {
	before := a.config.Load()
	next, err := before.cfg.Reread(config.Options{})
	if err != nil {
		after := *before
		after.err = err
		a.config.Store(&after)
		for line := range strings.Lines(err.Error()) {
			a.log.Error("configuration refused; the last good one stays", "error", strings.TrimSuffix(line, "\n"))
		}
		return errors.Join(err, a.gateway.ConfigRefused(err))
	}
	after := &configState{read: time.Now(), cfg: next, restart: a.cfg.Changed(next)}
	if len(after.restart) > 0 {
		a.log.Warn("configuration changed; restart for all but servers", "keys", strings.Join(after.restart, ", "))
	}
	if after.servers, err = a.changeServers(ctx, before.cfg.Servers, next.Servers); ctx.Err() != nil {
		return ctx.Err()
	}
	a.config.Store(after)
	a.log.Info("configuration loaded", "servers", len(next.Servers))
	return err
}

// changeServers removes, replaces and adds what differs, and returns what went wrong.
func (a *App) changeServers(ctx context.Context, before, now []config.Server) (problems []string, err error) {
	before, now = enabled(before), enabled(now)
	var errs []error
	for _, s := range before {
		if find(now, s.ID) < 0 {
			errs = append(errs, a.gateway.RemoveServer(s.ID))
			a.log.Info("server removed", "server", s.ID)
		}
	}
	var mu sync.Mutex // guards errs
	var wg sync.WaitGroup
	for _, s := range now {
		at := find(before, s.ID)
		if at >= 0 && reflect.DeepEqual(before[at], s) {
			continue
		}
		wg.Go(func() {
			if at < 0 {
				a.log.Info("server added", "server", s.ID)
			} else {
				a.log.Info("server changed", "server", s.ID)
			}
			err := a.gateway.SetServer(ctx, a.server(ctx, s))
			if _, ok := errors.AsType[*bridge.Fault](err); ok {
				return // its status says so
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			a.log.Error("server not changed", "error", err)
			problems = append(problems, err.Error())
		}
	}
	return problems, errors.Join(errs...)
}

func enabled(servers []config.Server) []config.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s config.Server) bool { return !s.Enabled })
}

func find(servers []config.Server, id string) int {
	return slices.IndexFunc(servers, func(s config.Server) bool { return s.ID == id })
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
	for _, p := range c.servers {
		problems = append(problems, "configuration: "+p)
	}
	if len(c.restart) > 0 {
		problems = append(problems, fmt.Sprintf("configuration: changed since the start, and not in use until a restart: %s", strings.Join(c.restart, ", ")))
	}
	for _, w := range c.cfg.Warnings {
		problems = append(problems, w.String())
	}
	return problems
}

func callLimits(c *config.Config) gateway.Limits {
	l := gateway.Limits{
		Body: c.Limits.Body, Result: c.Limits.Result, Concurrent: c.Limits.Concurrent, Session: c.Limits.Session,
		Servers: make(map[string]int),
	}
	for _, t := range c.Limits.Tools {
		l.Tools = append(l.Tools, gateway.ToolLimit(t))
	}
	return l
}
