package learn

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/policy"
)

// A Label is a drafted label as the labels file has it.
type Label struct {
	Result  provenance.ResultKind   `json:"result"`
	Private bool                    `json:"private"`
	Effect  []provenance.ToolEffect `json:"effect"`
	Control []string                `json:"control,omitempty"`
	Content []string                `json:"content,omitempty"`
	To      []string                `json:"to,omitzero"`
	Commits []string                `json:"commits,omitempty"`
	Takes   map[string]string       `json:"takes,omitempty"`

	IDs      map[provenance.Place]string `json:"ids,omitempty"`
	Identity []provenance.Place          `json:"identity,omitempty"`
	Names    []provenance.Place          `json:"names,omitempty"`
}

// NewLabel returns a label as the file has it.
func NewLabel(l policy.Label) Label {
	return Label{l.Result, l.Private, l.Effects, l.Control, l.Content, l.To, l.Commits, l.Takes, l.IDs, l.Identity, l.Names}
}

// YAML writes the label as one line of a labels file.
func (d Label) YAML() string {
	parts := []string{"result: " + string(d.Result)}
	if d.Private {
		parts = append(parts, "private: true")
	}
	var effects []string
	for _, e := range d.Effect {
		effects = append(effects, string(e))
	}
	parts = append(parts, "effect: "+yamlList(effects))
	if d.Control != nil {
		parts = append(parts, "control: "+yamlList(d.Control))
	}
	parts = append(parts, d.arguments("to", d.To)...)
	parts = append(parts, d.arguments("commits", d.Commits)...)
	if d.Content != nil {
		parts = append(parts, "content: "+yamlList(d.Content))
	}
	if d.IDs != nil {
		var each []string
		for _, p := range slices.Sorted(maps.Keys(d.IDs)) {
			each = append(each, yamlWord(string(p))+": "+d.IDs[p])
		}
		parts = append(parts, "ids: {"+strings.Join(each, ", ")+"}")
	}
	if d.Identity != nil {
		parts = append(parts, "identity: "+yamlList(d.Identity))
	}
	if d.Names != nil {
		parts = append(parts, "names: "+yamlList(d.Names))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// arguments writes arguments under a key: as a list, or with the kinds of ids that some
// of them take.
func (d Label) arguments(key string, pointers []string) []string {
	if pointers == nil {
		return nil
	}
	if !slices.ContainsFunc(pointers, func(p string) bool { return d.Takes[p] != "" }) {
		return []string{key + ": " + yamlList(pointers)}
	}
	var each []string
	for _, p := range pointers {
		each = append(each, yamlWord(p)+": "+d.Takes[p])
	}
	return []string{key + ": {" + strings.Join(each, ", ") + "}"}
}

var (
	plainYAML = regexp.MustCompile(`^[a-z/][A-Za-z0-9_/-]*$`)
	// noString are plain words that YAML reads as something else than text.
	noString = regexp.MustCompile(`(?i)^(null|true|false|yes|no|on|off|y|n)$`)
)

func yamlWord(w string) string {
	if plainYAML.MatchString(w) && !noString.MatchString(w) {
		return w
	}
	b, _ := json.Marshal(w) // a JSON string is one of YAML, too
	return string(b)
}

func yamlList[S ~string](words []S) string {
	var list []string
	for _, w := range words {
		list = append(list, yamlWord(string(w)))
	}
	return "[" + strings.Join(list, ", ") + "]"
}
