package scan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Finding is one thing in a definition that a person should look at.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	At       string   `json:"at"` // JSON Pointer into the definition
	// Excerpt is what was found with a little around it, in one line; U+XXXX stands
	// for what cannot be seen.
	Excerpt string `json:"excerpt"`
	Help    string `json:"help"`
}

// Options are what a [Scanner] cannot know itself. The zero value leaves both out.
type Options struct {
	// Sanitize returns a text without what is hidden or active in it, and the rules
	// by which something was removed, such as "unicode/tag".
	Sanitize func(text string) (clean string, rules []string)
	// Owner returns the server, other than the one whose definitions are scanned,
	// that has a tool of this name; "" if none has.
	Owner func(name string) string
}

// A Scanner looks for what attackers put into definitions. Use it from several
// goroutines.
type Scanner struct{ o Options }

// New returns a scanner.
func New(o Options) *Scanner { return &Scanner{o} }

// maxFindings bounds the findings of one definition; a hostile one can have any
// number.
const maxFindings = 64

// maxText bounds what is looked at of one definition, in bytes of text: expressions
// can take a microsecond for each.
const maxText = 128 << 10

// Tool scans the definition of a tool, an MCP tool as the server listed it. A rule
// is reported once for each text. The error says that the definition is no JSON
// object.
func (s *Scanner) Tool(definition []byte) ([]Finding, error) {
	var def map[string]any
	if err := json.Unmarshal(definition, &def); err != nil {
		return nil, fmt.Errorf("the definition is not a JSON object: %w", err)
	}
	w := walk{scanner: s}
	w.name("/name", def["name"])
	w.annotations(def)
	w.object("", def)
	return w.found, nil
}

// Text scans a text of the server itself, such as its instructions, that is found
// at a place.
func (s *Scanner) Text(at, text string) []Finding {
	w := walk{scanner: s}
	w.text(at, text)
	return w.found
}

// Found returns the finding of a rule that another package has applied, with the text that it is
// about.
func Found(rule, at, text string) Finding {
	var w walk
	w.add(rule, at, excerpt(text, 0, len(text)))
	return w.found[0]
}

// walk goes through one definition.
type walk struct {
	scanner *Scanner
	found   []Finding
	read    int  // bytes of text
	cut     bool // they were too many
}

func (w *walk) add(rule, at, excerpt string) {
	r, ok := byID[rule]
	if !ok {
		r = byID["text/other"]
	}
	if len(w.found) < maxFindings {
		w.found = append(w.found, Finding{r.ID, r.Severity, at, excerpt, r.Help})
	}
}

func (w *walk) object(at string, members map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		below := at + "/" + pointer.Escape(name)
		if !isASCII(name) || strings.ContainsFunc(name, unseen) || strings.Contains(name, " ") {
			w.name(below, name)
			w.text(below, name)
		}
		if strings.HasSuffix(at, "/properties") && strings.HasPrefix(at, "/inputSchema") {
			w.parameter(below, name)
		}
		if s, isText := members[name].(string); !isText || readable(name) || strings.HasSuffix(at, "/properties") {
			w.value(below, members[name], s)
		}
	}
}

func (w *walk) value(at string, v any, text string) {
	switch v := v.(type) {
	case string:
		w.text(at, text)
	case []any:
		for i, e := range v {
			s, _ := e.(string)
			w.value(at+"/"+strconv.Itoa(i), e, s)
		}
	case map[string]any:
		w.object(at, v)
	}
}

// name looks at a name, of a tool or a member.
func (w *walk) name(at string, v any) {
	name, _ := v.(string)
	if i := strings.IndexFunc(name, unseen); i >= 0 {
		w.add(ruleHiddenName, at, excerpt(name, i, i+1))
	}
	if mixed(name) {
		w.add(ruleMixed, at, fmt.Sprintf("%s (%+q)", Visible(name), name))
	}
}

// annotations holds what is said of the tool against its name.
func (w *walk) annotations(def map[string]any) {
	said, _ := def["annotations"].(map[string]any)
	name, _ := def["name"].(string)
	verb, _, _ := strings.Cut(snake(name), "_")
	if !slices.Contains(changes, verb) {
		return
	}
	for hint, claim := range map[string]bool{"readOnlyHint": true, "destructiveHint": false} {
		if is, ok := said[hint].(bool); ok && is == claim && (hint == "readOnlyHint" || verb == "delete" || verb == "destroy" || verb == "wipe") {
			w.add(ruleReadOnly, "/annotations/"+hint, fmt.Sprintf("%s: %t, and %s", hint, claim, Visible(name)))
		}
	}
}

// parameter looks at the name of a parameter.
func (w *walk) parameter(at, name string) {
	words := snake(name)
	switch {
	case asksFor().MatchString(words):
		w.add(ruleAsks, at, Visible(name))
	case modelOf().MatchString(words):
		w.add(ruleModel, at, Visible(name))
	case secret().MatchString(words):
		w.add(ruleSecret, at, Visible(name))
	}
}

// snake writes a name in small letters, with _ between its words.
func snake(name string) string {
	b := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			if i > 0 && lower(name[i-1]) == name[i-1] && inName(name[i-1]) && name[i-1] != '_' && name[i-1] != '-' {
				b = append(b, '_')
			}
			c = lower(c)
		case c == '-' || c == '.' || c == ' ':
			c = '_'
		}
		b = append(b, c)
	}
	return string(b)
}

// text looks at what a text says and what is hidden in it.
func (w *walk) text(at, text string) {
	if w.read += len(text); w.read > maxText {
		if !w.cut {
			w.add(RuleUnread, at, fmt.Sprintf("the definition has more than %d bytes of text", maxText))
		}
		text, w.cut = text[:max(0, len(text)-(w.read-maxText))], true
	}
	if text == "" {
		return
	}
	if sanitize := w.scanner.o.Sanitize; sanitize != nil {
		if clean, rules := sanitize(text); len(rules) > 0 {
			i := parting(text, clean)
			for _, rule := range rules {
				w.add(rule, at, excerpt(text, i, i+1))
			}
		}
	}
	if i, j, ok := encoded(text); ok {
		w.add(ruleBase64, at, excerpt(text, i, j))
	}
	f := fold(text)
	for _, p := range phrases {
		if m := p.find(f.text); m != nil {
			i, j := f.origin(m[0], m[1])
			w.add(p.ID, at, excerpt(text, i, j))
		}
	}
	if owner := w.scanner.o.Owner; owner != nil {
		for _, name := range identifiers(text) {
			if server := owner(name); server != "" {
				w.add(RuleMention, at, fmt.Sprintf("%s, a tool of %s", name, server))
			}
		}
	}
}

// parting returns where two texts part.
func parting(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return min(i, max(0, len(a)-1))
}
