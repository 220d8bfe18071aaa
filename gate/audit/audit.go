package audit

import (
	"context"
	"io"
	"iter"

	"github.com/wasmgate/wasmgate/internal/audit"
)

type (
	// A Log is a log open for writing. Use it from several goroutines.
	Log = audit.Log
	// Options configure a [Log].
	Options = audit.Options
	// An Entry is one line of a log. Empty fields are absent in the line.
	Entry = audit.Entry
	// A Filter chooses records. Zero fields choose all.
	Filter = audit.Filter
	// A Head names a record by its number and the hash of its line. Kept where the
	// writer of a log has no hand, it shows later that the log up to there is whole
	// and unchanged.
	Head = audit.Head
	// A Report is what was verified.
	Report = audit.Report
	// A ChainError says where a log is not what was written.
	ChainError = audit.ChainError
)

// Open opens the log at path, a name such as audit.jsonl, and continues its
// chain; if there is no file it begins one, with the folder. Only one process at
// a time can have a log open: a file path.lock sees to that. The caller must
// Close the Log.
func Open(path string, o Options) (*Log, error) { return audit.Open(path, o) }

// Files returns the files of the log at path that exist, the oldest first.
func Files(path string) ([]string, error) { return audit.Files(path) }

// Read returns the chosen records of the log at path, over all its files, in
// the order in which they were written. The log may be growing and its files be
// renamed meanwhile. It does not verify the chain. A line that is no record is
// yielded as a [*ChainError], with an Entry that has only Raw, and reading goes
// on; after any other error it ends. A line without its end is no record yet.
func Read(ctx context.Context, path string, f Filter) iter.Seq2[Entry, error] {
	return audit.Read(ctx, path, f)
}

// Verify checks the chain of one file of a log. The error is a [*ChainError] if
// the chain does not hold. What stood before the file's first line, and whether
// lines are missing after its last, a file alone does not tell.
func Verify(r io.Reader) (Report, error) { return audit.Verify(r) }

// VerifyFiles checks the chain of a log's files, given in the order in which
// they were written, and that it runs on from one to the next. Unless head is
// zero it also checks that the log has the record that head names. A file may
// grow or be renamed meanwhile.
func VerifyFiles(paths []string, head Head) (Report, error) { return audit.VerifyFiles(paths, head) }

// ParseHead reads SEQ:HASH.
func ParseHead(s string) (Head, error) { return audit.ParseHead(s) }
