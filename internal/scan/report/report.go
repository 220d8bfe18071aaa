package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/scan"
	"github.com/wasmgate/wasmgate/sanitize"
)

// A Report is what was found in definitions of tools.
type Report struct {
	Definitions int       `json:"definitions"` // that were scanned
	Findings    []Finding `json:"findings"`
	// Faults say what could not be scanned, and why.
	Faults []string `json:"faults,omitempty"`
}

// A Finding is a finding of the scanner, with what it was found in.
type Finding struct {
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"` // its name there, or the URI of a page; empty for the server's instructions
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"` // at which the definition begins, from 1
	scan.Finding
}

// Highest returns the highest severity of the findings.
func (s *Report) Highest() (most scan.Severity) {
	for _, f := range s.Findings {
		most = max(most, f.Severity)
	}
	return most
}

// declared are definitions of one server, as it wrote them.
type declared struct {
	server, file string
	instructions gate.Doc
	tools        []gate.Doc
	lines        []int              // of tools, in the file
	pages        []gate.Doc         // of apps, as they are pinned
	allow        options.AppSources // narrows pages
}

// Look returns a function that scans one definition of a server, the page of an app, a skill, or its
// instructions, as [Servers] does.
func Look(g *gateway.Gateway) (lock.Look, error) {
	clean, err := sanitize.New(sanitize.Options{})
	if err != nil {
		return nil, err
	}
	all := declaredBy(g)
	owners, allow := ownersOf(all), make(map[string]options.AppSources)
	for _, one := range all {
		allow[one.server] = one.allow
	}
	return func(k lock.Key, d gate.Doc) []scan.Finding {
		switch k.Kind {
		case lock.Page:
			return risks(d, allow[k.Server])
		case lock.Skill:
			return skill(g, k)
		}
		scanner := owners.scanner(k.Server, clean)
		if d.Kind() == doc.String {
			return scanner.Text("", d.Text())
		}
		found, _ := scanner.Tool(d.Raw()) // a definition is an object, or has nothing to find
		return found
	}, nil
}

// declaredBy returns what the servers of a gateway have declared.
func declaredBy(g *gateway.Gateway) (all []declared) {
	for _, d := range g.Fleet().Declared() {
		one := declared{server: d.Server, instructions: d.Instructions, tools: d.Tools, pages: d.Pages}
		if d.Config != nil {
			one.allow = d.Config.Tools.Apps.Allow
		}
		all = append(all, one)
	}
	return all
}

// startedWait bounds how long a scan waits for servers that start.
const startedWait = 10 * time.Second

// Servers scans the definitions that the servers of a gateway declare, also quarantined ones. If server
// is empty, it scans all servers but the program's own.
func Servers(ctx context.Context, g *gateway.Gateway, server string) (*Report, error) {
	started, cancel := context.WithTimeout(ctx, startedWait)
	g.Fleet().Started(started)
	cancel()
	s, err := scanAll(declaredBy(g), func(d declared) bool {
		return d.server == server || server == "" && d.server != product.LocalServer
	})
	if err != nil {
		return nil, err
	}
	for _, t := range g.Fleet().Skills() {
		if t.Name.Server == server || server == "" {
			s.Definitions++
			s.add(declared{server: t.Name.Server}, t.Local, 0, findings(t.Skill))
		}
	}
	for _, one := range g.Fleet().Status() {
		if one.Phase != status.Ready && (server == "" || one.Server == server) {
			s.Faults = append(s.Faults, fmt.Sprintf("server %s: %s: %s", one.Server, one.Phase, one.Error))
		}
	}
	return s, nil
}

// URL connects to an MCP server over HTTP and scans what it declares.
func URL(ctx context.Context, target string, log *slog.Logger) (*Report, error) {
	e, err := gateway.NewEndpoint(options.Endpoint{
		Server: hostID(target), URL: target, Log: log,
		Tools: options.Tools{Sanitizer: unchanged{}},
	})
	if err != nil {
		return nil, err
	}
	if err := e.Connect(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	d := e.Declared()
	if err := e.Close(); err != nil {
		return nil, err
	}
	return scanAll([]declared{{server: d.Server, instructions: d.Instructions, tools: d.Tools}}, everyOne)
}

// unchanged leaves texts as they are: the tools are not offered to anyone.
type unchanged struct{}

// Sanitize implements [gate.Sanitizer].
func (unchanged) Sanitize(t gate.Text) (string, []gate.Finding) { return t.Text, nil }

var notID = regexp.MustCompile(`[^a-z0-9]+`)

// hostID makes the host of a URL the id of a server.
func hostID(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "server"
	}
	if id := strings.Trim(notID.ReplaceAllString(strings.ToLower(u.Hostname()), "-"), "-"); id != "" {
		return id
	}
	return "server"
}

// ErrNoListing says that bytes hold no definitions of tools.
var ErrNoListing = errors.New("expected the result of tools/list, an array of tool definitions, or one of these a line")

// Listing scans definitions that were written to a file: the result of
// tools/list, with or without the message around it, an array of definitions, or
// one of these or a definition a line. The error wraps [ErrNoListing] if there are
// none.
func Listing(file string, content []byte) (*Report, error) {
	d := declared{file: file}
	if whole, err := gate.ParseDoc(content); err == nil {
		d.add(content, 0, definitions(whole))
	} else {
		line := 0
		for text := range bytes.Lines(content) {
			if line++; len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			doc, err := gate.ParseDoc(bytes.TrimSpace(text))
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w: %w", file, line, ErrNoListing, err)
			}
			d.add(text, line-1, definitions(doc))
		}
	}
	if len(d.tools) == 0 {
		return nil, fmt.Errorf("%s: %w", file, ErrNoListing)
	}
	return scanAll([]declared{d}, everyOne)
}

func everyOne(declared) bool { return true }

// definitions returns those that a document holds.
func definitions(d gate.Doc) []gate.Doc {
	if result := d.Get("result"); result.Kind() == doc.Object {
		d = result
	}
	list := d
	if tools := d.Get("tools"); tools.Kind() == doc.Array {
		list = tools
	}
	if list.Kind() == doc.Array {
		return slices.Collect(list.Elements())
	}
	if d.Kind() == doc.Object && d.Get("name").Kind() == doc.String {
		return []gate.Doc{d}
	}
	return nil
}

// add adds definitions that are in content, which begins after some lines.
func (d *declared) add(content []byte, after int, tools []gate.Doc) {
	at := 0
	for _, t := range tools {
		if i := bytes.Index(content[at:], t.Raw()); i >= 0 {
			after += bytes.Count(content[at:at+i], []byte("\n"))
			at += i
		}
		d.tools = append(d.tools, t)
		d.lines = append(d.lines, after+1)
	}
}

// scanAll scans the definitions of the servers that are chosen. Names of all of
// them are known to it.
func scanAll(all []declared, chosen func(declared) bool) (*Report, error) {
	clean, err := sanitize.New(sanitize.Options{})
	if err != nil {
		return nil, err
	}
	owners := ownersOf(all)
	s := &Report{Findings: []Finding{}}
	for _, d := range all {
		if !chosen(d) {
			continue
		}
		scanner := owners.scanner(d.server, clean)
		if text := d.instructions.Text(); text != "" {
			s.add(d, "", 0, scanner.Text("/instructions", text))
		}
		for i, t := range d.tools {
			found, err := scanner.Tool(t.Raw())
			if err != nil {
				s.Faults = append(s.Faults, fmt.Sprintf("%s: definition %d: %v", d.server+d.file, i+1, err))
				continue
			}
			line := 0
			if d.lines != nil {
				line = d.lines[i]
			}
			s.Definitions++
			s.add(d, t.Get("name").Text(), line, found)
		}
		for _, p := range d.pages {
			s.Definitions++
			s.add(d, p.Get("uri").Text(), 0, risks(p, d.allow))
		}
	}
	return s, nil
}

// risks are the findings in a page. Its HTML is not searched: no model reads it.
func risks(page gate.Doc, allow options.AppSources) (found []scan.Finding) {
	for _, r := range apps.Risks(page, allow) {
		found = append(found, scan.Found(r.Rule, r.At, r.Excerpt))
	}
	return found
}

func (s *Report) add(d declared, tool string, line int, found []scan.Finding) {
	for _, f := range found {
		s.Findings = append(s.Findings, Finding{Server: d.server, Tool: tool, File: d.file, Line: line, Finding: f})
	}
}

// removed returns a text without what the sanitizer removes, and by which rules.
func removed(clean *sanitize.Sanitizer, text string) (string, []string) {
	out, found := clean.Sanitize(text)
	var rules []string
	for _, f := range found {
		if f.Removed {
			rules = append(rules, f.Rule)
		}
	}
	return out, rules
}

// owners are the servers that have a tool of a name.
type owners map[string][]string

func ownersOf(all []declared) owners {
	o := make(owners)
	for _, d := range all {
		if d.server == "" {
			continue
		}
		for _, t := range d.tools {
			name := t.Get("name").Text()
			for _, n := range []string{name, d.server + "__" + name} {
				if !slices.Contains(o[n], d.server) {
					o[n] = append(o[n], d.server)
				}
			}
		}
	}
	return o
}

// scanner returns what scans the definitions of a server.
func (o owners) scanner(server string, clean *sanitize.Sanitizer) *scan.Scanner {
	return scan.New(scan.Options{
		Sanitize: func(text string) (string, []string) { return removed(clean, text) },
		Owner:    func(name string) string { return o.other(server, name) },
	})
}

// other returns a server that has a tool of the name, which server has not.
func (o owners) other(server, name string) string {
	of := o[name]
	if len(of) == 0 || slices.Contains(of, server) {
		return ""
	}
	return of[0]
}

// ReadListing reads what [Listing] scans, up to a bound.
func ReadListing(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxListing+1))
	if err == nil && len(b) > maxListing {
		err = fmt.Errorf("more than %d bytes", maxListing)
	}
	return b, err
}

// maxListing bounds a file of definitions, in bytes: as much as a server may list.
const maxListing = 64 << 20
