package apps

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A directive is a member of "csp" that lists sources.
type directive struct {
	name    string
	risk    string
	allowed func(options.AppSources) []string
}

var directives = []directive{
	{"connectDomains", RiskConnect, func(a options.AppSources) []string { return a.Connect }},
	{"resourceDomains", RiskResources, func(a options.AppSources) []string { return a.Resources }},
	{"frameDomains", RiskFrames, func(a options.AppSources) []string { return a.Frames }},
	{"baseUriDomains", RiskBase, func(a options.AppSources) []string { return a.Base }},
}

// Permissions are those that a page can ask for.
var Permissions = []string{"camera", "microphone", "geolocation", "clipboardWrite"}

// A Cut is a part of what a server says of a page that hosts do not get to know.
type Cut struct {
	At       string // its JSON Pointer in what the server says
	Why      string
	Narrowed bool // the configuration does not allow it, and nothing else is wrong with it
}

// Rule names the finding for what is cut.
func (c Cut) Rule() string {
	if c.Narrowed {
		return RiskNarrowed
	}
	return RiskCut
}

// String says what is cut, and why.
func (c Cut) String() string {
	return strings.ReplaceAll(strings.TrimPrefix(c.At, "/"), "/", ".") + ": " + c.Why
}

// Settings are what a host gets to know of a page, the member "ui" of its _meta: of what the
// server says, the plain sources, the known permissions, the domain and the border, as far as
// they are allowed. left names everything else.
func Settings(ui doc.Doc, allow options.AppSources) (settings doc.Doc, left []Cut) {
	var out struct {
		CSP         map[string][]string `json:"csp,omitempty"`
		Domain      string              `json:"domain,omitempty"`
		Permissions map[string]struct{} `json:"permissions,omitempty"`
		Border      *bool               `json:"prefersBorder,omitempty"`
	}
	leave := func(why string, at ...string) {
		for i := range at {
			at[i] = pointer.Escape(fmt.Sprintf("%.40s", at[i]))
		}
		left = append(left, Cut{At: "/" + strings.Join(at, "/"), Why: why})
	}
	for _, name := range []string{"csp", "permissions"} {
		if d := ui.Get(name); !d.IsZero() && d.Kind() != doc.Object {
			leave("no object", name)
		}
	}
	for name, list := range ui.Get("csp").Members() {
		i := slices.IndexFunc(directives, func(d directive) bool { return d.name == name })
		if i < 0 || list.Kind() != doc.Array {
			leave("no list of sources", "csp", name)
			continue
		}
		kept, refused := sources("/csp/"+name, list, directives[i].allowed(allow))
		left = append(left, refused...)
		if kept != nil {
			if out.CSP == nil {
				out.CSP = make(map[string][]string)
			}
			out.CSP[name] = kept
		}
	}
	for name := range ui.Get("permissions").Members() {
		switch {
		case !slices.Contains(Permissions, name):
			leave("unknown", "permissions", name)
		case allow.Permissions != nil && !slices.Contains(allow.Permissions, name):
			left = append(left, Cut{"/permissions/" + name, notAllowed, true})
		default:
			if out.Permissions == nil {
				out.Permissions = make(map[string]struct{})
			}
			out.Permissions[name] = struct{}{}
		}
	}
	switch domain := ui.Get("domain"); {
	case domain.IsZero():
	case !host.MatchString(domain.Text()):
		leave("no name of a host", "domain")
	case !allow.Domain:
		left = append(left, Cut{"/domain", notAllowed, true})
	default:
		out.Domain = domain.Text()
	}
	if border := ui.Get("prefersBorder"); border.Kind() == doc.Bool {
		yes := border.True()
		out.Border = &yes
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // strings and booleans have a form in JSON
	}
	return doc.Must(string(b)), left
}

// maxSources bounds those of one directive.
const maxSources = 64

const notAllowed = "not allowed by the configuration"

// sources returns the plain sources of the list at a place that are allowed; allowed nil allows
// all.
func sources(at string, list doc.Doc, allowed []string) (kept []string, refused []Cut) {
	i := -1
	for one := range list.Elements() {
		if i++; i == maxSources {
			return kept, append(refused, Cut{At: at, Why: fmt.Sprintf("more than %d sources", maxSources)})
		}
		its := at + "/" + strconv.Itoa(i)
		s, err := ParseSource(one.Text())
		if err != nil {
			refused = append(refused, Cut{At: its, Why: err.Error()})
			continue
		}
		narrowed := []string{s}
		if allowed != nil {
			narrowed = intersect(s, allowed)
		}
		if len(narrowed) == 0 {
			refused = append(refused, Cut{its, s + " is " + notAllowed, true})
		}
		for _, s := range narrowed {
			if !slices.Contains(kept, s) {
				kept = append(kept, s)
			}
		}
	}
	return kept, refused
}

const label = `[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?`

var (
	source = regexp.MustCompile(`^(https?|wss?)://((?:\*\.` + label + `\.)?` + label + `(?:\.` + label + `)*)(?::([0-9]{1,5}))?/?$`)
	host   = regexp.MustCompile(`^` + label + `(?:\.` + label + `)*$`)
)

// ParseSource returns a source of a content security policy as SCHEME://HOST[:PORT]. The host
// may begin with one "*." before at least two labels. http and ws lead to this machine only. A name
// in Punycode is refused, because a person who approves it cannot read it.
func ParseSource(s string) (string, error) {
	lower := strings.ToLower(s)
	m := source.FindStringSubmatch(lower)
	no := func(why string) (string, error) { return "", fmt.Errorf("%.80q is refused: %s", s, why) }
	if m == nil {
		return no("it is not SCHEME://HOST[:PORT]")
	}
	scheme, name, port := m[1], m[2], m[3]
	if n, _ := strconv.Atoi(port); port != "" && (n < 1 || n > 65535) {
		return no("there is no such port")
	}
	if strings.Contains("."+name, ".xn--") {
		return no("its name is in Punycode")
	}
	if (scheme == "http" || scheme == "ws") && name != "localhost" && name != "127.0.0.1" {
		return no(scheme + " leads to this machine only")
	}
	return strings.TrimSuffix(lower, "/"), nil
}

// intersect returns what a source and a list of them both cover.
func intersect(s string, allowed []string) (both []string) {
	for _, a := range allowed {
		switch {
		case covers(a, s):
			return []string{s}
		case covers(s, a):
			both = append(both, a)
		}
	}
	return both
}

// covers reports whether every origin of one source is one of a wider source. Both are as
// [ParseSource] returns them.
func covers(wide, s string) bool {
	if wide == s {
		return true
	}
	scheme, name, ok := strings.Cut(wide, "://*.")
	sScheme, sName, _ := strings.Cut(s, "://")
	return ok && scheme == sScheme && strings.HasSuffix(sName, "."+name)
}
