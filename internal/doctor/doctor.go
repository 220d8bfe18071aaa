package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/hook/install"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/policy"
)

// A State says how something is.
type State string

// The states. A fault keeps the gateway, or a part of it, from working.
const (
	OK      State = "ok"
	Warning State = "warning"
	Fault   State = "fault"
)

// A Check is one thing that was looked at.
type Check struct {
	Of    string `json:"of"`
	State State  `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // how to fix it
}

const (
	dialTime    = 3 * time.Second
	connectTime = time.Minute
	// slack is how far the clock may be behind what was written by it.
	slack = time.Minute
)

// A Use is given the tools that were found. It may be nil.
type Use func(tools []inventory.Tool) error

// Look makes all checks. It asks a running gateway how its servers are; if none runs, it starts the
// servers once. Their tools are given to use. While servers start, Look calls coming with a function
// that returns their state, and calls the function that coming returns once they are up; coming may be
// nil.
func Look(ctx context.Context, cfg *config.Config, log *slog.Logger, use Use, coming func(func() *overview.Status) (stop func())) []Check {
	all := []Check{permissions("configuration", cfg.File, 0o022), state(cfg), disk(cfg), clock(cfg)}
	all = append(all, rules(ctx, cfg, log))
	if cfg.Store.On() {
		all = append(all, Store(ctx, cfg)...)
		all = append(all, peers(ctx, cfg)...)
	}
	running, err := app.Dial(ctx, cfg)
	if err == nil {
		defer running.Close()
		if use != nil {
			var ids []string
			for _, s := range cfg.Servers {
				if s.Enabled {
					ids = append(ids, s.ID)
				}
			}
			_, _ = Await(ctx, running, ids) // what failed is looked at below
		}
		all = append(all, use.of(ctx, running)...)
		s, err := overview.Show.Ask(ctx, running, operation.None{})
		all = append(all, servers(s, err)...)
		all = append(all, hooks(ctx, cfg, true)...)
	} else {
		all = append(all, ports(cfg)...)
		all = append(all, started(ctx, cfg, log, use, coming)...)
		all = append(all, hooks(ctx, cfg, false)...)
	}
	return append(all, targets(ctx, cfg)...)
}

// hooks looks whether the agents of the configuration read hooks that work.
func hooks(ctx context.Context, cfg *config.Config, running bool) (all []Check) {
	for _, configured := range cfg.Agents {
		a, ok := install.Of(configured.ID)
		if !ok {
			continue
		}
		of, do := "hooks of "+a.ID, "wasmgate hook doctor "+a.ID
		line, err := install.NewLine(cfg.State, false)
		var checks []install.Check
		if err == nil {
			checks, err = a.Doctor(ctx, line, true, running)
		}
		if err != nil {
			all = append(all, Check{of, Warning, err.Error(), do})
			continue
		}
		var wrong []string
		for _, c := range checks {
			if !c.OK && (running || c.Check != "gateway" && c.Check != "hook") { // these two ask a gateway
				wrong = append(wrong, c.Said)
			}
		}
		if len(wrong) > 0 {
			all = append(all, Check{of, Warning, strings.Join(wrong, "; "), do})
		} else {
			all = append(all, Check{of, OK, "the agent reads them", ""})
		}
	}
	return all
}

// permissions looks whether others may do to a file what they should not.
func permissions(of, path string, no fs.FileMode) Check {
	if path == "" {
		return Check{of, OK, "no file: all is as it is without one", ""}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Check{of, Fault, err.Error(), "name a file that is there with --config"}
	case runtime.GOOS != "windows" && info.Mode().Perm()&no != 0:
		return Check{of, Fault, fmt.Sprintf("%s has mode %03o: others of this machine may change it", path, info.Mode().Perm()), "chmod go-w " + path}
	}
	return Check{of, OK, path + " is read", ""}
}

// state checks that the state folder can be written, by its owner only.
func state(cfg *config.Config) Check {
	const of = "state"
	info, err := os.Stat(cfg.State)
	if errors.Is(err, fs.ErrNotExist) {
		return Check{of, OK, cfg.State + " is made at the first start", ""}
	}
	if err != nil || !info.IsDir() {
		return Check{of, Fault, fmt.Sprintf("%s is not a folder that can be used: %v", cfg.State, err), "set state: in the configuration"}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return Check{of, Fault, fmt.Sprintf("%s has mode %03o: anyone who can open control.sock in it controls the gateway", cfg.State, info.Mode().Perm()), "chmod 700 " + cfg.State}
	}
	probe, err := os.CreateTemp(cfg.State, ".doctor-*")
	if err != nil {
		return Check{of, Fault, err.Error(), "give the folder to the user that runs the gateway"}
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return Check{of, Warning, err.Error(), ""}
	}
	return Check{of, OK, cfg.State + " is its owner's alone, and can be written", ""}
}

// there returns the folder of a file, or the nearest one above that is there.
func there(file string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

func disk(cfg *config.Config) Check {
	const of = "disk"
	disk, err := files.DiskOf(there(cfg.Audit.Path))
	if err != nil {
		return Check{of, Warning, fmt.Sprintf("how full the disk of the audit log is cannot be told: %v", err), ""}
	}
	c := Check{of, OK, fmt.Sprintf("%d MiB free on the audit log's disk", disk.Free>>20), ""}
	if disk.Room() == 0 { // the log leaves the reserve free where it can
		c.State, c.Do = Warning, "make room: old files of the log go before their time, and a full disk refuses every call"
	}
	if disk.Free < disk.Reserve()/5 { // records soon cannot be written
		c.State = Fault
	}
	return c
}

// clock holds the clock against what was written by it: certificates, tokens and the order of
// records depend on it.
func clock(cfg *config.Config) Check {
	const of = "clock"
	if info, err := os.Stat(cfg.Audit.Path); err == nil && time.Until(info.ModTime()) > slack {
		return Check{of, Fault, fmt.Sprintf("the audit log was written at %s, a time in the future", info.ModTime().Format(time.RFC3339)), "set the clock, with NTP for instance"}
	}
	return Check{of, OK, time.Now().Format(time.RFC3339), ""}
}

func rules(ctx context.Context, cfg *config.Config, log *slog.Logger) Check {
	const of = "policy"
	p, unread, err := policyfiles.Read(ctx, cfg, log)
	if err == nil {
		var engine *policy.Engine
		if engine, err = policy.Load(ctx, p.Files, p.Options); err == nil {
			if unread != nil {
				return Check{of, Warning, unread.Error(), "see docs/how-to/bundles.md"}
			}
			return Check{of, OK, "it compiles, revision " + engine.Revision(), ""}
		}
	}
	return Check{of, Fault, err.Error(), "wasmgate policy check"}
}

// Store looks whether a gateway can use the database of a configuration.
func Store(ctx context.Context, cfg *config.Config) (all []Check) {
	found, err := members.CheckStore(ctx, cfg)
	if err != nil {
		return []Check{{"store", Fault, err.Error(), ""}}
	}
	for _, f := range found {
		c := Check{"store, " + f.Of, OK, f.Found, ""}
		if f.Err != nil {
			c.State, c.Found = Fault, strings.TrimPrefix(f.Err.Error(), "store: ")
		}
		all = append(all, c)
	}
	return all
}

// peers looks whether the gateways of the database answer.
func peers(ctx context.Context, cfg *config.Config) (all []Check) {
	p, err := members.OpenPeers(ctx, cfg)
	if err != nil { // Store says the same of the database
		return nil
	}
	defer p.Close(ctx)
	for _, name := range p.Nodes {
		c := Check{"gateway " + name, OK, "it answers, and proves the secret and its name", ""}
		if err := p.Check(ctx, name); err != nil {
			c.State, c.Found, c.Do = Warning, err.Error(), "requests about what is at that gateway are answered 503"
		}
		all = append(all, c)
	}
	return all
}

// ports looks whether the gateway can listen where it is to.
func ports(cfg *config.Config) (all []Check) {
	of := map[string]string{}
	var addresses []string
	add := func(what, addr string) {
		if addr != "" && addr != "off" && !strings.HasPrefix(addr, "unix:") && of[addr] == "" {
			addresses, of[addr] = append(addresses, addr), what
		}
	}
	for _, addr := range cfg.Listen {
		add("MCP", addr)
	}
	add("console", cfg.Console.Listen)
	add("metrics", cfg.Telemetry.Metrics.Listen)
	for _, addr := range addresses {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			all = append(all, Check{"port", Fault, fmt.Sprintf("%s for %s: %v", addr, of[addr], err), "end who has it, or choose another address"})
			continue
		}
		ln.Close()
		all = append(all, Check{"port", OK, fmt.Sprintf("%s for %s is free", addr, of[addr]), ""})
	}
	return all
}

// started starts the servers once, and looks how they are.
func started(ctx context.Context, cfg *config.Config, log *slog.Logger, use Use, coming func(func() *overview.Status) (stop func())) []Check {
	a, err := app.New(ctx, cfg, log, "")
	if err != nil {
		return []Check{{"start", Fault, err.Error(), ""}}
	}
	stop := func() {}
	if coming != nil {
		stop = coming(a.Overview.Status)
	}
	waiting, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	err = a.Connect(waiting)
	stop()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // the servers that are not up are named below
	}
	all := append(use.of(ctx, a), servers(a.Overview.Status(), err)...)
	if err := a.Close(ctx); err != nil {
		all = append(all, Check{"start", Warning, err.Error(), ""})
	}
	return all
}

// of gives the tools of a gateway to its use.
func (use Use) of(ctx context.Context, g operation.Gateway) []Check {
	if use == nil {
		return nil
	}
	tools, err := inventory.Tools.Ask(ctx, g, inventory.Request{All: true})
	if err == nil {
		err = use(tools)
	}
	if err != nil {
		return []Check{{"tools", Fault, err.Error(), "wasmgate tools --all"}}
	}
	return nil
}

// Await waits until a gateway knows the servers, and each has connected or failed, for a minute at most. It returns
// the last status.
func Await(ctx context.Context, g operation.Gateway, ids []string) (*overview.Status, error) {
	waiting, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for {
		s, err := overview.Show.Ask(ctx, g, operation.None{})
		if err != nil || !slices.ContainsFunc(ids, func(id string) bool {
			return !slices.ContainsFunc(s.Servers, func(has status.Server) bool { return has.Server == id && has.Phase != status.Connecting })
		}) {
			return s, err
		}
		if !watch.Wait(waiting, watch.Every/4) {
			return s, ctx.Err()
		}
	}
}

// servers reports the state of each server, what waits for approval, and other problems of the gateway.
func servers(s *overview.Status, err error) (all []Check) {
	if err != nil {
		all = append(all, Check{"servers", Fault, err.Error(), ""})
	}
	if s == nil {
		return all
	}
	for _, one := range s.Servers {
		switch {
		case one.Phase == status.Connecting:
			all = append(all, Check{"server " + one.Server, Fault, "it is still starting: the first start of a package can take minutes", "wasmgate status " + one.Server})
		case one.Error != "" || one.Phase == status.Faulted:
			all = append(all, Check{"server " + one.Server, Fault, fmt.Sprintf("%s: %s", one.Phase, one.Error), "wasmgate status " + one.Server})
		case len(one.Quarantined) > 0:
			all = append(all, Check{"server " + one.Server, Warning, fmt.Sprintf("%d of its definitions wait for your approval", len(one.Quarantined)), "wasmgate pin diff " + one.Server})
		default:
			all = append(all, Check{"server " + one.Server, OK, fmt.Sprintf("%s, %d tools", one.Phase, one.Tools), ""})
		}
	}
	for _, m := range s.Modules {
		if m.Error != "" {
			all = append(all, Check{"module " + m.Module, Fault, m.Error, "wasmgate sandbox check " + m.Module})
		}
	}
	for _, t := range s.Altered {
		all = append(all, Check{"results", Warning, t.String(), "wasmgate audit --tool " + t.Tool + " --json shows by which rules and where"})
	}
	for _, p := range s.Problems {
		all = append(all, Check{"gateway", Warning, p, ""})
	}
	return all
}

// targets checks that the systems to which the gateway sends something answer.
func targets(ctx context.Context, cfg *config.Config) (all []Check) {
	dial := func(of, to string) {
		if to != "" {
			all = append(all, reach(ctx, of, to))
		}
	}
	x, problems := cfg.Telemetry.Exports(os.LookupEnv)
	for _, err := range problems {
		all = append(all, Check{"telemetry", Warning, err.Error(), ""})
	}
	if x.Traces != nil {
		dial("traces", x.Traces.URL)
	}
	if x.Metrics != nil {
		dial("metrics", x.Metrics.URL)
	}
	for _, s := range cfg.Telemetry.Ship {
		dial("ship "+s.Name, s.Target.URL)
	}
	for _, n := range cfg.Notify {
		dial("notify "+n.Name, n.Target.URL)
	}
	return all
}

// reach connects once. The URL itself is not shown: it may hold a secret.
func reach(ctx context.Context, of, to string) Check {
	u, err := url.Parse(to)
	if err != nil {
		return Check{of, Fault, "its URL cannot be read", ""}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	d := net.Dialer{Timeout: dialTime}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return Check{of, Warning, err.Error(), "calls pass without it; what is not taken waits or is lost, as docs/how-to/monitor.md says"}
	}
	c.Close()
	return Check{of, OK, u.Host + " answers", ""}
}

// Text is what people read of checks, and how many faults are among them.
func Text(checks []Check) (text string, faults int) {
	var lines []string
	for _, c := range checks {
		lines = append(lines, fmt.Sprintf("%-8s %s: %s", c.State, escaped.Text(c.Of), escaped.Text(c.Found)))
		if c.State == Fault {
			faults++
		}
		if c.State != OK && c.Do != "" {
			lines = append(lines, "         "+escaped.Text(c.Do))
		}
	}
	return strings.Join(lines, "\n"), faults
}
