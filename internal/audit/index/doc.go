// Package index finds records of an audit log without reading all of it.
//
//	log ──▶ rows in memory ──▶ segments in the state folder
//	 ▲      (65,535 at most)    │ which rows may match?
//	 └── records, read again ◀──┘
//
// A segment is one file with columns: the numbers, times and places of records, and the few
// names by which they are looked for. It holds nothing that the log has not, and is no
// authority: what is shown of a record is read from the log, and shown only if it still answers
// the question. So the folder can be thrown away at any time, and is made again.
//
// The newest file of the log is indexed first. Memory is bounded by the rows that are not in a
// segment yet, of two files at most, and by one segment for each question.
package index
