package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/skills"
)

const (
	defaultTimeout = 30 * time.Second
	defaultStart   = 2 * time.Minute // of a child: what it runs may have to be installed first
	defaultHealth  = 30 * time.Second
)

const (
	// MaxAudiences bounds the connections to one server that belong to a client each. The
	// one that was idle for the longest time makes room for another.
	MaxAudiences = 32
	// maxPersonal bounds those of a server that knows its callers.
	maxPersonal = 1024
	// MaxProcesses bounds those that are processes, unless the configuration does.
	MaxProcesses = 16
)

// config is a configuration whose defaults are filled in.
type config struct{ options.Endpoint }

// check returns an error if the configuration is wrong, and fills in the defaults.
func (c *config) check() error {
	if _, err := gate.NewToolName(c.Server, "x"); err != nil {
		return err
	}
	ways := 0
	for _, set := range []bool{c.Command != "", c.URL != "", c.Dial != nil, c.Broken != ""} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("server %s: set exactly one of Command and URL", c.Server)
	}
	if u, err := url.Parse(c.URL); err != nil || c.URL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("server %s: %q is not a URL of the form http(s)://host/path", c.Server, c.URL)
	}
	if !slices.Contains([]string{"", options.TransportAuto, options.TransportHTTP, options.TransportSSE}, c.Transport) {
		return fmt.Errorf("server %s: Transport is %q; it must be %s, %s or %s", c.Server, c.Transport, options.TransportAuto, options.TransportHTTP, options.TransportSSE)
	}
	if err := c.checkProtocol(); err != nil {
		return err
	}
	if c.Command == "" && (c.Confine != nil || c.Learn != nil) {
		return fmt.Errorf("server %s: only a command can be confined or learnt from", c.Server)
	}
	if !slices.Contains([]string{"", options.SessionsAuto, options.SessionsOwn, options.SessionsShared}, c.Sessions) {
		return fmt.Errorf("server %s: Sessions is %q; it must be %s, %s or %s", c.Server, c.Sessions, options.SessionsAuto, options.SessionsOwn, options.SessionsShared)
	}
	switch {
	case c.Authorize != nil && c.URL == "":
		return fmt.Errorf("server %s: Authorize needs a URL", c.Server)
	case c.Personal && c.Authorize == nil:
		return fmt.Errorf("server %s: Personal needs Authorize", c.Server)
	case c.Personal && c.Sessions == options.SessionsShared:
		return fmt.Errorf("server %s: Personal uses the credential of each caller, so Sessions must not be shared", c.Server)
	}
	if !slices.Contains([]string{"", options.RetryNever, options.RetryIdempotent}, c.Retry) {
		return fmt.Errorf("server %s: Retry is %q; it must be %s or %s", c.Server, c.Retry, options.RetryNever, options.RetryIdempotent)
	}
	if c.ConnectTimeout < 0 || c.CallTimeout < 0 || c.MaxMessage < 0 || c.Retries < 0 || c.RetryWait < 0 || c.Health < 0 && c.Health != options.HealthOff {
		return fmt.Errorf("server %s: limits must not be negative", c.Server)
	}
	for _, one := range c.CallTimeouts {
		if one.Timeout <= 0 {
			return fmt.Errorf("server %s: the timeout of %s is not positive", c.Server, one.Pattern)
		}
	}
	if err := listing.CheckMethods(c.Methods); err != nil {
		return fmt.Errorf("server %s: %w", c.Server, err)
	}
	c.setDefaults()
	return listing.CheckOptions(&c.Tools)
}

// command is the child that Command says.
func (c *config) command(ctx context.Context) (to confine.Command, err error) {
	to = confine.Command{Path: c.Command, Args: c.Args, Env: c.Env, Dir: c.Dir, Confine: c.Confine, Learn: c.Learn}
	if c.Reveal == nil {
		return to, nil
	}
	to.Args, to.Env = slices.Clone(c.Args), slices.Clone(c.Env)
	for _, list := range [][]string{to.Args, to.Env} {
		for i, text := range list {
			if list[i], err = c.Reveal(ctx, text); err != nil {
				return to, err
			}
		}
	}
	return to, nil
}

// headers are those of requests to URL.
func (c *config) headers(ctx context.Context) (http.Header, error) {
	if c.Reveal == nil {
		return c.Headers, nil
	}
	to := c.Headers.Clone()
	for name, values := range to {
		for i, text := range values {
			value, err := c.Reveal(ctx, text)
			if err != nil {
				return nil, err
			}
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, fmt.Errorf("the secret for the header %s holds a line break or another control character", name)
			}
			values[i] = value
		}
	}
	return to, nil
}

func (c *config) setDefaults() {
	if c.Env == nil && c.Command != "" {
		c.Env = confine.Environ(nil, os.LookupEnv)
	}
	if c.Health == 0 && c.Dial == nil {
		c.Health = defaultHealth
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultTimeout
		if c.Command != "" {
			c.ConnectTimeout = defaultStart
		}
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = defaultTimeout
	}
	c.Tools.OnMachine, c.Tools.Login = c.Command != "", c.Authorize != nil
	if c.MaxMessage == 0 {
		c.MaxMessage = options.DefaultMaxMessage
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("server", c.Server)
}

// checkProtocol checks the revision that is configured.
func (c *config) checkProtocol() error {
	if !slices.Contains([]string{"", options.ProtocolAuto, mcp.Revision, mcp.Stateless}, c.Protocol) {
		return fmt.Errorf("server %s: Protocol is %q; it must be %s, %s or %s", c.Server, c.Protocol, options.ProtocolAuto, mcp.Revision, mcp.Stateless)
	}
	if c.Protocol == mcp.Stateless && c.Transport == options.TransportSSE {
		return fmt.Errorf("server %s: MCP %s does not have the transport HTTP+SSE; choose another transport or protocol", c.Server, mcp.Stateless)
	}
	return nil
}

// timeoutOf returns how long a tool may be silent.
func (c *config) timeoutOf(tool string) time.Duration {
	for _, one := range c.CallTimeouts {
		if match.Pattern(one.Pattern).Matches(tool) {
			return one.Timeout
		}
	}
	return c.CallTimeout
}

// closedFault is the fault of a request to a closed endpoint.
func (c *config) closedFault() *fault.Fault {
	return fault.New(fault.NotConnected, c.Server, "connect", errors.New("the endpoint is closed"))
}

// credentialFault is the fault of a call to a server that cannot be connected because a credential
// is missing; nil if f has another cause.
func (c *config) credentialFault(f *fault.Fault) *fault.Fault {
	if f == nil || f.Kind != fault.Credential {
		return nil
	}
	return fault.New(fault.Credential, c.Server, "call", f.Err)
}

// authorization are the extensions of authorization that the gateway implements. Only servers over
// HTTP take tokens.
var authorization = gate.MustDoc(`{"io.modelcontextprotocol/enterprise-managed-authorization":{},"io.modelcontextprotocol/oauth-client-credentials":{}}`)

// declares returns capabilities of clients with those of the gateway itself: every server
// hears that apps are known, so that it lists the same to all (MCP Apps, "Server Behavior").
func (c *config) declares(capabilities gate.Doc) gate.Doc {
	extensions := gate.Doc{}
	if c.URL != "" {
		extensions = authorization
	}
	if !c.Tools.Apps.Off {
		extensions = extensions.With(apps.Extension, apps.Declared.Get(apps.Extension).Raw())
	}
	if extensions.IsZero() {
		return capabilities
	}
	return capabilities.With("extensions", extensions.Raw())
}

// features are those that a server with such capabilities has, without its lists.
func (c *config) features(capabilities gate.Doc) *listing.Features {
	has := func(name string) bool { return capabilities.Get(name).Kind() == doc.Object }
	return &listing.Features{
		Server: c.Server, Options: c.Tools,
		Offers:    map[gate.Feature]bool{gate.FeaturePrompt: has("prompts"), gate.FeatureResource: has("resources"), gate.FeatureTemplate: has("resources")},
		Completes: has("completions"), Logs: has("logging"), Updates: subscribes(capabilities),
		HasSkills: !c.Tools.Skills.Off && skills.Offers(capabilities),
		Apps:      !c.Tools.Apps.Off && capabilities.Get("extensions").Get(apps.Extension).Kind() == doc.Object,
	}
}

// subscribes reports whether clients can subscribe to the resources of a server.
func subscribes(capabilities gate.Doc) bool { return capabilities.At("/resources/subscribe").True() }

// alwaysOwn reports whether the clients of the server have a connection each, whatever they
// are capable of.
func (c *config) alwaysOwn() bool {
	return c.Personal || c.Sessions == options.SessionsOwn || c.Command != "" && c.Sessions != options.SessionsShared
}

// mostAudiences is how many connections may belong to a client each.
func (c *config) mostAudiences() int {
	switch {
	case c.Personal:
		return maxPersonal
	case c.Command == "":
		return MaxAudiences
	case c.Processes > 0:
		return c.Processes
	}
	return MaxProcesses
}

// longestCall is how long a call may take if the server tells of its progress.
func (c *config) longestCall() time.Duration {
	longest := c.CallTimeout
	for _, t := range c.CallTimeouts {
		longest = max(longest, t.Timeout)
	}
	return pace.MaxExtended * longest
}

// declarationOf is the declaration of what is listed, without what only a connection says.
func (c *config) declarationOf(tools *listing.Tools) status.Declaration {
	d := status.Declaration{Server: c.Server, Config: &c.Endpoint, Tools: tools.Declared, Own: make([]bool, len(tools.Declared))}
	addFeatures(&d, tools.Features)
	return d
}

func (c *config) broke(err error) *fault.Fault {
	return fault.New(fault.KindOf(err, fault.Transport), c.Server, "connection", err)
}

// addFeatures adds what is declared besides tools; more is nil if that is nothing.
func addFeatures(d *status.Declaration, more *listing.Features) {
	if more != nil {
		d.Prompts, d.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureTemplate]
		d.Pages, d.Skills = more.Declared[gate.FeaturePage], more.Declared[gate.FeatureSkill]
	}
}
