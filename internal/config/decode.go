package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// A decoder walks the tree of one file and collects what is wrong with it.
// Each of its readers reports a wrong value and leaves the target as it was.
type decoder struct {
	file     string                      // as it was named
	dir      string                      // where relative paths start
	lookup   func(string) (string, bool) // the environment
	keep     bool                        // leave variables as they are (for an import)
	lenient  bool                        // an unset variable is empty (for a disabled server)
	foreign  bool                        // the file is a project's, which may not refer to the user's secrets
	refers   bool                        // what is read may refer to secrets
	faults   *[]string                   // takes what a server lacks to be started; nil where a variable has to be set
	problems tree.Problems
	warnings []tree.Problem
}

// A reader decodes the value at path.
type reader = func(n *tree.Node, path string)

func (d *decoder) fail(n *tree.Node, path, format string, args ...any) {
	d.problems = append(d.problems, tree.Problem{File: d.file, Line: n.Line, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) warn(line int, path, format string, args ...any) {
	d.warnings = append(d.warnings, tree.Problem{File: d.file, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// later is the reader of a key whose part is not built.
func (d *decoder) later(n *tree.Node, path string) {
	d.fail(n, path, "this version of wasmgate does not have it")
}

// is reports whether n is of kind k, and fails it otherwise.
func (d *decoder) is(n *tree.Node, path string, k tree.Kind) bool {
	wrong := n.Mismatch(k)
	if wrong != "" {
		d.fail(n, path, "%s", wrong)
	}
	return wrong == ""
}

// table gives each field of n to its reader. A key without one is a problem.
func (d *decoder) table(n *tree.Node, path string, readers map[string]reader) {
	if !d.is(n, path, tree.Table) {
		return
	}
	for _, f := range n.Fields {
		if read := readers[f.Key]; read != nil {
			read(f.Value, tree.Join(path, f.Written()))
			continue
		}
		d.fail(&tree.Node{Line: f.Line}, tree.Join(path, f.Key), "unknown key%s", hint(f.Key, slices.Sorted(maps.Keys(readers))))
	}
}

// hint says which words are known: the nearest, or all if they are few.
func hint(s string, known []string) string {
	if h := spelling.Suggest(s, known); h != "" {
		return h
	}
	if len(known) <= 8 {
		return "; known are " + strings.Join(known, ", ")
	}
	return ""
}

// each gives each field of n to read, with its key.
func (d *decoder) each(n *tree.Node, path string, read func(f tree.Field, path string)) {
	if !d.is(n, path, tree.Table) {
		return
	}
	for _, f := range n.Fields {
		read(f, tree.Join(path, f.Written()))
	}
}

// items gives each item of the list n to read.
func (d *decoder) items(n *tree.Node, path string, read reader) {
	if !d.is(n, path, tree.List) {
		return
	}
	for i, item := range n.Items {
		read(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// expanded returns the text of n with its variables replaced.
func (d *decoder) expanded(n *tree.Node, path string) (string, bool) {
	if d.keep {
		return n.Text, true
	}
	lookup := d.lookup
	if d.lenient {
		lookup = func(name string) (string, bool) { v, _ := d.lookup(name); return v, true }
	}
	s, err := variables.Expand(n.Text, lookup)
	if unset, ok := errors.AsType[*variables.UnsetError](err); ok && d.faults != nil {
		*d.faults = append(*d.faults, path+": "+unset.Error())
	} else if err != nil {
		d.fail(n, path, "%v", err)
	}
	if err == nil && variables.Refers(s) && !d.refers && !strings.ContainsRune(n.Text, 0) {
		d.fail(n, path, "refers to a secret: that works only in args, env and headers of a server, and not in a project's file")
		return "", false
	}
	return s, err == nil
}

// referring has a reader take references to secrets, which are read when the server starts.
func (d *decoder) referring(read reader) reader {
	return func(n *tree.Node, path string) {
		outer := d.refers
		d.refers = !d.foreign
		defer func() { d.refers = outer }()
		read(n, path)
	}
}

// faulting has variables that are not set fault what is read, and nothing else: who reads
// a log, say, need not know the password of a server. It returns what makes one text of
// them in the end.
func (d *decoder) faulting() (fault func() string) {
	outer := d.faults
	d.faults = new([]string)
	return func() string {
		text := strings.Join(*d.faults, "; ")
		d.faults = outer
		return text
	}
}

// unchecked reports whether a value cannot be judged yet: it holds a variable
// that is left as it is, or one that a disabled server may do without.
func (d *decoder) unchecked(n *tree.Node) bool {
	return (d.keep || d.lenient) && strings.Contains(n.Text, "$")
}

// A check says what is wrong with a value, without quoting it: the value may
// have come out of the environment.
type check = func(string) error

// text reads a text without control characters that passes the checks.
func (d *decoder) text(to *string, checks ...check) reader {
	return func(n *tree.Node, path string) {
		if s, ok := d.checked(n, path, append([]check{plain}, checks...)); ok {
			*to = s
		}
	}
}

func (d *decoder) checked(n *tree.Node, path string, checks []check) (string, bool) {
	if !d.is(n, path, tree.Text) {
		return "", false
	}
	s, ok := d.expanded(n, path)
	if !ok || d.unchecked(n) {
		return s, ok
	}
	for _, c := range checks {
		if err := c(s); err != nil {
			d.fail(n, path, "%q %v", n.Text, err)
			return "", false
		}
	}
	return s, true
}

func plain(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("holds a control character")
	}
	return nil
}

// matches returns a check against re, which what describes.
func matches(re *regexp.Regexp, what string) check {
	return func(s string) error {
		if !re.MatchString(s) {
			return errors.New("is not " + what)
		}
		return nil
	}
}

// among returns a check for one of the words.
func among(words []string) check {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("is not one of " + strings.Join(words, ", "))
		}
		return nil
	}
}

// texts reads a list of texts.
func (d *decoder) texts(to *[]string, checks ...check) reader {
	return func(n *tree.Node, path string) {
		if !d.is(n, path, tree.List) {
			return
		}
		*to = make([]string, 0, len(n.Items))
		d.items(n, path, func(item *tree.Node, at string) {
			s, ok := d.checked(item, at, append([]check{plain}, checks...))
			if ok && slices.Contains(*to, s) {
				d.fail(item, at, "%q is listed twice", item.Text)
			} else if ok {
				*to = append(*to, s)
			}
		})
	}
}

// written returns a value for another program as a person wrote it: 1 and true
// are the texts "1" and "true". It may be secret and is never quoted.
func (d *decoder) written(n *tree.Node, path string) (string, bool) {
	if n.Kind != tree.Number && n.Kind != tree.Boolean && !d.is(n, path, tree.Text) {
		return "", false
	}
	s, ok := d.expanded(n, path)
	if ok && strings.ContainsRune(n.Text, 0) {
		d.fail(n, path, "holds a NUL character")
		return "", false
	}
	return s, ok
}

// one reads one of the words.
func (d *decoder) one(to *string, words ...string) reader {
	return func(n *tree.Node, path string) {
		s, ok := d.checked(n, path, nil)
		switch {
		case !ok:
		case slices.Contains(words, s) || d.unchecked(n):
			*to = s
		default:
			d.fail(n, path, "%q is not one of %s%s", n.Text, strings.Join(words, ", "), spelling.Suggest(s, words))
		}
	}
}

// scalar returns the text of a value of kind k, which a variable may give too.
func (d *decoder) scalar(n *tree.Node, path string, k tree.Kind) (string, bool) {
	if n.Kind == tree.Text && strings.Contains(n.Text, "${") {
		s, ok := d.expanded(n, path)
		return s, ok && !d.unchecked(n)
	}
	return n.Text, d.is(n, path, k)
}

func (d *decoder) flag(to *bool) reader {
	return func(n *tree.Node, path string) {
		s, ok := d.scalar(n, path, tree.Boolean)
		switch {
		case !ok:
		case s == "true" || s == "false":
			*to = s == "true"
		default:
			d.fail(n, path, "%q is neither true nor false", n.Text)
		}
	}
}

func (d *decoder) count(to *int, low, high int) reader {
	return func(n *tree.Node, path string) {
		s, ok := d.scalar(n, path, tree.Number)
		if !ok {
			return
		}
		v, err := strconv.Atoi(s)
		if err != nil || v < low || v > high {
			d.fail(n, path, "%q is not a whole number from %d to %d", n.Text, low, high)
			return
		}
		*to = v
	}
}

// measure reads a number with a unit; parse makes it a value.
func measure[T int64 | time.Duration](d *decoder, to *T, unit string, parse func(string) (T, error)) reader {
	return func(n *tree.Node, path string) {
		if !d.hasUnit(n, path, unit) {
			return
		}
		s, ok := d.expanded(n, path)
		if !ok || d.unchecked(n) {
			return
		}
		v, err := parse(s)
		if err != nil {
			d.fail(n, path, "%q %v", n.Text, err)
			return
		}
		*to = v
	}
}

// hasUnit reports whether n is a text, as a number with a unit is, and fails it otherwise.
func (d *decoder) hasUnit(n *tree.Node, path, unit string) bool {
	if n.Kind == tree.Number {
		d.fail(n, path, "%s has no unit: write %s%s", n.Text, n.Text, unit)
		return false
	}
	return d.is(n, path, tree.Text)
}

func (d *decoder) duration(to *time.Duration, low, high time.Duration) reader {
	return measure(d, to, "s", func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil {
			return 0, errors.New("is not a duration: write a number and ms, s, m or h, such as 30s")
		}
		if v < low || v > high {
			return 0, fmt.Errorf("is not from %s to %s", short(low), short(high))
		}
		return v, nil
	})
}

// short returns v without the zeros that String ends in (24h0m0s).
func short(v time.Duration) string {
	s := v.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,18}) ?(B|KiB|MiB|GiB)$`)

func (d *decoder) size(to *int64, low, high int64) reader {
	return measure(d, to, "MiB", func(s string) (int64, error) {
		v, err := parseSize(s)
		if err == nil && (v < low || v > high) {
			err = fmt.Errorf("is not from %s to %s", bytesText(low), bytesText(high))
		}
		return v, err
	})
}

// parseSize reads a size; one that 64 bits do not hold is as large as they can.
func parseSize(s string) (int64, error) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, errors.New("is not a size: write a whole number and B, KiB, MiB or GiB, such as 64MiB")
	}
	v, _ := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[m[2]]
	return min(v, math.MaxInt64/unit) * unit, nil
}

// bytesText returns n with the largest unit that divides it.
func bytesText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// path reads a path, which starts at the folder of the file.
func (d *decoder) path(to *string, checks ...check) reader {
	resolved := func(c check) check {
		return func(s string) error { return c(d.resolve(s)) }
	}
	return func(n *tree.Node, path string) {
		all := []check{plain}
		for _, c := range checks {
			all = append(all, resolved(c))
		}
		if s, ok := d.checked(n, path, all); ok {
			*to = d.resolve(s)
		}
	}
}

func (d *decoder) resolve(s string) string {
	if filepath.IsAbs(s) || d.keep && strings.HasPrefix(s, "$") {
		return s
	}
	return filepath.Join(d.dir, s)
}

// age reads an age of at least a minute.
func (d *decoder) age(to *time.Duration) reader {
	return measure(d, to, "d", func(s string) (time.Duration, error) {
		v, err := parseAge(s)
		if err != nil || v < time.Minute {
			return 0, errors.New("is not an age of a minute or more, such as 30d or 12h")
		}
		return v, nil
	})
}

// parseAge reads a duration, which may be in days.
func parseAge(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(days)
	if err == nil && n > 36500 {
		err = strconv.ErrRange
	}
	return time.Duration(n) * 24 * time.Hour, err
}

// exists is a check, since a policy that is not found would not deny.
func exists(path string) error {
	if _, err := os.Stat(path); err != nil {
		return errors.New("does not exist")
	}
	return nil
}

var (
	profiles    = []string{"strict", "html", "text", "code", "off"}
	toolPattern = regexp.MustCompile(`^[A-Za-z0-9_-]*\*?$`)
)

// toolWords says what toolPattern matches.
const toolWords = "the name of a tool, or its beginning and *"

// checkTools checks a pattern of tools' names.
func checkTools(s string) error { return matches(toolPattern, toolWords)(s) }
