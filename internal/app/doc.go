// Package app runs a gateway on a configuration file: it translates the file
// into a gateway, owns its state folder, listens, reloads policies when their
// files change, and ends in order. Of several processes on one configuration the
// first owns the gateway, and another takes its place when it ends.
//
// It is what the commands call; it prints nothing.
//
//	wasmgate.yaml -> config.Config
//	  |  new.go: the state folder, who is let in, translation, the first policy
//	gateway.Gateway, which carries calls out
//	  |  run.go: HTTP and pages, the control socket, standard input, what is watched, the drain
//	clients, commands, further processes
//
// own.go decides which process has the gateway, and moves a client to it. Commands find an [App],
// by the control socket a [Remote] (remote.go, answered in backend.go, errors in errors.go);
// what commands ask of a gateway that runs is there on both.
//
//	who comes     senders.go, auth.go, authcheck.go, denials.go, streams.go, keys.go, principals.go,
//	              whoami.go; logins.go at servers
//	what changes  reload.go the configuration; policy.go, bundles.go, shadow.go what decides; pins.go,
//	              pause.go
//	what is told  status.go, gauges.go, notices.go, alive.go, develop.go; labels.go, relays.go,
//	              unknown what looks like a mistake
//	commands      call.go, approvals.go, sessions.go, features.go, scan.go, confine.go, declared.go
//	agents, console   agents.go, console.go and desk.go
package app
