// Package gateway puts a whole gateway together: servers, WASM tools, policy,
// sanitizer, audit log and gate, from one [Config] and without a configuration
// file. It is what a program embeds.
//
//	gw, err := gateway.New(ctx, gateway.Config{
//		Servers: []options.Endpoint{{Server: "files", Command: "mcp-server-filesystem", Args: []string{"/srv/docs"}}},
//		Policy:  gateway.Policy{Options: policy.Options{Grants: []policy.Grant{{To: []string{"local"}, Tools: []string{"files__read_*"}}}}},
//		Audit:   "audit.jsonl", AuditOptions: audit.Options{Node: "my-agent"},
//	})
//
// A program calls tools through a [Client], as one principal in a session of its own,
// and publishes Go functions as tools with [Func] and [Gateway.Publish]. Its errors are
// of thirteen kinds, see [Error]; agent frameworks take what [Client.Functions] returns.
//
// A gateway is a [net/http.Handler]: MCP at /mcp, what is in one of its groups of tools at
// /mcp/GROUP (Config.Groups), health at /livez, /readyz and /healthz; [Gateway.Dial] connects a client in this
// process.
//
// Two servers hold tools that carry out other calls, each of which is decided and recorded
// by itself: catalog, by which clients search for tools (Config.Catalog), and jobs, whose
// calls outlive their requests, as MCP tasks do (Config.Jobs).
//
// While clients are connected [Gateway.SetServer], [Gateway.RemoveServer],
// [Gateway.SetModules], [Gateway.SetEmbedded], [Gateway.SetGroups], [Gateway.SetCatalog], [Gateway.SetOrder],
// [Gateway.SetPolicy] and [Gateway.Reconfigure] change it, [Gateway.Publish] and [Gateway.Withdraw] its functions; calls under way end as
// they began.
// What else is in Config stays as it is. With [recording.Replay] what was recorded answers in the
// place of servers.
//
// In the source, build puts together what gateway says that a Gateway has, and life begins and
// ends it; config has what is configured, with the types of package options. A call of a
// program comes in by client. Every call goes by route to the gate and from there to its server, and record keeps
// its records. What changes while calls run is in
// reconfigure (how calls are checked: checks, policies, shadow), reload (servers: guests),
// locals (modules, compiling, functions, published) and pause; audit and journal are what the
// log is told, phases what of servers.
package gateway
