package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A Head names a record by its number and the hash of its line. Kept where the
// writer of a log has no hand, it shows later that the log up to there is whole
// and unchanged.
type Head struct {
	Seq  uint64
	Hash string // hex SHA-256
}

// ParseHead reads SEQ:HASH.
func ParseHead(s string) (Head, error) {
	seq, hash, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(seq, 10, 64)
	sum, herr := hex.DecodeString(hash)
	if err != nil || n == 0 || herr != nil || len(sum) != sha256.Size {
		return Head{}, fmt.Errorf("head %q: expected SEQ:HASH, a record's number and the 64 hex digits of its line's SHA-256", s)
	}
	return Head{n, strings.ToLower(hash)}, nil
}

// String returns SEQ:HASH.
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash }

// A Report is what was verified.
type Report struct {
	Records     int
	First, Last Head // zero if there are no records
	// Torn is the length in bytes of a line without its end after the last
	// record. The death of a process in mid-write leaves that; it is no record,
	// no call has passed on it, and the next opening cuts it.
	Torn int64
}

// A ChainError says where a log is not what was written.
type ChainError struct {
	File   string // "" if unknown
	Line   int    // counted from 1
	Reason string
}

func (e *ChainError) Error() string {
	at := "line " + strconv.Itoa(e.Line)
	if e.File != "" {
		at = filepath.Base(e.File) + ": " + at
	}
	return at + ": " + e.Reason
}

// Verify checks the chain of one file of a log. The error is a [*ChainError] if
// the chain does not hold. What stood before the file's first line, and whether
// lines are missing after its last, a file alone does not tell.
func Verify(r io.Reader) (Report, error) {
	var v verifier
	err := v.file("", r)
	return v.Report, err
}

// VerifyFiles checks the chain of a log's files, given in the order in which
// they were written, and that it runs on from one to the next. Unless head is
// zero it also checks that the log has the record that head names. A file may
// grow or be renamed meanwhile.
func VerifyFiles(paths []string, head Head) (Report, error) {
	var v verifier
	if head != (Head{}) {
		v.heads = []Head{head}
	}
	return v.files(paths)
}

// VerifyHeads is [VerifyFiles] for all records that heads name. Those before the first file are left out.
func VerifyHeads(paths []string, heads []Head) (Report, error) {
	v := verifier{retained: true, heads: slices.SortedFunc(slices.Values(heads), func(a, b Head) int { return cmp.Compare(a.Seq, b.Seq) })}
	return v.files(paths)
}

func (v *verifier) files(paths []string) (Report, error) {
	if len(paths) == 0 {
		return v.Report, errors.New("no file to verify")
	}
	// The last file is opened first: if it is renamed later, it is still this one.
	last, err := openLog(paths[len(paths)-1])
	if err != nil {
		return v.Report, err
	}
	defer last.Close()
	for _, path := range paths[:len(paths)-1] {
		f, err := openLog(path)
		if err != nil {
			return v.Report, err
		}
		err = v.file(path, f.text)
		f.Close()
		if err == nil && v.Torn > 0 {
			err = v.wrong("the file ends within a line, and more files follow")
		}
		if err != nil {
			return v.Report, err
		}
	}
	if err := v.file(last.Name(), last.text); err != nil {
		return v.Report, err
	}
	return v.Report, v.end()
}

// verifier is somewhere in a chain.
type verifier struct {
	Report
	heads    []Head // that were not met yet
	retained bool   // heads before the first record do not count
	log      string
	path     string
	line     int
}

func (v *verifier) wrong(format string, args ...any) error {
	return &ChainError{v.path, v.line, fmt.Sprintf(format, args...)}
}

func (v *verifier) file(path string, r io.Reader) error {
	v.path, v.line = path, 0
	ls := newLines(r)
	for {
		b, err := ls.next()
		v.line++
		switch {
		case errors.Is(err, io.EOF):
			v.Torn = int64(len(b))
			return nil
		case errors.Is(err, errTooLong):
			return v.wrong("%v", err)
		case err != nil:
			return err
		}
		if err := v.record(b); err != nil {
			return err
		}
	}
}

// record checks one line against those before it.
func (v *verifier) record(b []byte) error {
	var e struct {
		Log    string
		Seq    uint64
		Event  gate.Event
		Format int
		Prev   string
	}
	err := json.Unmarshal(b, &e)
	begins := v.Records == 0
	switch {
	case err != nil:
		return v.wrong("is not an audit record: %v", err)
	case e.Seq == 0 || e.Log == "":
		return v.wrong("is not an audit record: it has no log or seq")
	case v.line == 1 && e.Event != Opened:
		return v.wrong("a file begins with an opened record; those before record %d were removed", e.Seq)
	case e.Event == Opened && e.Format != format:
		return v.wrong("is of format %d; this version reads format %d", e.Format, format)
	case !begins && e.Seq != v.Last.Seq+1:
		return v.wrong("is record %d where %d was expected: records were removed, added or moved", e.Seq, v.Last.Seq+1)
	case !begins && e.Prev != v.Last.Hash:
		if v.line > 1 {
			v.line--
			return v.wrong("record %d was changed, or the prev of the one after it", v.Last.Seq)
		}
		return v.wrong("does not continue the file before: a record was changed there, or prev here")
	case begins && e.Prev == "" && e.Seq > 1:
		return v.wrong("record %d has no prev", e.Seq)
	case !begins && e.Log != v.log && e.Event != Opened:
		return v.wrong("is of log %s, which no opened record has announced", e.Log)
	}
	hash := sha256.Sum256(b)
	v.Last, v.log = Head{e.Seq, hex.EncodeToString(hash[:])}, e.Log
	if begins {
		v.First = v.Last
		for v.retained && len(v.heads) > 0 && v.heads[0].Seq < v.First.Seq {
			v.heads = v.heads[1:]
		}
	}
	v.Records++
	for len(v.heads) > 0 && v.heads[0].Seq == v.Last.Seq {
		if v.heads[0].Hash != v.Last.Hash {
			return v.wrong("record %d is not the one that head names: it or one before it was changed", e.Seq)
		}
		v.heads = v.heads[1:]
	}
	return nil
}

// end checks that all heads were met.
func (v *verifier) end() error {
	switch {
	case len(v.heads) == 0:
		return nil
	case v.Records > 0 && v.heads[0].Seq < v.First.Seq:
		return v.wrong("the log begins with record %d; head names record %d, in a file before", v.First.Seq, v.heads[0].Seq)
	}
	return v.wrong("the log ends with record %d; head names record %d: records were cut off", v.Last.Seq, v.heads[0].Seq)
}
