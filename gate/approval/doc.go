// Package approval keeps the questions that a policy puts to people, and their
// answers.
//
// A question is addressed by its binding, the digest of all that an approval is
// for: the same call asked about twice is one question. Its id is a handle, by
// which people name it. An approval lets one call pass, once, until it expires;
// a denial refuses the call until then. Each state is recorded before it holds,
// and what cannot be recorded is not approved.
//
// Answers come from the client of a call, by elicitation while the call waits or
// with its next try, and from an operator, by [Queue.Decide].
//
// Questions are kept by a [Store]: in memory, where they end with the process, or in
// a database that several gateways share.
package approval
