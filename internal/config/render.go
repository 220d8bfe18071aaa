package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Render returns the servers as the `servers:` block of a wasmgate.yaml, which
// [Load] reads back as they are. Values are written with their variables, as
// [ImportMCP] returns them; pass the servers through [Extract] first. A fault
// becomes a comment above its server.
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
	line := func(key, value, usual string) {
		if value != "" && value != usual {
			fmt.Fprintf(b, "    %s: %s\n", key, scalar(value))
		}
	}
	line("command", s.Command, "")
	if len(s.Args) > 0 {
		b.WriteString("    args:\n")
		for _, a := range s.Args {
			fmt.Fprintf(b, "      - %s\n", scalar(a))
		}
	}
	block(b, "env", s.Env)
	line("cwd", s.Cwd, "")
	line("url", s.URL, "")
	line("transport", s.Transport, "auto")
	line("protocol", s.Protocol, "auto")
	block(b, "headers", s.Headers)
	renderTimes(b, s)
	if !s.Enabled {
		b.WriteString("    enabled: false\n")
	}
	if !s.Prefix {
		b.WriteString("    prefix: false\n")
	}
	line("lists", s.Lists, "")
	line("schema", s.Schema, "declared")
	line("output", s.Output, "enforce")
	line("sanitize", s.Sanitize, "")
	line("replay", s.Replay, "")
	if len(s.Methods) > 0 {
		fmt.Fprintf(b, "    methods: [%s]\n", strings.Join(s.Methods, ", "))
	}
	if len(s.Groups) > 0 {
		fmt.Fprintf(b, "    groups: [%s]\n", strings.Join(s.Groups, ", "))
	}
}

// renderTimes writes how long a server may take, and what is done when it fails.
func renderTimes(b *bytes.Buffer, s Server) {
	if s.Timeout != DefaultTimeout && s.Timeout != 0 {
		fmt.Fprintf(b, "    timeout: %s\n", scalar(short(s.Timeout)))
	}
	if len(s.Timeouts) > 0 {
		b.WriteString("    timeouts:\n")
	}
	for _, t := range s.Timeouts {
		fmt.Fprintf(b, "      %s: %s\n", scalar(t.Pattern), scalar(short(t.Timeout)))
	}
	if s.Retry != "" && s.Retry != "never" {
		fmt.Fprintf(b, "    retry: %s\n", scalar(s.Retry))
	}
	switch s.Health {
	case 0:
	case HealthOff:
		b.WriteString("    health: \"off\"\n")
	default:
		fmt.Fprintf(b, "    health: %s\n", scalar(short(s.Health)))
	}
}

func block(b *bytes.Buffer, name string, values map[string]Secret) {
	if len(values) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s:\n", name)
	for _, k := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(b, "      %s: %s\n", scalar(k), scalar(string(values[k])))
	}
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
