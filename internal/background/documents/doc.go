// Package documents keeps the arguments and results of calls, because an audit log has only their
// digests. They are sealed, one file a day, so that they can be deleted, as a whole or by age, while
// the chain of the log holds.
package documents
