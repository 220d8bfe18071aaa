// Package jobs carries out calls that outlive the request that started them.
//
// A job is one call through the gate whose client comes back for the outcome. Only the principal
// that started it knows it: for all others there is no such job. It runs until the call ends,
// somebody cancels it, or the gateway ends; what came of it is kept in a [Store] for a while, over
// restarts, with the labels that the call has added to its session. Another session that reads the
// result has to learn those first: see [Runner.Result].
//
// The package decides nothing about calls. They go through the gate when they start,
// and their results are validated, sanitized and recorded there.
package jobs
