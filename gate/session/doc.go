// Package session keeps what sessions have read, in the memory of one gateway.
//
// [*Sessions] is a [gate.Sessions]. The labels of a session never fall: they end with the session,
// when it has not been used for Options.TTL. A session that has read nothing is in the state in
// which every session begins, so that only the others are kept, and clients that open sessions
// without end cost nothing.
//
// In addition to labels a session keeps the values that it has met, and where, as far as the gate
// tells it of them: at most Options.Values of one session and Options.AllValues of all. A session
// that meets more is Top from then on: what is known of its values stays known, and each counts as
// met in untrusted content.
//
// The number of sessions kept has a bound. A session that is dropped to keep to it is not
// forgotten: its key goes into a filter of fixed size, and a session whose key is in there comes
// back as Top, as if it had read everything. The filter can take a session for a dropped one that
// is none, and never the other way round: under a flood of sessions policies become stricter, not
// laxer.
//
// With Options.Inherit the next session of a program begins with the labels of its
// earlier ones: see [Sessions.Begin].
//
// With Options.File labels outlive the process. A label is in the file before the
// call is admitted that brings it. Where values came from is not: after a start each
// value of a session with labels counts as met in untrusted content. While a file that
// cannot be read might have named a session, that session counts as having read everything.
//
// With Options.Shared several gateways keep the labels of one session together: see [Shared].
// Each admission reads them once.
//
// table.go has the sessions that are kept, on which programs.go, file.go and admit.go work. shared.go
// is what gateways keep together, and gateways.go uses it. state.go and destinations.go are for people.
package session
