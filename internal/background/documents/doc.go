// Package documents keeps what calls were made with, and what they returned, beside an audit
// log that has their digests alone: sealed, one file a day, so that it can be deleted, as a
// whole or by age, while the chain of the log holds.
package documents
