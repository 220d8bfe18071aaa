package config

import (
	"errors"
	"strings"
	"time"
)

// Audit says where and how calls are recorded.
type Audit struct {
	Path    string
	Record  string // digest | full
	Sync    string // group | always
	MaxSize int64  // bytes, after which the log is continued in a new file
	Keep    int    // files that are kept
	// Hold is how old records are before a file of them is removed; zero leaves that to
	// Keep. Strict refuses calls rather than removing younger ones.
	Hold    time.Duration
	Strict  bool
	HardMax int64 // bytes of all files while younger ones are held; zero is four times those of Keep
	// Rotate is the age at which a file is continued in a new one; zero leaves that to
	// MaxSize. MaxAge is how old records may become; zero sets no end. Compress packs old
	// files.
	Rotate, MaxAge time.Duration
	Compress       bool
}

func (d *decoder) audit(to *Audit, anchor *Anchor, arguments *Arguments, n *node, path string) {
	d.table(n, path, map[string]reader{
		"path":      d.path(&to.Path),
		"record":    d.one(&to.Record, "digest", "full"),
		"sync":      d.one(&to.Sync, "group", "always"),
		"max_size":  d.size(&to.MaxSize, 1<<10, 1<<40),
		"keep":      d.count(&to.Keep, 1, 100_000),
		"hold":      d.hold(to),
		"hard_max":  d.size(&to.HardMax, 1<<10, 1<<50),
		"rotate":    d.age(&to.Rotate),
		"max_age":   d.age(&to.MaxAge),
		"compress":  d.flag(&to.Compress),
		"anchor":    func(n *node, path string) { d.anchor(anchor, n, path) },
		"arguments": func(n *node, path string) { d.arguments(arguments, n, path) },
	})
	if at := n.get("max_age"); at != nil && to.MaxAge > 0 && to.MaxAge < to.Hold {
		d.fail(at, join(path, "max_age"), "is less than hold, which keeps records for %s: write more, or less there", short(to.Hold))
	}
	if kept := to.MaxSize * int64(to.Keep); to.HardMax > 0 && to.HardMax < kept {
		d.fail(n, join(path, "hard_max"), "is %s, less than the %s that max_size and keep come to: write more, or less there", bytesText(to.HardMax), bytesText(kept))
	}
}

// hold reads an age, the word strict, or both.
func (d *decoder) hold(to *Audit) reader {
	return measure(d, &to.Hold, "d", func(s string) (time.Duration, error) {
		age, strict := strings.CutSuffix(s, "strict")
		if age = strings.TrimSpace(age); age == "" && strict {
			age = "7d"
		}
		v, err := parseAge(age)
		if err != nil || v < 0 {
			return 0, errors.New("is no age such as 7d or 12h, nor the word strict, nor both")
		}
		to.Strict = strict
		return v, nil
	})
}
