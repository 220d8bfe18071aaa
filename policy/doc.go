// Package policy decides calls by Rego.
//
// [Load] compiles the built-in packs, the user's files and the grants into an
// [Engine], which is immutable and a [gate.Authorizer]. A policy that changes is
// another engine. Packs and files are Rego v1 in package wasmgate and add to
// the sets allow, ask, deny (of reasons), obligations and labels; the gate's own
// module makes data.wasmgate.decision of them: what nothing allows is denied, of what
// is allowed ask has a person asked, and deny beats both.
//
//	package wasmgate
//
//	allow contains "everybody may read" if startswith(input.tool.local_name, "read_")
//
//	deny contains "only drafts" if not startswith(input.arguments.title, "DRAFT ")
//
// The keyword not has the semantics that OPA offers as future.keywords.not, in
// every file: not holds as well when something in the negated expression is
// undefined, so the deny rule above denies a call that has no title.
//
// A [bundle.Bundle], in OPA's format, brings rules, data and tests of its own; it loads only
// if these pass.
//
// What is listed follows from the same rules: [Engine.Visible] evaluates the
// sets with the arguments and the session unknown, and hides a tool if none of its
// calls could pass.
//
// Whatever goes wrong denies: an error in a built-in function, a decision of
// another shape, an obligation that is not understood, a panic, a policy that
// takes more steps than its timeout allows. Policies reach no network, no environment and
// no randomness: the built-in functions that do are not there. The clock is,
// as time.now_ns.
//
// What rules look like, and what they see, is in docs/explanation/policy.md. Programs need [Load],
// and [Check] and [Test] for policies that people write. Package study explains decisions, and
// takes them again.
//
// The package does not read YAML, does not watch files, and does not ask people:
// it says allow, ask or deny.
package policy
