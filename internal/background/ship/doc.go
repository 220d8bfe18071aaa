// Package ship sends the records of an audit log to where an organisation keeps its logs:
// as they are, as events of the Open Cybersecurity Schema Framework, or as OPA's decision
// logs.
//
// A [Shipper] reads the log's files, never a call: calls do not wait for it, and what it has
// not sent yet is what the log has. Its position is in a file that is written after a
// batch was taken, so that each record is sent at least once, over restarts and failures;
// log and seq together identify one that came twice.
package ship
