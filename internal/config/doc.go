// Package config turns the files a person writes into one checked [Config].
//
// Two languages are read: wasmgate.yaml, and the mcp.json that Claude, Cursor
// and VS Code write (JSON with comments). Both become the same small tree of
// values with line numbers, which package decode walks strictly: an unknown key, a
// key given twice, a number without its unit or a key whose part is not built
// are problems. [Load] reports all problems of a file at once, each with its
// line and path, and then returns no configuration at all.
//
// Each part of the configuration has a file with its type, and the checks of how its keys fit
// together: server.go, limits.go, policy.go. The tags of its fields are its keys; words.go has the
// words in them. load.go begins, fit.go compares the parts, import.go reads the files of clients, and
// lookup.go finds the files.
//
// What deserves a look but stops nothing (an ignored key of a host, a renamed
// server, a plain http address, a project's file that is not trusted) is in
// [Config].Warnings. Values that may hold secrets are of type [Secret], which
// neither fmt, slog nor JSON prints; problems quote values as the file has
// them, before expansion, and those of env and headers never.
//
// # Values
//
// In every value ${NAME} and ${env:NAME} stand for an environment variable and
// ${NAME:-default} for a default where it is unset or empty; $$ is a dollar. An
// unset one is a problem, except in a server that is not enabled. Durations
// are written as Go does (500ms, 30s, 1h30m), sizes as a whole number of B,
// KiB, MiB or GiB. Relative paths start at the folder of the file.
//
// # Which file
//
// [Open] reads the file that a person names, and no other. Without one the base
// is the user's file, or the defaults. The project's .wasmgate/wasmgate.yaml,
// looked for from the working directory up to the root of its repository, is
// added to the base if [Trust] has stored its digest: only servers and tools
// may be in it, none under an id that the base uses, since the base's grants
// would then hold for it. It stays inert, and is not even parsed, until then.
// With a project the gateway is not the same as without, so its state and its
// audit log go into a folder of their own below the base's.
//
// The package opens no connection, and starts and prints nothing. Reading writes nothing.
// What is written is what a person asks for: the trust store by [Trust] and [Untrust]. Packages edit
// and policydata change the files.
package config
