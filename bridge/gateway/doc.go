// Package gateway puts a whole gateway together: servers, WASM tools, policy, sanitizer, audit log
// and gate, from one [Config] and without a configuration file. Programs embed this package.
//
//	gw, err := gateway.New(ctx, gateway.Config{
//		Servers: []options.Endpoint{{Server: "files", Command: "mcp-server-filesystem", Args: []string{"/srv/docs"}}},
//		Policy:  gateway.Policy{Options: policy.Options{Grants: []policy.Grant{{To: []string{"local"}, Tools: []string{"files__read_*"}}}}},
//		Audit:   "audit.jsonl", AuditOptions: audit.Options{Node: "my-agent"},
//	})
//
// A program calls tools through a [Client], as one principal in a session of its own, and publishes
// Go functions as tools with [Func] and [Gateway.Publish]. Its errors are of thirteen kinds, see
// [Error]; agent frameworks take what [Client.Functions] returns.
//
// A gateway is a [net/http.Handler]: it serves MCP at /mcp, one of its groups of tools at
// /mcp/GROUP (Config.Groups), and health at /livez, /readyz and /healthz. [Gateway.Dial] connects a
// client in this process.
//
// Two servers have tools that carry out other calls: catalog, by which clients search for tools
// (Config.Catalog), and jobs, whose calls outlive their requests, as MCP tasks do (Config.Jobs).
// Each of these calls is decided and recorded by itself.
//
// While clients are connected [Gateway.SetServer], [Gateway.RemoveServer], [Gateway.SetModules],
// [Gateway.SetEmbedded], [Gateway.SetGroups], [Gateway.SetCatalog], [Gateway.SetOrder],
// [Gateway.SetPolicy] and [Gateway.Reconfigure] change it, [Gateway.Publish] and [Gateway.Withdraw]
// its functions; calls under way end as they began. Everything else in Config stays as it is. With
// [recording.Replay] a recording answers in place of servers.
//
// The program that runs a gateway for others has an [Operator], and with it [Sessions] and, with
// other gateways of a database, a [Cluster].
//
// In the source, gateway declares a Gateway, build puts it together, and life begins and ends it.
// Its parts are types with their own state: journal (the audit log, with phases), checking
// (checks), policies (with shadow), settings (perserver, pause), machine (what runs WASM, with
// guests), locals (servers in this process: modules, compiling, published), sessions and jobs.
// config declares the configuration, with the types of package options. Calls of a program come in
// through client. Every call goes by route to the gate and from there to its server, and record
// keeps its records. reconfigure and reload change the parts while calls run. The methods of an
// Operator are in admin, agents, audit, calls, health, offered, pause and pins.
package gateway
