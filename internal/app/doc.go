// Package app runs a gateway on a configuration file: it translates the file
// into a gateway, owns its state folder, listens, and ends in order. Of several processes on one
// configuration the first owns the gateway, and another takes its place when it ends.
//
// It is what the commands call; it prints nothing.
//
//	wasmgate.yaml -> config.Config
//	  |  new.go: the state folder, the parts, translation, the first policy
//	gateway.Gateway, which carries calls out
//	  |  run.go: HTTP (http.go) and the console, the control socket, standard input, what is watched, the drain
//	clients, commands, further processes
//
// An [App] holds the parts of a gateway and connects them. Each part is a package with its own state:
//
//	who calls        callers (requests, API keys, revocations), logins at servers and at the console
//	what is decided  policies, approvals, pins, paused, exceptions
//	what is shown    inventory of tools and skills, sessions, overview (status, gauges, notices)
//	the rest         calls of commands, settings (the configuration in use), desks for the console
//
// Below these, naming finds what a configuration names, and translation puts it into the words of the library.
//
// What commands ask for is an operation that a part declares once: see package operation. All of them are in one
// table (operations.go). A command asks an [App] of its own process, or by the control socket a [Remote] (remote.go,
// answered in backend.go, errors in errors.go). The console and its API call the parts.
//
// own.go decides which process has the gateway, and moves a client to it. follow.go, records.go and others.go are about gateways
// that share a database, agents.go about hooks, alive.go about the service manager, confine.go and declared.go
// about commands that need more than one part.
package app
