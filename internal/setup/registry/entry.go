package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// An Entry is a version of a server, as server.json describes it.
type Entry struct {
	Name        string    `json:"name"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Version     string    `json:"version"`
	Packages    []Package `json:"packages"`
	Remotes     []Remote  `json:"remotes"`

	Status string `json:"-"` // active, deprecated or deleted; "" if it is not known
	Latest bool   `json:"-"` // the registry says that it is
	SHA256 string `json:"-"` // of all that the entry says
}

// A Package is something that a runner fetches and runs.
type Package struct {
	Type        string    `json:"registryType"`
	Base        string    `json:"registryBaseUrl"`
	Identifier  string    `json:"identifier"`
	Version     string    `json:"version"`
	Hint        string    `json:"runtimeHint"`
	Transport   Transport `json:"transport"`
	Runtime     []Input   `json:"runtimeArguments"`
	Arguments   []Input   `json:"packageArguments"`
	Environment []Input   `json:"environmentVariables"`
}

// A Transport is how a package is spoken with.
type Transport struct {
	Type string `json:"type"`
}

// A Remote is a server with a URL.
type Remote struct {
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []Input          `json:"headers"`
	Variables map[string]Input `json:"variables"`
}

// An Input is an argument, a variable or a header. Value may hold {NAME} of Variables; without a Value somebody
// gives it.
type Input struct {
	Type        string           `json:"type"` // of an argument: positional or named
	Name        string           `json:"name"`
	Hint        string           `json:"valueHint"`
	Description string           `json:"description"`
	Value       string           `json:"value"`
	Default     string           `json:"default"`
	Required    bool             `json:"isRequired"`
	Secret      bool             `json:"isSecret"`
	Format      string           `json:"format"`
	Choices     []string         `json:"choices"`
	Variables   map[string]Input `json:"variables"`
}

// Bounds of an entry.
const (
	maxEntry  = 1 << 20 // bytes
	maxInputs = 64      // of one list
	maxText   = 4 << 10 // bytes of a text
)

var (
	// namePattern matches what registries call a server.
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,199}/[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	// versionPattern matches a version that stands for one.
	versionPattern = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*([._+-]?[0-9A-Za-z]+)*$`)
	wildcard       = regexp.MustCompile(`(^|\.)[xX](\.|$)`)
)

// IsName reports whether a word is a name of a registry, with or without @VERSION: NAMESPACE/NAME, where the
// namespace is a domain turned round.
func IsName(word string) bool {
	name, _, _ := strings.Cut(word, "@")
	namespace, _, _ := strings.Cut(name, "/")
	return namePattern.MatchString(name) && strings.Contains(namespace, ".")
}

// exact reports whether a version stands for one.
func exact(version string) bool {
	return len(version) <= 100 && versionPattern.MatchString(version) && !wildcard.MatchString(version)
}

// answer is an entry as the API has it; a file may hold the entry alone, or a list.
type answer struct {
	Server  json.RawMessage `json:"server"`
	Servers []answer        `json:"servers"`
	Meta    struct {
		Official struct {
			Status string `json:"status"`
			Latest bool   `json:"isLatest"`
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

// parse returns the entries in a text.
func parse(data []byte) (all []*Entry, err error) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, errors.New("it is not an entry of a registry: not the JSON that its API has")
	}
	if a.Server == nil && a.Servers == nil {
		a.Server = data
	}
	for _, one := range append([]answer{a}, a.Servers...) {
		if one.Server == nil {
			continue
		}
		e := &Entry{Status: one.Meta.Official.Status, Latest: one.Meta.Official.Latest}
		var whole any
		if len(one.Server) > maxEntry {
			return nil, fmt.Errorf("an entry has more than %d bytes", maxEntry)
		}
		if json.Unmarshal(one.Server, e) != nil || json.Unmarshal(one.Server, &whole) != nil {
			return nil, errors.New("it is not an entry of a registry: a field has another type than server.json gives it")
		}
		canonical, err := json.Marshal(whole)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(canonical)
		e.SHA256 = hex.EncodeToString(sum[:])
		all = append(all, e)
	}
	return all, nil
}

// check refuses what no honest entry has.
func (e *Entry) check() error {
	if !namePattern.MatchString(e.Name) || !exact(e.Version) {
		return fmt.Errorf("the registry entry needs a name and an exact version; it has the name %q and the version %q", e.Name, e.Version)
	}
	if e.Status == "deleted" {
		return fmt.Errorf("%s %s was deleted from the registry", e.Name, e.Version)
	}
	if len(e.Packages) > maxInputs || len(e.Remotes) > maxInputs {
		return fmt.Errorf("the entry has more than %d packages or remotes", maxInputs)
	}
	for _, p := range e.Packages {
		if err := errors.Join(plain("a package", p.Type, p.Base, p.Identifier, p.Version, p.Hint), inputs(p.Runtime, p.Arguments, p.Environment)); err != nil {
			return err
		}
	}
	for _, r := range e.Remotes {
		if err := errors.Join(plain("a remote", r.Type, r.URL), inputs(r.Headers), variables(r.Variables)); err != nil {
			return err
		}
	}
	return nil
}

func inputs(lists ...[]Input) error {
	for _, list := range lists {
		if len(list) > maxInputs {
			return fmt.Errorf("the entry has a list of more than %d arguments, variables or headers", maxInputs)
		}
		for _, in := range list {
			if err := errors.Join(plain("an input", append(in.Choices, in.Type, in.Name, in.Hint, in.Value, in.Default)...), variables(in.Variables)); err != nil {
				return err
			}
		}
	}
	return nil
}

// variables refuses those that refer to others, which could go round in circles.
func variables(all map[string]Input) error {
	if len(all) > maxInputs {
		return fmt.Errorf("the entry has an input of more than %d variables", maxInputs)
	}
	for name, v := range all {
		if err := plain("a variable", append(v.Choices, name, v.Value, v.Default)...); err != nil {
			return err
		}
		if len(v.Variables) > 0 || placeholder.MatchString(v.Value) || placeholder.MatchString(v.Default) {
			return fmt.Errorf("the variable %q refers to other variables", name)
		}
	}
	return nil
}

// plain refuses texts that a screen does not show as they are.
func plain(what string, texts ...string) error {
	for _, s := range texts {
		if len(s) > maxText {
			return fmt.Errorf("%s has a text of more than %d bytes", what, maxText)
		}
		if strings.ContainsFunc(s, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || r == unicode.ReplacementChar
		}) {
			return fmt.Errorf("%s has a character that a screen hides: %+q", what, s)
		}
	}
	return nil
}
