package audit

import (
	"bytes"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Bounds on what a line takes from others. Documents are bounded by the
// gateway's own limits, and by maxLine.
const (
	maxText  = 256     // bytes of a name; clients write some of them
	maxProse = 4 << 10 // bytes of a reason or an error; enough for a panic's first frames
	maxItems = 128     // of a list; the gate keeps 100 findings of a result, a session 64 labels
)

// line is a line under construction. Reflection would cost more than the rest
// of a record together, so that the fields are written out one by one.
type line []byte

// body writes what follows log, seq and time, which are known only once it is
// the line's turn.
func (b line) body(e *Entry) line {
	b = b.text("event", string(e.Event))
	if e.Event == Opened {
		b = b.num("format", uint64(e.Format)).text("node", e.Node).text("boot", e.Boot).text("version", e.Version)
		b = b.num("cut_bytes", uint64(max(0, e.CutBytes))).list("removed", e.Removed, maxText)
	}
	b = b.list("heads", e.Heads, maxText).text("id", e.ID).text("parent", e.Parent).list("relayed", e.Relayed, maxText).text("action", string(e.Action))
	b = b.text("tenant", e.Tenant).text("principal", e.Principal).list("roles", e.Roles, maxText)
	b = b.text("auth", e.Auth).text("issuer", e.Issuer).text("credential", e.Credential).text("network", e.Network).client(e.Client)
	b = b.text("session", e.Session).text("server", e.Server).text("tool", e.Tool).text("tool_digest", e.ToolDigest).text("file_digest", e.FileDigest).app(e.App)
	b = b.text("effect", string(e.Effect)).text("code", e.Code).list("reasons", e.Reasons, maxProse)
	b = b.prose("error", e.Error).prose("remedy", e.Remedy)
	b = b.list("met", e.Met, maxText).approval(e.Approval).shadow(e.Shadow).upstream(e.Upstream)
	b = b.list("labels_before", e.LabelsBefore, maxText).list("labels_after", e.LabelsAfter, maxText)
	b = b.num("session_version", e.SessionVersion)
	if e.SessionTop {
		b = append(b.key("session_top"), "true"...)
	}
	if e.OwnRecord {
		b = append(b.key("own_record"), "true"...)
	}
	b = b.text("policy_revision", e.PolicyRevision).text("snapshot", e.Snapshot)
	b = b.text("args_sha256", e.ArgsSHA256).text("brought_sha256", e.BroughtSHA256).text("result_sha256", e.ResultSHA256).findings(e.Findings)
	b = b.num("fuel", e.Fuel).num("memory_peak", uint64(max(0, e.MemoryPeak))).num("host_calls", e.HostCalls)
	b = b.num("count", more(e.Count)).num("repeats", uint64(max(0, e.Repeats)))
	b = b.num("took_us", uint64(max(0, e.TookUS))).steps(e.Steps)
	if e.Late {
		b = append(b.key("late"), "true"...)
	}
	return b.doc("arguments", e.Arguments).doc("result", e.Result)
}

// more is n if it is more than one, which goes without saying.
func more(n uint64) uint64 {
	if n == 1 {
		return 0
	}
	return n
}

func (b line) key(k string) line {
	return append(append(append(b, ',', '"'), k...), '"', ':')
}

func (b line) text(k, s string) line {
	if s == "" {
		return b
	}
	return b.key(k).quoted(s, maxText)
}

func (b line) prose(k, s string) line {
	if s == "" {
		return b
	}
	return b.key(k).quoted(s, maxProse)
}

func (b line) num(k string, n uint64) line {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(b.key(k), n, 10)
}

func (b line) list(k string, items []string, limit int) line {
	if len(items) == 0 {
		return b
	}
	b = append(b.key(k), '[')
	for i, s := range items[:min(len(items), maxItems)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = b.quoted(s, limit)
	}
	return append(b, ']')
}

func (b line) upstream(c *gate.Credential) line {
	if c == nil || c.Mode == "" {
		return b
	}
	b = b.key("upstream")
	at := len(b)
	b = b.text("mode", c.Mode).text("issuer", c.Issuer).text("credential", c.Name).list("scopes", c.Scopes, maxText)
	if !c.Expires.IsZero() {
		b = b.text("expires", c.Expires.UTC().Format(time.RFC3339))
	}
	if c.Narrow {
		b = append(b.key("narrowed"), "true"...)
	}
	b[at] = '{' // instead of the first member's comma
	return append(b, '}')
}

func (b line) app(a *App) line {
	if a == nil {
		return b
	}
	b = strconv.AppendBool(append(b.key("app"), `{"only":`...), a.Only)
	return append(strconv.AppendBool(append(b, `,"own_name":`...), a.OwnName), '}')
}

func (b line) client(c Client) line {
	if c == (Client{}) {
		return b
	}
	b = b.key("client")
	at := len(b)
	b = b.text("id", c.ID).text("name", c.Name).text("version", c.Version)
	b[at] = '{' // instead of the first member's comma
	return append(b, '}')
}

func (b line) approval(a Approval) line {
	if a == (Approval{}) {
		return b
	}
	b = b.key("approval")
	at := len(b)
	b = b.text("id", a.ID).text("state", a.State).text("binding", a.Binding).text("by", a.By).text("auth", a.Auth).prose("note", a.Note)
	if !a.Expires.IsZero() {
		b = b.text("expires", a.Expires.UTC().Format(time.RFC3339))
	}
	if len(b) == at {
		return append(b, "{}"...)
	}
	b[at] = '{' // instead of the first member's comma
	return append(b, '}')
}

func (b line) shadow(s ShadowDecision) line {
	if s.Effect == "" {
		return b
	}
	b = b.key("shadow")
	at := len(b)
	b = b.text("effect", string(s.Effect)).list("reasons", s.Reasons, maxProse).text("revision", s.Revision)
	b = b.prose("error", s.Error).list("differs", s.Differs, maxText)
	b[at] = '{' // instead of the first member's comma
	return append(b, '}')
}

func (b line) findings(fs []gate.Finding) line {
	if len(fs) == 0 {
		return b
	}
	b = append(b.key("findings"), '[')
	for i, f := range fs[:min(len(fs), maxItems)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"rule":`...)
		b = b.quoted(f.Rule, maxText).text("at", f.At).text("fingerprint", f.Fingerprint)
		b = strconv.AppendInt(b.key("count"), int64(f.Count), 10)
		b = append(strconv.AppendBool(b.key("removed"), f.Removed), '}')
	}
	return append(b, ']')
}

// steps writes the sum of each step: a call whose session changed was decided
// more than once, and an object has no name twice.
func (b line) steps(steps Steps) line {
	open := byte('{')
	for i, s := range steps[:min(len(steps), maxItems)] {
		if s.Step == "" || steps[:i].has(s.Step) {
			continue
		}
		var sum time.Duration
		for _, later := range steps[i:] {
			if later.Step == s.Step {
				sum += later.Took
			}
		}
		if open == '{' {
			b = b.key("steps_us")
		}
		b = append(b, open).quoted(string(s.Step), maxText)
		b = strconv.AppendInt(append(b, ':'), sum.Microseconds(), 10)
		open = ','
	}
	if open == ',' {
		b = append(b, '}')
	}
	return b
}

func (s Steps) has(step step.Step) bool {
	for _, one := range s {
		if one.Step == step {
			return true
		}
	}
	return false
}

// doc writes a document as it is, but on one line: within JSON a newline can
// only be white space.
func (b line) doc(k string, raw []byte) line {
	if len(raw) == 0 {
		return b
	}
	b = b.key(k)
	at := len(b)
	b = append(b, raw...)
	for {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return b
		}
		b[at+i] = ' '
		at += i
	}
}

// quoted writes at most limit bytes of a string. It escapes whatever a terminal would not simply
// show, so that a line is safe to look at; what is not UTF-8 becomes U+FFFD.
func (b line) quoted(s string, limit int) line {
	cut := len(s) > limit
	if cut {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		if asItIs[s[i]] { // nearly all there is
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if plain(r, n) {
			i += n
			continue
		}
		b = append(b, s[done:i]...).escaped(r)
		i += n
		done = i
	}
	b = append(b, s[done:]...)
	if cut {
		b = append(b, "…"...)
	}
	return append(b, '"')
}

// asItIs are the characters of ASCII that are plain.
var asItIs = func() (is [256]bool) {
	for c := range byte(utf8.RuneSelf) {
		is[c] = plain(rune(c), 1)
	}
	return is
}()

func plain(r rune, n int) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != '"' && r != '\\' && r != 0x7f
	}
	return (r != utf8.RuneError || n > 1) && unicode.IsPrint(r)
}

const hexDigits = "0123456789abcdef"

func (b line) escaped(r rune) line {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r == '\n':
		return append(b, '\\', 'n')
	case r == '\t':
		return append(b, '\\', 't')
	case r > 0xffff: // a surrogate pair (RFC 8259, section 7)
		r -= 0x10000
		return b.escaped(0xd800 + r>>10).escaped(0xdc00 + r&0x3ff)
	}
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
