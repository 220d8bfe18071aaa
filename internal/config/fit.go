package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// fit reports which parts of c, which root was read into, do not fit together.
func (c *Config) fit(root decode.Value) {
	c.mustSign()
	c.fitNames(root.Get("tools"))
	c.fitAgents(root)
	c.fitPrincipals(root.Get("principals"))
	c.fitSecrets(root.Get("tools"))
	c.fitAuth(root)
	c.fitStore(root)
}

// mustSign has unsigned modules be refused, if the configuration wants that.
func (c *Config) mustSign() {
	for i := range c.Tools {
		c.Tools[i].MustSign = c.MustSign && !c.Tools[i].Embedded()
	}
	for i := range c.Servers {
		m := &c.Servers[i].Module
		m.MustSign = c.MustSign && m.Path+m.Ref != ""
	}
}

// fitNames reports modules that claim the name of a server.
func (c *Config) fitNames(tools decode.Value) {
	for i, m := range c.Tools { // one for each field of tools
		if slices.ContainsFunc(c.Servers, func(s Server) bool { return s.ID == m.Server }) {
			tools.Field(i).At.Under("server").Fail("%q is one of the servers: choose another name", m.Server)
		}
	}
}

// fitAgents reports servers that have the name of an agent, at both lines, and agents that
// act for unknown principals.
func (c *Config) fitAgents(root decode.Value) {
	for i, a := range c.Agents {
		f := root.Get("agents").Field(i)
		if a.As != "" && a.As != "local" && !slices.ContainsFunc(c.Principals, func(p Principal) bool { return p.ID == a.As }) {
			f.At.Under("as").Fail("there is no principal %q", a.As)
		}
		for _, of := range []string{"servers", "tools"} {
			for j, id := range c.serversOf(of) {
				if id == a.ID {
					root.Get(of).Field(j).At.Fail("%s is the name of the agent in line %d: choose another", a.ID, f.At.Line)
				}
			}
		}
	}
}

// serversOf returns the servers that the entries below servers or tools make.
func (c *Config) serversOf(key string) (ids []string) {
	if key == "servers" {
		for _, s := range c.Servers {
			ids = append(ids, s.ID)
		}
		return ids
	}
	for _, m := range c.Tools {
		ids = append(ids, m.Server)
	}
	return ids
}

// fitPrincipals reports groups that a principal is offered and nothing is in.
func (c *Config) fitPrincipals(principals decode.Value) {
	known := slices.Sorted(maps.Keys(c.AllGroups()))
	for i, p := range c.Principals { // one for each field of principals
		for _, name := range p.Groups {
			if !slices.Contains(known, name) {
				principals.Field(i).Value.Get("groups").Fail("no group is named %q%s", name, decode.Hint(name, known))
			}
		}
	}
}

// fitSecrets reports secrets that are granted and not there, and warns of those that go where
// their module may not.
func (c *Config) fitSecrets(tools decode.Value) {
	var known []string
	for _, s := range c.Secrets {
		known = append(known, s.Name)
	}
	for i, m := range c.Tools { // one for each field of tools
		if len(m.Grant.Secrets) == 0 {
			continue
		}
		for item := range tools.Field(i).Value.Get("grant").Get("secrets").List() {
			name, err := variables.Expand(item.Text, tools.File().Lookup)
			if err != nil || !slices.Contains(m.Grant.Secrets, name) {
				continue // reported
			}
			j := slices.Index(known, name)
			if j < 0 {
				item.Fail("no secret is named %q%s", item.Text, spelling.Suggest(name, known))
				continue
			}
			if fault := c.Secrets[j].Fault; fault != "" && c.Tools[i].Fault == "" {
				c.Tools[i].Fault = fault
			}
			origin := c.Secrets[j].Origin
			if origin != "" && !slices.ContainsFunc(m.Grant.HTTP, func(g HTTPGrant) bool { return g.Origin == origin }) {
				item.Warn("the secret is sent to %s alone, which the module is not granted", origin)
			}
		}
	}
}

// fitAuth reports ways to authenticate and addresses that do not fit together.
func (c *Config) fitAuth(root decode.Value) {
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	a, auth := c.Auth, root.Get("auth")
	if len(a.Issuers) > 0 && !root.Has("public_url") {
		auth.Get("issuers").Fail("needs public_url: tokens are for the URL by which clients reach the gateway, such as https://gw.example.com, or http://127.0.0.1:7420 on this machine")
	}
	certs := c.TLS.ClientCA != ""
	if a.MTLS != nil && !certs {
		auth.Get("mtls").Fail("needs tls.client_ca: the authority that signs the clients' certificates")
	}
	if a.Proxy != nil && a.Proxy.ClientCert != "" && !certs {
		auth.Get("proxy").Get("client_cert").Fail("needs tls.client_ca: the authority that signs the clients' certificates")
	}
	if len(a.Unix) > 0 && !slices.ContainsFunc(c.Listen, isUnix) {
		auth.Get("unix").Fail("needs a Unix socket under listen, such as unix:run/gateway.sock")
	}
	for _, i := range a.Issuers {
		for value, group := range i.Groups {
			if _, ok := c.AllGroups()[group]; !ok {
				groups := auth.Get("issuers").Get(i.Name).Get("groups")
				groups.Place(groups.Node, groups.Path+"."+value).Fail("no group is named %q", group)
			}
		}
	}
	for _, addr := range c.Listen {
		for _, missing := range c.lacks(addr) {
			root.Get("listen").Fail("%q is reachable from other machines: %s", addr, missing)
		}
	}
}

// fitStore reports what a store and a cluster lack, and what cannot be shared.
func (c *Config) fitStore(root decode.Value) {
	for _, wrong := range []struct {
		is        bool
		key, what string
	}{
		{!c.Store.On(), "store", "needs postgres: the URL of the database, such as ${DATABASE_URL}"},
		{c.Store.Secret == "", "store", "needs secret: at least 32 random characters, the same for all gateways of the database"},
		{c.Sessions.Scope != "principal", "store", "needs sessions: {scope: principal}: a connection ends with its gateway, and what it has read must not"},
		{!c.Auth.On(), "store", "needs auth: gateways that share a database have to tell their clients from each other"},
		{len(c.Agents) > 0, "store", "cannot be with agents: hooks are of one machine"},
		{len(c.Auth.Unix) > 0, "store", "cannot be with auth.unix: users of a Unix socket are of one machine"},
		{!root.Has("store"), "cluster", "needs store: gateways find each other in the database that they share"},
		{c.Cluster.Listen == "", "cluster", "needs listen: an address for other gateways only, such as 10.0.0.1:7422"},
		{c.Cluster.anywhere() && c.Cluster.URL == "", "cluster", "needs url: how other gateways reach this one, such as https://gate-1.example.com:7422"},
	} {
		if root.Has(wrong.key) && wrong.is {
			root.Get(wrong.key).Fail("%s", wrong.what)
		}
	}
}

// fitBase reports names in c, which the root of a project's file was read into, that the base has.
func (c *Config) fitBase(root decode.Value, base *Config) {
	c.fitNames(root.Get("tools"))
	c.fitSecrets(root.Get("tools")) // which has none: those of the person are no project's to use
	for i, s := range c.Servers {
		taken := slices.ContainsFunc(base.Servers, func(b Server) bool { return b.ID == s.ID }) ||
			slices.ContainsFunc(base.Tools, func(m Module) bool { return m.Server == s.ID })
		if taken {
			root.Get("servers").Field(i).At.Fail("your own configuration has a server of this name: choose another")
		}
	}
	for i, m := range c.Tools {
		at := root.Get("tools").Field(i).At
		if slices.ContainsFunc(base.Tools, func(b Module) bool { return b.ID == m.ID }) {
			at.Fail("your own configuration has a module of this name: choose another")
		}
		if m.Server != "local" && slices.ContainsFunc(base.Servers, func(b Server) bool { return b.ID == m.Server }) {
			at.Under("server").Fail("your own configuration has a server of this name: choose another")
		}
	}
}
