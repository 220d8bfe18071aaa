package gateway

import (
	"cmp"
	"maps"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
)

// checks are how calls are checked, made of a [Config]. They are never changed: others take
// their place in one swap of the gate's parts, together with the name of the configuration.
type checks struct {
	clean   *clean.Texts
	secrets *clean.Secrets
	hide    func(name, text string) string // takes secrets out of the audit log
	inputs  map[string]*InputRules         // by server
	prompt  bool                           // whether the client's word for the prompt is taken
	name    string                         // of the configuration: its snapshot
	max     int                            // bytes of a result
}

func newChecks(c *Config, seal []byte) (*checks, error) {
	choice := c.Sanitize
	choice.Max = int(cmp.Or(c.Limits.Result, options.DefaultMaxMessage))
	texts, err := clean.NewTexts(choice)
	if err != nil {
		return nil, err
	}
	secrets, hide, err := clean.NewSecrets(c.Sanitize.Secrets, seal)
	if err != nil {
		return nil, err
	}
	return &checks{clean: texts, secrets: secrets, hide: hide, inputs: c.Inputs, prompt: c.TrustPrompt, name: c.Snapshot, max: choice.Max}, nil
}

// of returns the checks with the settings of one server.
func (c checks) of(s Server) *checks {
	c.clean, c.inputs = c.clean.With(s.Server, s.Sanitize), maps.Clone(c.inputs)
	delete(c.inputs, s.Server)
	if s.Input != nil {
		if c.inputs == nil {
			c.inputs = make(map[string]*InputRules)
		}
		c.inputs[s.Server] = s.Input
	}
	return &c
}

// in puts the checks into the parts of a gate.
func (c *checks) in(p *gate.Parts) {
	p.Sanitizer, p.ContentChecker, p.Secrets, p.Returned = c.clean, c.clean, c.secrets, c.secrets.Returned()
	p.Inputs, p.TrustPrompt, p.Snapshot, p.MaxResult = c.inputMode, c.prompt, c.name, c.max
}

// inputMode says how arguments are held against the input schema of a tool.
func (c *checks) inputMode(t *gate.Tool) gate.InputMode {
	rules := c.inputs[t.Name.Server]
	if rules == nil {
		return "coerce"
	}
	for _, r := range rules.Tools {
		if match.Pattern(r.Pattern).Matches(t.Local) {
			return r.Mode
		}
	}
	return rules.Mode
}

// checking has the checks in use, for what outlives a change of them: the lists of servers,
// and the audit log.
type checking struct{ now atomic.Pointer[checks] }

var (
	_ gate.Sanitizer      = (*checking)(nil)
	_ gate.ContentChecker = (*checking)(nil)
)

// Sanitize implements [gate.Sanitizer].
func (c *checking) Sanitize(t gate.Text) (string, []gate.Finding) {
	return c.now.Load().clean.Sanitize(t)
}

// Check implements [gate.ContentChecker].
func (c *checking) Check(of gate.Content) gate.ContentVerdict { return c.now.Load().clean.Check(of) }

func (c *checking) hide(name, text string) string { return c.now.Load().hide(name, text) }

// toolOptions says how the tools of servers in this process are offered.
func (c *checking) toolOptions() options.Tools {
	return options.Tools{Sanitizer: c}
}
