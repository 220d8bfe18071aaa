package audit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

const defaultHold = 7 * 24 * time.Hour

// Options configure a [Log].
type Options struct {
	Node     string // name of this gateway; required
	Boot     string // of this start of it; "" makes a random one
	Version  string // of the program, for the opened line
	Snapshot string // of the configuration, for the opened line
	// MaxSize is the size in bytes at which a file is closed and renamed. Zero
	// means 100 MiB; negative is an error.
	MaxSize int64
	// Keep is how many renamed files are kept. Zero means 10, negative all.
	Keep int
	// Hold is how old the newest record of a file must be before the file is removed. Until then
	// the log grows beyond Keep, up to HardMax, or until 5 % of the disk, or 1 GiB if that is less,
	// are free; then the oldest file goes all the same, which an opened line records. Zero means 7
	// days; with a negative one only Keep decides.
	Hold time.Duration
	// HardMax is how many bytes all files together may take while there are more than
	// Keep. Zero means four times MaxSize times Keep.
	HardMax int64
	// Strict refuses records, and so calls, where a file would have to go that is to be
	// held.
	Strict bool
	// Rotate is the age of its first record at which a file that has others is renamed, whatever
	// its size. Zero means that only size counts.
	Rotate time.Duration
	// MaxAge is how old the newest record of a file may become before the file is removed,
	// however few there are. Zero means that age removes none. It is not below Hold.
	MaxAge time.Duration
	// Compress packs renamed files, but the newest, into files that end in .gz.
	Compress bool
	// Record is "digest", which "" means too, or "full": arguments and results
	// themselves are recorded.
	Record string
	// Beside reports whether to keep those documents of a record that are not recorded themselves.
	// Then they go to Documents, by their digests and without what Hide takes out of them, once the
	// record of a call's end is written. Documents must not block, and does not change text. Both
	// or neither are nil.
	Beside    func(r *gate.Record) bool
	Documents func(digest string, text []byte)
	// Sync is "group", which "" means too: a file is synced in the background,
	// 100 ms after a record at the latest; or "always": a record is on disk when
	// Record returns, and records that are written at once share a sync.
	Sync string
	// Hide takes out of a text what must not be in a log, such as secrets; nil leaves all. Name is
	// what the text is called where it is, see [doc.Leaf.Name]. Digests stay those of the documents
	// as they were.
	Hide func(name, text string) string
	Log  *slog.Logger // nil discards
}

func (o *Options) check() error {
	switch {
	case o.Node == "":
		return errors.New("no node is named")
	case o.MaxSize < 0:
		return fmt.Errorf("max size is %d bytes; it must not be negative", o.MaxSize)
	case o.Record != "" && o.Record != "digest" && o.Record != "full":
		return fmt.Errorf("record is %q; expected digest or full", o.Record)
	case o.Sync != "" && o.Sync != "group" && o.Sync != "always":
		return fmt.Errorf("sync is %q; expected group or always", o.Sync)
	}
	if o.Boot == "" {
		o.Boot = rand.Text()[:8]
	}
	if o.MaxSize == 0 {
		o.MaxSize = 100 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o.checkRetention()
}

// checkRetention checks and completes the Options for old files.
func (o *Options) checkRetention() error {
	if o.Keep == 0 {
		o.Keep = 10
	}
	if o.Hold == 0 {
		o.Hold = defaultHold
	}
	most := int64(math.MaxInt64)
	if usual := float64(o.MaxSize) * float64(o.Keep); o.Keep > 0 && usual < math.MaxInt64/4 {
		most = o.MaxSize * int64(o.Keep)
		if o.HardMax == 0 {
			o.HardMax = 4 * most
		}
	}
	switch {
	case o.Rotate < 0 || o.MaxAge < 0:
		return fmt.Errorf("rotate is %s and max age %s; they must not be negative", o.Rotate, o.MaxAge)
	case o.MaxAge > 0 && o.MaxAge < o.Hold:
		return fmt.Errorf("max age is %s, but hold keeps records for %s", o.MaxAge, o.Hold)
	case o.HardMax == 0:
		o.HardMax = math.MaxInt64
	case o.HardMax < 0:
		return fmt.Errorf("hard max is %d bytes; it must not be negative", o.HardMax)
	case o.Keep > 0 && o.HardMax < most:
		return fmt.Errorf("hard max (%d bytes) is less than the %d bytes of all files (keep: %d files of max size %d): raise hard max, or lower keep or max size", o.HardMax, most, o.Keep, o.MaxSize)
	}
	return nil
}
