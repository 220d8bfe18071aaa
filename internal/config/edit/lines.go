package edit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// lines writes the keys of one table. What is zero, or as it is without the key, is left out.
type lines struct {
	b      *bytes.Buffer
	indent string
}

// line writes a key with what is YAML already.
func (l lines) line(key, value string) {
	fmt.Fprintf(l.b, "%s%s: %s\n", l.indent, tree.Scalar(key), value)
}

func (l lines) text(key, value, usual string) {
	if value != "" && value != usual {
		l.line(key, tree.Scalar(value))
	}
}

func (l lines) number(key string, n int) {
	if n != 0 {
		l.line(key, strconv.Itoa(n))
	}
}

func (l lines) size(key string, n int64) {
	if n != 0 {
		l.line(key, decode.SizeText(n))
	}
}

func (l lines) time(key string, d time.Duration) {
	if d != 0 {
		l.line(key, tree.Scalar(decode.DurationText(d)))
	}
}

// under writes a table within the table.
func (l lines) under(key string, write func(lines)) {
	var inner bytes.Buffer
	write(lines{&inner, l.indent + "  "})
	if inner.Len() == 0 {
		l.line(key, "{}")
		return
	}
	fmt.Fprintf(l.b, "%s%s:\n%s", l.indent, tree.Scalar(key), inner.Bytes())
}

// column writes a list, a line for each.
func (l lines) column(key string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(l.b, "%s%s:\n", l.indent, tree.Scalar(key))
	}
	for _, s := range list {
		fmt.Fprintf(l.b, "%s  - %s\n", l.indent, tree.Scalar(s))
	}
}

// row writes a list in one line.
func (l lines) row(key string, list []string) {
	written := make([]string, len(list))
	for i, s := range list {
		written[i] = tree.Scalar(s)
	}
	if len(list) > 0 {
		l.line(key, "["+strings.Join(written, ", ")+"]")
	}
}

func (l lines) block(key string, values map[string]config.Secret) {
	if len(values) == 0 {
		return
	}
	l.under(key, func(l lines) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			l.line(k, tree.Scalar(string(values[k])))
		}
	})
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}
