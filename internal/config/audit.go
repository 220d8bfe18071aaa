package config

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// Audit says where and how calls are recorded.
type Audit struct {
	Path    string `key:"path path" restart:"yes"` // see [Config.place]
	Record  string `key:"record digest|full" default:"digest"`
	Sync    string `key:"sync group|always" default:"group"`
	MaxSize int64  `key:"max_size 1KiB..1024GiB" default:"100MiB"` // after which the log is continued in a new file
	Keep    int    `key:"keep 1..100000" default:"10"`             // files that are kept
	// Hold is how old records are before a file of them is removed; zero leaves that to
	// Keep. Strict refuses calls rather than removing younger ones.
	Hold    time.Duration `key:"hold age" default:"7d"`
	Strict  bool
	HardMax int64 `key:"hard_max 1KiB..1048576GiB"` // bytes of all files while younger ones are held; zero is four times those of Keep
	// Rotate is the age at which a file is continued in a new one; zero leaves that to
	// MaxSize. MaxAge is how old records may become; zero sets no end. Compress packs old
	// files.
	Rotate    time.Duration `key:"rotate age"`
	MaxAge    time.Duration `key:"max_age age"`
	Compress  bool          `key:"compress"`
	Anchor    Anchor        `key:"anchor"`
	Arguments Arguments     `key:"arguments"`
}

// Check implements [decode.Checker].
func (a *Audit) Check(v decode.Value) {
	if v.Has("max_age") && a.MaxAge > 0 && a.MaxAge < a.Hold {
		v.Get("max_age").Fail("is less than hold, which keeps records for %s: write more, or less there", decode.DurationText(a.Hold))
	}
	if kept := a.MaxSize * int64(a.Keep); a.HardMax > 0 && a.HardMax < kept {
		v.Under("hard_max").Fail("is %s, less than the %s that max_size and keep come to: write more, or less there", decode.SizeText(a.HardMax), decode.SizeText(kept))
	}
}

// Readers implements [decode.Reading].
func (a *Audit) Readers() map[string]decode.Reader { return map[string]decode.Reader{"hold": hold(a)} }

// hold reads an age, the word strict, or both.
func hold(to *Audit) decode.Reader {
	return decode.Measure(&to.Hold, "d", func(s string) (time.Duration, error) {
		age, strict := strings.CutSuffix(s, "strict")
		if age = strings.TrimSpace(age); age == "" && strict {
			age = "7d"
		}
		v, err := decode.ParseAge(age)
		if err != nil || v < 0 {
			return 0, errors.New("must be an age such as 7d or 12h, optionally followed by strict")
		}
		to.Strict = strict
		return v, nil
	})
}
