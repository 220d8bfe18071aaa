// Package sandbox runs functions of untrusted WebAssembly modules under limits.
//
// A [Module] holds one or more tools: functions from JSON to JSON. It speaks one of three ABIs,
// recognized by its imports and exports:
//
//   - A WASI command (`_start`, WASI preview 1) reads {"name","arguments"} from
//     stdin and writes one JSON value to stdout. Another exit code than 0 is a
//     tool error, with stderr as its text.
//   - A reactor (`tool_call`, `cabi_realloc`) exports the canonical-ABI lowering
//     of call(name: string, args: string) -> result<string, string>. It is the
//     faster one for languages with a heavy start.
//   - A plug-in made for Extism (package extism).
//
// The definitions of its tools are in its custom section `wasmgate` or in a file next to it, so
// that nothing of a module runs before its first call; only a plug-in without either is asked for
// its tools. A WASI command can also be a server that speaks on its streams for as long as it
// lives: see [Module.Serve].
//
// How modules look, and what bounds them, is in docs/reference/modules.md.
//
// # How a call gets its instance
//
// Making an instance costs from tens of microseconds to milliseconds. So a
// module is written again when it is loaded (package rewrite): all of its state
// that can change is then its memory and its globals, both in the hands of the
// host. The first call takes a snapshot of them, after instantiation, after
// initialization, or after a sample call. Instances are pooled; after each call,
// memory (package image) and globals are put back to the snapshot, however the
// call ended. A module that could change anything else, its tables for example,
// gets a new instance for each call; [Inspect] says why.
//
// Instances of a command with [SnapshotInput] are started before their calls, and wait where they
// first read their input. When such a guest exits it goes back there: memory and globals are put
// back to an image that was taken there, stack and registers by the engine, and its call and
// process are new. If any part of one could not be put back so, it serves one call, as does one
// that ends in any other way.
//
// The host keeps all of a guest's state (descriptors, streams, quotas) in the call, never in the
// instance: WASI is our own for that reason (package wasi).
//
// # What it promises
//
// Nothing that a call leaves in memory, globals or tables is seen by another. A guest has what the
// module's [Grants] and the call's [Host] give it, and else no file system, no network, no
// environment and no arguments but its tool's name; it has coarse clocks, random numbers and what
// it is given to read. Instructions, time, memory, stack, output, log, host calls, files, table
// size, module size and the number of calls at once are bounded. The output of a guest is checked
// before it is believed: pointers, lengths, UTF-8, JSON.
//
// Every module counts what it executes and comes back to the host for more, at
// the latest after 524288 instructions, fewer if it has more than 4 MiB of memory,
// while it returns from what it has paid for long ago, before each call of the host
// and after each long move of bytes. There the budget, the deadline, the context and the
// stack are looked at, so that they end any code, with loops or without; and
// there the garbage collector can stop a guest.
//
// # What it does not
//
// The count is an upper bound: a branch that is not taken costs what it would
// if it were. Code compiled by Go, whose functions are each one large loop
// with a jump table, is charged many times what it executes.
//
// A single call of WASI is not interrupted: over much memory it takes some tens of
// milliseconds (for 64 MiB); so late may a call end, and so long may the garbage
// collector wait. Nor are the faults of pages that a guest writes for the first time
// counted: a slice of nothing else takes up to 22 ms in a virtual machine within another.
// Compiling cannot be interrupted; the size of a module and the number of its
// functions are bounded instead. Time as such is not hidden, only made coarse.
//
// The values that a module draws or reads before its snapshot are the same in each call: seeds of
// random generators and of hash maps, the time, the environment. Values that it draws in a call are
// new. The calls of an instance with [SnapshotInput] share what it drew before it read its input. A
// module that must not share seeds begins at [SnapshotInst].
package sandbox
