// Package sandbox runs functions of untrusted WebAssembly modules under limits.
//
// A [Module] holds one or more tools: functions from JSON to JSON. It speaks
// one of two ABIs, told apart by its exports:
//
//   - A WASI command (`_start`, WASI preview 1) reads {"name","arguments"} from
//     stdin and writes one JSON value to stdout. Another exit code than 0 is a
//     tool error, with stderr as its text.
//   - A reactor (`tool_call`, `cabi_realloc`) exports the canonical-ABI lowering
//     of call(name: string, args: string) -> result<string, string>. It is the
//     faster one for languages with a heavy start.
//
// The definitions of its tools stand in its custom section `wasmgate` or are
// given beside it, so that nothing of a module runs before its first call.
//
// # What it promises
//
// Every call gets an instance of its own: nothing a call leaves in memory,
// globals or tables is seen by another. A guest has no file system, no network,
// no environment and no arguments but its tool's name; it has clocks, random
// numbers and what it is given to read. Instructions, time, memory, output,
// log, table size, module size and the number of calls at once are bounded.
// What a guest gives back is checked before it is believed: pointers, lengths,
// UTF-8, JSON.
//
// Every module is compiled in a form that meters itself (package rewrite): it
// counts what it executes and comes back to the host for more, at the latest
// after 131072 instructions, before each call of the host and after each long
// move of bytes. There the budget, the deadline and the context are looked at,
// so that they end any code, with loops or without; and there the garbage
// collector can stop a guest.
//
// # What it does not
//
// The count is an upper bound: a branch that is not taken costs what it would
// if it were. Code compiled by Go, of which every function is one large loop
// with a jump table, is charged many times what it executes.
//
// A single instruction or host call is not interrupted. With much memory one
// memory.fill, memory.copy or memory.grow over all of it takes some tens of
// milliseconds (for 64 MiB), as does a poll_oneoff of a million subscriptions;
// so late may a call end, and so long may the garbage collector wait. Endless
// recursion ends by its limits or at the engine's fixed stack of 50 MB,
// whichever comes first. Compiling cannot be interrupted; the size of a module
// and the number of its functions are bounded instead. Time as such is not
// hidden: a guest can measure it precisely.
package sandbox
