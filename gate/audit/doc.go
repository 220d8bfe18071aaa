// Package audit keeps the evidence of what passed a gate: one JSON object a
// line, appended and never changed, each with the hash of the line before.
//
// [Open] opens a log for its one writer; a [*Log] is a [gate.Recorder]. [Verify]
// and [VerifyFiles] check a chain, [Read] answers questions about one.
//
// # Promises
//
// A record is handed to the operating system, in one write, before Record returns: it survives the
// death of the process, kill -9 included. Survival of the machine's death follows within a tenth of
// a second, or at once with Options.Sync "always". If a process dies in the middle of a line, the
// part that was written is cut off when the log is opened again, and that is recorded. If a record
// cannot be written, Record fails, and so does the call; when the disk has room again the log goes
// on, and records why it had stopped.
//
// # Format
//
// The fields of a line are those of [Entry]; empty ones are left out. Every line
// has log, seq, time, event and, but for the first line there ever was, prev:
// the hex SHA-256 of the line before it without its newline. seq counts up by
// one from line to line, over restarts and files; log names the node and the
// boot that wrote the line, so that log and seq together are unique even when
// the end of a log was lost with its machine.
//
// Each time a file is opened a line of event "opened" is written: it is the first line of every
// file. It is also written where a later process, or the same one after a failed write, goes on
// with a file.
//
// A file that has reached Options.MaxSize is renamed from audit.jsonl to
// audit-000001.jsonl, with rising numbers, so that audit.jsonl always holds the
// newest records; with Options.Rotate so is one that is old, and with Options.Compress
// older ones are packed, as audit-000001.jsonl.gz. The chain runs on from file to file. Beyond Options.Keep the oldest
// file is removed once its records are older than Options.Hold, or when there is no
// room else, and the line that opens the next file names it.
//
// # What it does not do
//
// A chain shows that a line was changed, removed, inserted or moved, as long as lines after it are
// left. Anyone with write access to the file can cut off its end, or write a whole new chain. To
// detect that, keep a copy of a [Head] elsewhere. Texts in a log were in part written by clients
// and servers; they are bounded and escaped, but still theirs.
//
// # In the source
//
// log.go is the one writer's way in, options.go how it keeps records, entry.go what a line says,
// encode.go how; writer.go puts lines that wait together into one write, owed.go holds the end of a
// call that could not be written. files.go, lines.go, tip.go, member.go, pack.go and retention.go
// are about files: their names, their lines, the last line, what is within a packed one, packing,
// and which goes. read.go answers questions, verify.go checks a chain, and hide.go takes secrets
// out.
package audit
