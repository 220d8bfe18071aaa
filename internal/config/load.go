package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Options say what a configuration may see of its surroundings. The zero value
// is the process's own.
type Options struct {
	Getenv func(name string) (string, bool) // nil: os.LookupEnv
	Dirs   Dirs                             // zero: UserDirs()
}

func (o Options) filled() (Options, error) {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	var err error
	if o.Dirs == (Dirs{}) {
		o.Dirs, err = UserDirs()
	}
	return o, err
}

// Load reads the one file at path, whether it is a wasmgate.yaml or an mcp.json.
// The error is a [Problems] with everything that is wrong with the file, or
// says why it could not be read.
//
// Unless a wasmgate.yaml says otherwise, its state, audit log and grants are
// beside it. Those of an mcp.json, which belongs to another program and often
// lies where an agent may write, are in a folder of its own below Dirs.State.
func Load(path string, o Options) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data, o)
}

// Parse is [Load] of bytes that the caller has read from path.
func Parse(path string, data []byte, o Options) (*Config, error) {
	c, problems, err := parseAll(path, data, o)
	if err = cmp.Or(err, problems.err()); err != nil {
		return nil, err
	}
	return c, nil
}

// parseAll is Parse that returns what it has understood, beside the problems.
func parseAll(path string, data []byte, o Options) (*Config, Problems, error) {
	o, err := o.filled()
	if err != nil {
		return nil, nil, err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	d := &decoder{file: path, dir: filepath.Dir(file), lookup: o.Getenv}
	var c *Config
	if isJSON(path, data) {
		c = d.hostFile(file, data, o.Dirs)
	} else {
		c = beside(d.dir)
		if root := d.parse(data, false); root != nil {
			d.config(root, c)
		}
	}
	c.File, c.Warnings = file, d.warnings
	return c, d.problems, nil
}

// read returns the content of a file, up to one byte beyond what is allowed.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxJSON+1))
}

// isJSON tells by the name, and where that says nothing by how data begins.
func isJSON(path string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonc":
		return true
	case ".yaml", ".yml":
		return false
	}
	s := strings.TrimLeft(strings.TrimPrefix(string(data[:min(len(data), 512)]), "\ufeff"), " \t\r\n")
	return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*")
}

// parse returns the tree of data, or nil after reporting that there is none.
func (d *decoder) parse(data []byte, json bool) *node {
	root, ps := parse(data, json)
	for _, p := range ps {
		p.File = d.file
		d.problems = append(d.problems, p)
	}
	return root
}

// config decodes the top level of a wasmgate.yaml into c, which holds the
// defaults.
func (d *decoder) config(root *node, c *Config) {
	readers := map[string]reader{
		"version":    d.version,
		"listen":     d.listen(&c.Listen),
		"drain":      d.duration(&c.Drain, time.Second, time.Hour),
		"public_url": d.text(&c.PublicURL, checkPublicURL),
		"tls":        func(n *node, path string) { d.tls(&c.TLS, n, path) },
		"auth":       func(n *node, path string) { d.auth(&c.Auth, n, path) },
		"principals": func(n *node, path string) { d.principals(&c.Principals, n, path) },
		"agents":     func(n *node, path string) { d.agents(&c.Agents, n, path) },
		"groups":     func(n *node, path string) { d.groups(&c.Groups, n, path) },
		"catalog":    func(n *node, path string) { d.catalog(&c.Catalog, n, path) },
		"servers":    func(n *node, path string) { d.servers(&c.Servers, nil, n, path) },
		"tools":      func(n *node, path string) { d.modules(&c.Tools, n, path) },
		"secrets":    func(n *node, path string) { d.boundSecrets(&c.Secrets, n, path) },
		"policy":     func(n *node, path string) { d.policy(&c.Policy, n, path) },
		"sanitize":   func(n *node, path string) { d.sanitize(&c.Sanitize, n, path) },
		"pins":       func(n *node, path string) { d.pins(&c.Pins, n, path) },
		"approvals":  func(n *node, path string) { d.approvals(&c.Approvals, n, path) },
		"sessions":   func(n *node, path string) { d.sessions(&c.Sessions, n, path) },
		"jobs":       func(n *node, path string) { d.jobs(&c.Jobs, n, path) },
		"audit":      func(n *node, path string) { d.audit(&c.Audit, &c.Anchor, &c.Arguments, n, path) },
		"limits":     func(n *node, path string) { d.limits(&c.Limits, n, path) },
		"http":       func(n *node, path string) { d.http(&c.HTTP, n, path) },
		"log":        func(n *node, path string) { d.log(&c.Log, n, path) },
		"notify":     func(n *node, path string) { d.notify(&c.Notify, n, path) },
		"console":    func(n *node, path string) { d.console(&c.Console, n, path) },
		"telemetry":  func(n *node, path string) { d.telemetry(&c.Telemetry, n, path) },
		"vault":      func(n *node, path string) { d.vault(&c.Vault, n, path) },
		"state":      d.path(&c.State),
		"server_info": func(n *node, path string) {
			i := &c.ServerInfo
			d.table(n, path, map[string]reader{"name": d.text(&i.Name), "version": d.text(&i.Version), "description": d.text(&i.Description)})
		},
		"mcpServers": func(n *node, path string) {
			d.fail(n, path, "is the key of an mcp.json: name the file so, or turn it into servers with `wasmgate import FILE`")
		},
	}
	for _, k := range []string{
		"store", "node", "secret", "tenants", "cluster",
	} {
		readers[k] = d.later
	}
	readers["tools_verify"] = func(n *node, path string) {
		var s string
		d.one(&s, "required", "configured")(n, path)
		c.MustSign = s == "required"
	}
	d.table(root, "", readers)
	c.mustSign()
	d.clashes(root.get("tools"), c)
	d.checkAgents(root, c)
	d.checkGroups(root.get("principals"), c)
	d.checkSecrets(root.get("tools"), c)
	d.checkAuth(root, c)
}

// clashes reports modules that claim the name of a server.
func (d *decoder) clashes(tools *node, c *Config) {
	for i, m := range c.Tools { // one for each field of tools
		if slices.ContainsFunc(c.Servers, func(s Server) bool { return s.ID == m.Server }) {
			f := tools.fields[i]
			d.fail(&node{line: f.line}, join(join("tools", f.key), "server"), "%q is one of the servers: choose another name", m.Server)
		}
	}
}

func (d *decoder) version(n *node, path string) {
	if n.kind != number || n.text != "1" {
		d.fail(n, path, "must be 1, the only version there is")
	}
}

var (
	principalPattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._@+-]|%[0-9A-F]{2})*/)?([A-Za-z0-9]|%[0-9A-F]{2})([A-Za-z0-9._@+-]|%[0-9A-F]{2})*$`)
	rolePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

func (d *decoder) principals(to *[]Principal, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		p := Principal{}
		p.Tenant, p.ID = SplitPrincipal(f.key)
		if !principalPattern.MatchString(f.key) || len(p.ID) > maxPrincipal || len(p.Tenant) > maxPrincipal {
			d.fail(&node{line: f.line}, path, "a principal is named by %s", idHelp)
		}
		d.table(f.value, path, map[string]reader{
			"roles":  d.texts(&p.Roles, matches(rolePattern, "a role: letters, digits and . _ -")),
			"groups": d.offered(&p.Groups), "identities": d.texts(&p.Identities, identity),
		})
		*to = append(*to, p)
	})
}

// identity refuses what is no value of one person or house: a domain under which anybody
// can have an address counts as everybody's.
func identity(s string) error {
	domain, whole := strings.CutPrefix(s, "@")
	switch {
	case strings.TrimSpace(s) != s || len(s) < 2:
		return errors.New("is no address, account, folder or @domain")
	case whole && !domainPattern.MatchString(domain):
		return errors.New("is no domain, such as @example.com")
	case whole && shared(strings.ToLower(domain)):
		return errors.New("is a domain under which anybody can have an address: write the addresses that are yours")
	}
	return nil
}

// shared reports whether a domain is that of a mail provider, or one of which others have
// parts.
func shared(domain string) bool {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain || slices.Contains(mailProviders, domain)
}

// mailProviders are those with which people have most of their addresses.
var mailProviders = strings.Fields(`
	gmail.com googlemail.com outlook.com hotmail.com hotmail.co.uk hotmail.fr hotmail.de live.com msn.com yahoo.com yahoo.co.uk yahoo.co.jp yahoo.fr yahoo.de
	ymail.com aol.com icloud.com me.com mac.com proton.me protonmail.com pm.me gmx.com gmx.net gmx.de gmx.at gmx.ch web.de t-online.de freenet.de mail.com
	email.com mail.ru bk.ru list.ru inbox.ru yandex.ru yandex.com ya.ru rambler.ru qq.com foxmail.com 163.com 126.com yeah.net sina.com naver.com daum.net
	hanmail.net zoho.com fastmail.com fastmail.fm hey.com tutanota.com tuta.com tuta.io mailbox.org posteo.de posteo.net hushmail.com laposte.net orange.fr
	free.fr sfr.fr wanadoo.fr libero.it virgilio.it tiscali.it bol.com.br uol.com.br terra.com.br rediffmail.com comcast.net verizon.net att.net sbcglobal.net
	cox.net charter.net bellsouth.net btinternet.com sky.com virginmedia.com bigpond.com optusnet.com.au shaw.ca rogers.com sympatico.ca seznam.cz wp.pl o2.pl
	interia.pl onet.pl ukr.net abv.bg mailinator.com guerrillamail.com 10minutemail.com users.noreply.github.com`)

var domainPattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}$`)

func (d *decoder) policy(to *Policy, n *node, path string) {
	d.table(n, path, map[string]reader{
		"packs":   d.packs(to),
		"paths":   func(n *node, path string) { d.paths(&to.Paths, n, path) },
		"data":    d.policyData(to),
		"timeout": d.duration(&to.Timeout, time.Millisecond, time.Minute),
		"bundles": func(n *node, path string) { d.bundles(&to.Bundles, n, path) },
		"shadow":  func(*node, string) {}, // below: what it leaves out is as in the policy
	})
	if shadow := n.get("shadow"); shadow != nil {
		to.Shadow = d.shadow(*to, shadow, join(path, "shadow"))
	}
}

func (d *decoder) packs(to *Policy) reader {
	return d.texts(&to.Packs, func(s string) error {
		if !slices.Contains(packs, s) {
			return errors.New("is a pack that is not in this version; these are: " + strings.Join(packs, ", "))
		}
		return nil
	})
}

func (d *decoder) paths(to *[]string, n *node, path string) {
	d.items(n, path, func(item *node, at string) {
		var s string
		if d.path(&s, exists)(item, at); s != "" {
			*to = append(*to, s)
		}
	})
}

func (d *decoder) policyData(to *Policy) reader {
	return func(n *node, path string) {
		d.table(n, path, map[string]reader{"grants": d.path(&to.Grants), "labels": d.path(&to.Labels, exists), "ratelimit": d.path(&to.RateLimits, exists)})
	}
}

// packs are the built-in policy packs.
var packs = []string{"grants", "flow", "flow-ask", "readonly", "approve", "ratelimit", "paths", "urls"}

// exists is a check, since a policy that is not found would not deny.
func exists(path string) error {
	if _, err := os.Stat(path); err != nil {
		return errors.New("does not exist")
	}
	return nil
}

var (
	profiles    = []string{"strict", "html", "text", "code", "off"}
	toolPattern = regexp.MustCompile(`^[A-Za-z0-9_-]*\*?$`)
	mimePattern = regexp.MustCompile(`^[a-z0-9!#$&^_.+-]+/([a-z0-9!#$&^_.+-]+|\*)$`)
)

// toolWords says what toolPattern matches.
const toolWords = "the name of a tool, or its beginning and *"

// checkTools checks a pattern of tools' names.
func checkTools(s string) error { return matches(toolPattern, toolWords)(s) }

func (d *decoder) sanitize(to *Sanitize, n *node, path string) {
	d.table(n, path, map[string]reader{
		"profile": d.one(&to.Profile, profiles...),
		"tools":   d.rules(&to.Tools, checkTools),
		"mime":    d.rules(&to.MIME, matches(mimePattern, "a media type in lower case, such as text/html or text/*")),
		"links": func(n *node, path string) {
			to.Links = []string{}
			d.texts(&to.Links, linkTarget)(n, path)
		},
		"secrets": d.secretScan(&to.Secrets),
	})
}

var linkTargets = regexp.MustCompile(`^(\*|(https?://|\*\.)?[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?)$`)

func linkTarget(s string) error {
	if !linkTargets.MatchString(s) {
		return errors.New("is no origin, no host and not *: write https://example.com, example.com or *.example.com")
	}
	return nil
}

func (d *decoder) rules(to *[]Rule, pattern check) reader {
	return func(n *node, path string) {
		d.each(n, path, func(f field, path string) {
			r := Rule{Pattern: f.key}
			if err := pattern(f.key); err != nil {
				d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
			}
			d.one(&r.Profile, profiles...)(f.value, path)
			*to = append(*to, r)
		})
	}
}

func (d *decoder) pins(to *Pins, n *node, path string) {
	d.table(n, path, map[string]reader{
		"mode": d.one(&to.Mode, "trust-first", "strict", "off"), "lockfile": d.path(&to.Lockfile), "tls_key": d.flag(&to.TLSKey),
	})
}

// channels are the ways in which people are asked.
var channels = []string{"client", "cli"}

func (d *decoder) approvals(to *Approvals, n *node, path string) {
	d.table(n, path, map[string]reader{
		"channels": d.texts(&to.Channels, among(channels)),
		"by":       d.texts(&to.By, checkApprover),
		"not_self": d.flag(&to.NotSelf),
		"hold":     d.duration(&to.Hold, 0, time.Hour),
		"expire":   d.duration(&to.Expire, time.Minute, 24*time.Hour),
	})
	if to.Hold > to.Expire {
		d.fail(n, join(path, "hold"), "is longer than expire, after which no answer counts")
	}
	if by := n.get("by"); by != nil && len(to.By) == 0 {
		d.fail(by, join(path, "by"), "names nobody: then no call could be approved")
	}
}

// checkApprover checks who may approve calls.
func checkApprover(s string) error {
	name, role := strings.CutPrefix(s, "role:")
	tenant, name := SplitPrincipal(name)
	good := !strings.Contains(name, "/") && (!strings.Contains(s, "/") || tenant == "*" || principalPattern.MatchString(tenant+"/x"))
	if role {
		good = good && rolePattern.MatchString(name)
	} else {
		good = good && (name == "*" || tenant != "*" && principalPattern.MatchString(name))
	}
	if !good {
		return errors.New("names nobody: the id of a principal, role:NAME or *, with TENANT/ before the name of one of a tenant")
	}
	return nil
}

func (d *decoder) sessions(to *Sessions, n *node, path string) {
	d.table(n, path, map[string]reader{
		"scope": d.one(&to.Scope, "connection", "principal"), "ttl": d.duration(&to.TTL, time.Minute, 1000*time.Hour), "trust_prompt": d.flag(&to.TrustPrompt),
	})
}

const maxSize = 1 << 30 // of what is held in memory, in bytes

func (d *decoder) audit(to *Audit, anchor *Anchor, arguments *Arguments, n *node, path string) {
	d.table(n, path, map[string]reader{
		"path":      d.path(&to.Path),
		"record":    d.one(&to.Record, "digest", "full"),
		"sync":      d.one(&to.Sync, "group", "always"),
		"max_size":  d.size(&to.MaxSize, 1<<10, 1<<40),
		"keep":      d.count(&to.Keep, 1, 100_000),
		"hold":      d.hold(to),
		"hard_max":  d.size(&to.HardMax, 1<<10, 1<<50),
		"rotate":    d.age(&to.Rotate),
		"max_age":   d.age(&to.MaxAge),
		"compress":  d.flag(&to.Compress),
		"anchor":    func(n *node, path string) { d.anchor(anchor, n, path) },
		"arguments": func(n *node, path string) { d.arguments(arguments, n, path) },
	})
	if at := n.get("max_age"); at != nil && to.MaxAge > 0 && to.MaxAge < to.Hold {
		d.fail(at, join(path, "max_age"), "is less than hold, which keeps records for %s: write more, or less there", short(to.Hold))
	}
	if kept := to.MaxSize * int64(to.Keep); to.HardMax > 0 && to.HardMax < kept {
		d.fail(n, join(path, "hard_max"), "is %s, less than the %s that max_size and keep come to: write more, or less there", bytesText(to.HardMax), bytesText(kept))
	}
}

// hold reads an age, the word strict, or both.
func (d *decoder) hold(to *Audit) reader {
	return measure(d, &to.Hold, "d", func(s string) (time.Duration, error) {
		age, strict := strings.CutSuffix(s, "strict")
		if age = strings.TrimSpace(age); age == "" && strict {
			age = "7d"
		}
		v, err := parseAge(age)
		if err != nil || v < 0 {
			return 0, errors.New("is no age such as 7d or 12h, nor the word strict, nor both")
		}
		to.Strict = strict
		return v, nil
	})
}

// age reads an age of at least a minute.
func (d *decoder) age(to *time.Duration) reader {
	return measure(d, to, "d", func(s string) (time.Duration, error) {
		v, err := parseAge(s)
		if err != nil || v < time.Minute {
			return 0, errors.New("is no age of a minute or more, such as 30d or 12h")
		}
		return v, nil
	})
}

// parseAge reads a duration, which may be in days.
func parseAge(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(days)
	if err == nil && n > 36500 {
		err = strconv.ErrRange
	}
	return time.Duration(n) * 24 * time.Hour, err
}

func (d *decoder) limits(to *Limits, n *node, path string) {
	d.table(n, path, map[string]reader{
		"body":       d.size(&to.Body, 1<<10, maxSize),
		"result":     d.size(&to.Result, 1<<10, maxSize),
		"concurrent": d.count(&to.Concurrent, 1, maxConcurrent),
		"session":    d.count(&to.Session, 1, maxConcurrent),
		"processes":  d.count(&to.Processes, 1, maxProcesses),
		"tools":      func(n *node, path string) { d.toolLimits(&to.Tools, n, path) },
	})
}

const (
	// maxConcurrent bounds limits on calls in progress.
	maxConcurrent = 65_536
	// maxProcesses bounds those on processes of a server.
	maxProcesses = 1_024
)

func (d *decoder) toolLimits(to *[]ToolLimit, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		l := ToolLimit{Pattern: f.key}
		if err := checkTools(f.key); err != nil {
			d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
		}
		d.count(&l.Concurrent, 1, maxConcurrent)(f.value, path)
		*to = append(*to, l)
	})
}

var (
	originPattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)
	hostPattern   = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$`)
)

func (d *decoder) http(to *HTTP, n *node, path string) {
	d.table(n, path, map[string]reader{
		"origins": d.texts(&to.Origins, matches(originPattern, "an origin in lower case without a path, such as https://app.example.com")),
		"hosts":   d.texts(&to.Hosts, matches(hostPattern, "a host, such as tools.example.com or tools.example.com:8443")),
	})
}

func (d *decoder) log(to *Log, n *node, path string) {
	level := "info"
	d.table(n, path, map[string]reader{
		"level":  d.one(&level, "debug", "info", "warn", "error"),
		"format": d.one(&to.Format, "text", "json"),
	})
	to.Level = map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[level]
}
