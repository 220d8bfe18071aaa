package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Render returns the servers as the `servers:` block of a wasmgate.yaml, which
// [Load] reads back as they are. Values are written with their variables, as
// [ImportMCP] returns them; pass the servers through [Extract] first. What env_from
// and env_file have brought stands under env. A fault becomes a comment above its
// server.
func Render(servers []Server) []byte {
	var b bytes.Buffer
	b.WriteString("servers:\n")
	for _, s := range servers {
		renderServer(&b, s)
	}
	return b.Bytes()
}

func renderServer(b *bytes.Buffer, s Server) {
	if s.Fault != "" {
		fmt.Fprintf(b, "  # %s\n", oneLine(s.Fault))
	}
	fmt.Fprintf(b, "  %s:\n", scalar(s.ID))
	l := lines{b, "    "}
	l.text("command", s.Command, "")
	l.text("module", s.Module.Path+s.Module.Ref, "")
	l.text("sha256", s.Module.SHA256, "")
	l.column("args", s.Args)
	l.block("env", s.Env)
	l.text("cwd", s.Cwd, "")
	if s.Confine != nil {
		l.under("confine", func(l lines) { renderConfine(l, *s.Confine) })
	}
	if s.Module.ModuleLimits != (ModuleLimits{}) {
		l.under("limits", func(l lines) { renderLimits(l, s.Module.ModuleLimits) })
	}
	if v := s.Module.Verify; v != nil {
		l.under("verify", func(l lines) {
			l.text("key", v.Key, "")
			l.text("bundle", v.Bundle, "")
			l.text("signed_as", v.SignedAs, "")
		})
	}
	l.text("url", s.URL, "")
	l.flag("private", s.Private, false)
	l.text("transport", s.Transport, "auto")
	l.text("protocol", s.Protocol, "auto")
	l.block("headers", s.Headers)
	if s.Auth != nil {
		l.under("auth", func(l lines) { renderAuth(l, *s.Auth) })
	}
	renderTimes(l, s)
	l.number("concurrent", s.Concurrent)
	l.flag("enabled", s.Enabled, true)
	l.flag("required", s.Required, false)
	l.flag("prefix", s.Prefix, true)
	l.text("sessions", s.Sessions, "auto")
	l.text("lists", s.Lists, "")
	l.text("schema", s.Schema, "declared")
	l.text("input", s.Input, "coerce")
	l.modes("inputs", s.Inputs)
	l.text("output", s.Output, "enforce")
	l.text("sanitize", s.Sanitize, "")
	l.text("replay", s.Replay, "")
	l.modes("replays", s.Replays)
	l.row("methods", s.Methods)
	l.row("groups", s.Groups)
}

// renderTimes writes how long a server may take, and what is done when it fails.
func renderTimes(l lines, s Server) {
	l.time("start", s.Start)
	if s.Timeout != DefaultTimeout {
		l.time("timeout", s.Timeout)
	}
	if len(s.Timeouts) > 0 {
		l.under("timeouts", func(l lines) {
			for _, t := range s.Timeouts {
				l.time(t.Pattern, t.Timeout)
			}
		})
	}
	l.text("retry", s.Retry, "never")
	l.number("retries", s.Retries)
	l.time("retry_wait", s.RetryWait)
	if s.Health == HealthOff {
		l.text("health", "off", "")
	} else {
		l.time("health", s.Health)
	}
}

func renderAuth(l lines, a ServerAuth) {
	l.text("mode", a.Mode, "")
	l.text("client_id", a.ClientID, "")
	l.text("client_secret", string(a.ClientSecret), "")
	l.text("private_key", a.PrivateKey, "")
	l.text("key_id", a.KeyID, "")
	l.text("issuer", a.Issuer, "")
	l.row("scopes", a.Scopes)
	if a.Shared {
		l.text("identity", "shared", "")
	}
	l.text("discovery", string(a.Discovery), "")
}

func renderLimits(l lines, m ModuleLimits) {
	l.time("timeout", m.Timeout)
	l.size("memory", m.Memory)
	l.number("fuel", m.Fuel)
	l.size("output", m.Output)
	l.size("log", m.Log)
	l.number("host_calls", m.HostCalls)
	l.number("concurrent", m.Concurrent)
	l.size("files_bytes", m.FilesBytes)
}

func renderConfine(l lines, c Confine) {
	l.column("read", c.Read)
	l.column("write", c.Write)
	l.column("execute", c.Execute)
	if len(c.Connect) > 0 {
		l.line("connect", "["+strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Connect), " ", ", "), "[]")+"]")
	}
	l.flag("dns", c.DNS, false)
	l.size("memory", c.Memory)
	l.number("processes", c.Processes)
	l.number("files", c.Files)
	l.time("cpu", c.CPU)
	l.flag("best_effort", c.BestEffort, false)
}

// lines writes the keys of one table. What is zero, or as it is without the key, is left out.
type lines struct {
	b      *bytes.Buffer
	indent string
}

// line writes a key with what is YAML already.
func (l lines) line(key, value string) {
	fmt.Fprintf(l.b, "%s%s: %s\n", l.indent, scalar(key), value)
}

func (l lines) text(key, value, usual string) {
	if value != "" && value != usual {
		l.line(key, scalar(value))
	}
}

func (l lines) flag(key string, value, usual bool) {
	if value != usual {
		l.line(key, strconv.FormatBool(value))
	}
}

func (l lines) number(key string, n int) {
	if n != 0 {
		l.line(key, strconv.Itoa(n))
	}
}

func (l lines) size(key string, n int64) {
	if n != 0 {
		l.line(key, bytesText(n))
	}
}

func (l lines) time(key string, d time.Duration) {
	if d != 0 {
		l.line(key, scalar(short(d)))
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
	fmt.Fprintf(l.b, "%s%s:\n%s", l.indent, scalar(key), inner.Bytes())
}

func (l lines) modes(key string, modes []ToolMode) {
	if len(modes) > 0 {
		l.under(key, func(l lines) {
			for _, m := range modes {
				l.text(m.Pattern, m.Mode, "")
			}
		})
	}
}

// column writes a list, a line for each.
func (l lines) column(key string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(l.b, "%s%s:\n", l.indent, scalar(key))
	}
	for _, s := range list {
		fmt.Fprintf(l.b, "%s  - %s\n", l.indent, scalar(s))
	}
}

// row writes a list in one line.
func (l lines) row(key string, list []string) {
	written := make([]string, len(list))
	for i, s := range list {
		written[i] = scalar(s)
	}
	if len(list) > 0 {
		l.line(key, "["+strings.Join(written, ", ")+"]")
	}
}

func (l lines) block(key string, values map[string]Secret) {
	if len(values) == 0 {
		return
	}
	l.under(key, func(l lines) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			l.line(k, scalar(string(values[k])))
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

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)
	wordScalar  = regexp.MustCompile(`^(?i:null|true|false|yes|no|on|off|y|n)$`)
)

// scalar returns s as a YAML scalar: as it is where nobody can read it as
// anything but text, else in the quotes of JSON, of which YAML 1.2 is a superset.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !wordScalar.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
