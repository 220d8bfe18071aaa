package console

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy/study"
)

// policyNow reads the policy as its files are now.
func (c *Console) policyNow(ctx context.Context) (gateway.Policy, error) {
	cfg := *c.app.Settings.Config()
	cfg.Policy = c.app.Policies.Files()
	p, _, err := policyfiles.Read(ctx, &cfg, slog.New(slog.DiscardHandler)) // the gateway logs what is wrong with bundles
	return p, err
}

// explainer says why calls are decided as they are, by the policy as its files are now.
func (c *Console) explainer(ctx context.Context) (replay.Explainer, error) {
	p, err := c.policyNow(ctx)
	return replay.Explainer{
		Log: c.app.AuditPath(), Policy: p, Groups: len(c.app.Settings.Config().AllGroups()) > 0,
		Tools: func(ctx context.Context) ([]inventory.Tool, error) { return c.app.Inventory.Tools(ctx, "", true) },
	}, err
}

// ended returns the most informative record of a call: its outcome, or that it was granted.
func (c *Console) ended(r *http.Request) (audit.Entry, error) {
	all, err := c.call(r)
	if err != nil {
		return audit.Entry{}, err
	}
	return mainOf(r.PathValue("id"), all), nil
}

// mainOf returns the most informative of the records of a call.
func mainOf(id string, all []audit.Entry) audit.Entry {
	main := all[0]
	for _, e := range all {
		if e.ID == id && (e.Event == gate.Done || e.Event == gate.Granted && main.Event != gate.Done) {
			main = e
		}
	}
	return main
}

// explained is a record, and why it was decided so.
func (c *Console) explained(r *http.Request) (audit.Entry, *study.Explanation, error) {
	e, err := c.ended(r)
	if err != nil || !replay.Decided(e) {
		return e, nil, err
	}
	x, err := c.explainer(r.Context())
	if err != nil {
		return e, nil, err
	}
	why, err := x.Explain(r.Context(), e)
	return e, why, err
}

func (c *Console) getExplanation(w http.ResponseWriter, r *http.Request) error {
	e, why, err := c.explained(r)
	return answer(w, map[string]any{"id": e.ID, "code": e.Code, "effect": e.Effect, "reasons": e.Reasons, "policy_revision": e.PolicyRevision, "explanation": why}, err)
}

func (c *Console) explanationPage(w http.ResponseWriter, r *http.Request) error {
	e, why, err := c.explained(r)
	if err != nil {
		return err
	}
	return c.show(w, r, "explanation", "Why it was decided so", map[string]any{"Call": e, "Why": why})
}

// arguments returns the record of a call with its arguments and its result, if they are kept.
func (c *Console) arguments(r *http.Request) (audit.Entry, error) {
	e, err := c.ended(r)
	if err != nil {
		return e, err
	}
	wanted := map[string]bool{e.ArgsSHA256: true, e.ResultSHA256: true}
	delete(wanted, "")
	kept, err := c.app.Documents(wanted, 0)
	if len(e.Arguments) == 0 {
		e.Arguments = kept[e.ArgsSHA256]
	}
	if len(e.Result) == 0 {
		e.Result = kept[e.ResultSHA256]
	}
	if err == nil && len(e.Arguments)+len(e.Result) == 0 {
		err = &missing{"arguments of call " + e.ID + " that are kept: the key audit.arguments says of which tools they are, and for how long"}
	}
	return e, err
}

func (c *Console) getArguments(w http.ResponseWriter, r *http.Request) error {
	e, err := c.arguments(r)
	if err != nil {
		return err
	}
	one := map[string]any{"id": e.ID}
	for key, doc := range map[string][]byte{"arguments": e.Arguments, "result": e.Result} {
		if len(doc) > 0 {
			one[key] = json.RawMessage(doc)
		}
	}
	return answer(w, one, nil)
}

func (c *Console) argumentsPage(w http.ResponseWriter, r *http.Request) error {
	e, err := c.arguments(r)
	if err != nil {
		return err
	}
	return c.show(w, r, "arguments", "Arguments and result", map[string]any{"Call": e, "Test": replay.Test(e)})
}

// try returns the policy's decision on a hypothetical call.
func (c *Console) try(ctx context.Context, t replay.Trial) (*replay.Tried, error) {
	who, err := c.app.Principal(t.Principal)
	if err != nil {
		return nil, err
	}
	x, err := c.explainer(ctx)
	if err != nil {
		return nil, err
	}
	return x.Try(ctx, who, t)
}

func (c *Console) postTrial(w http.ResponseWriter, r *http.Request) error {
	var t replay.Trial
	if err := read(r, &t); err != nil {
		return err
	}
	tried, err := c.try(r.Context(), t)
	return answer(w, tried, err)
}

// trial reads the form of a trial; a page of a call sends the same.
func trial(r *http.Request) replay.Trial {
	labels := strings.FieldsFunc(r.FormValue("labels"), func(r rune) bool { return r == ',' || r == ' ' })
	return replay.Trial{Tool: strings.TrimSpace(r.FormValue("tool")), Arguments: []byte(r.PostFormValue("arguments")), Principal: strings.TrimSpace(r.FormValue("principal")), Labels: labels}
}

func (c *Console) trialPage(w http.ResponseWriter, r *http.Request) error {
	return c.showTrial(w, r, trial(r), nil)
}

func (c *Console) tryPage(w http.ResponseWriter, r *http.Request) error {
	t := trial(r)
	tried, err := c.try(r.Context(), t)
	if err != nil {
		return err
	}
	return c.showTrial(w, r, t, tried)
}

func (c *Console) showTrial(w http.ResponseWriter, r *http.Request, t replay.Trial, tried *replay.Tried) error {
	tools, err := c.app.Inventory.Tools(r.Context(), "", true)
	if err != nil {
		return err
	}
	coerced := false
	if tried != nil {
		var sent bytes.Buffer
		coerced = json.Compact(&sent, t.Arguments) == nil && sent.Len() > 0 && !bytes.Equal(sent.Bytes(), tried.Arguments)
	}
	return c.show(w, r, "trial", "Try a call", map[string]any{"Trial": t, "Labels": strings.Join(t.Labels, ", "), "Tools": tools, "Tried": tried, "Coerced": coerced})
}
