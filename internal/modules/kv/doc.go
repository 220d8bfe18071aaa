// Package kv keeps small values for tools: what one wants to remember from one
// call to the next, since nothing else of a call survives.
//
// An [options.ModuleNamespace] is one tool of one tenant. Namespaces do not see each other, and
// each has quotas of its own. A value may expire.
//
// With a directory, a change has reached its file when Set or Delete returns, and
// is there after a restart. A namespace is one file, written anew for each change
// and renamed into place: a reader, or a process that dies, sees the old content
// or the new one. The file is not synced: after a power failure it may be an
// older one, or a damaged one, which is reported and never taken for an empty
// one. Whole files are fit for quotas of a few MiB, and need no format to be
// repaired. A directory belongs to one process at a time; the caller sees to that.
package kv
