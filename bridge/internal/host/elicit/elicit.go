package elicit

import (
	"errors"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// Method is the request by which a client asks its person, the same in
// the middle of a call and in an answer that asks for more.
const Method = "elicitation/create"

// The choices of a person. Each explains itself fully, because not every client shows the titles
// and descriptions of a form.
const (
	chooseOnce   = "approve"
	chooseNo     = "deny"
	chooseAlways = "approve always for this tool"
	chooseThere  = "approve this destination until the session ends"
	chooseBeside = "approve this destination and those beside it until the session ends"
)

// Form is the parameters of a request to elicit a decision. Its schema is of the
// kind that all revisions with elicitation have: one string out of a list. The string is optional,
// so that accepting the form is one key; a default would be sent by programs that fill in defaults.
func Form(p gate.Pending) gate.Doc {
	choices := []string{chooseOnce, chooseNo}
	if !p.Inquiry.Set { // no tool of a set is approved for good
		choices = append(choices, chooseAlways)
	}
	if len(p.Destinations) > 0 {
		choices = append(choices, chooseThere)
	}
	if len(p.Beside) > 0 {
		choices = append(choices, chooseBeside)
	}
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"mode": "form", "message": p.Inquiry.Markup(),
		"requestedSchema": map[string]any{
			"type": "object",
			"properties": map[string]any{"decision": map[string]any{
				"type": "string", "title": "Decision", "description": "Empty: " + chooseOnce, "enum": choices,
			}},
		},
	})))
}

// Answer reads the result of a request to elicit a decision. Anything except a clear yes or a clear
// no is no answer: a client may show the form as it likes, and send what it likes.
func Answer(res gate.Doc) gate.Answer {
	switch res.Get("action").Text() {
	case "decline":
		return gate.Answer{Verdict: gate.Denied, Unfilled: true}
	case "accept":
		return choice(res.Get("content"))
	case "cancel":
		return gate.Answer{Verdict: gate.Dismissed, Unfilled: true}
	default:
		return gate.Answer{Verdict: gate.Dismissed}
	}
}

// choice reads a form that was accepted. One without a decision approves the call once.
func choice(content gate.Doc) gate.Answer {
	if content.IsZero() || content.String() == "{}" {
		return gate.Answer{Verdict: gate.Approved, Unfilled: true}
	}
	for name := range content.Members() {
		if name != "decision" {
			return gate.Answer{Verdict: gate.Dismissed}
		}
	}
	answer, ok := map[string]gate.Answer{
		chooseOnce: {Verdict: gate.Approved}, chooseAlways: {Verdict: gate.Approved, Always: true},
		chooseThere: {Verdict: gate.Approved, Destinations: true}, chooseBeside: {Verdict: gate.Approved, Destinations: true, Beside: true}, chooseNo: {Verdict: gate.Denied},
	}[content.Get("decision").Text()]
	if !ok {
		answer.Verdict = gate.Dismissed
	}
	return answer
}

// Forms reports whether a client that declares these capabilities can put a
// form to its person. One that names no mode can (MCP 2025-11-25,
// client/elicitation, "Capabilities").
func Forms(capabilities gate.Doc) bool {
	e := capabilities.Get("elicitation")
	return e.Kind() == doc.Object && (e.Get("url").IsZero() || !e.Get("form").IsZero())
}

// IsResponse checks the shape of an answer, as far as clients' libraries read it. What it was the
// answer to is not known yet.
func IsResponse(r gate.Doc) bool {
	content, meta := r.Get("content"), r.Get("_meta")
	switch {
	case !meta.IsZero() && meta.Kind() != doc.Object:
		return false
	case r.Get("roots").Kind() == doc.Array:
		return true
	case r.Get("role").Kind() == doc.String:
		return content.Kind() == doc.Object || content.Kind() == doc.Array
	default:
		return r.Get("action").Kind() == doc.String && (content.IsZero() || content.Kind() == doc.Object)
	}
}

// Pages reports whether a client that declares these capabilities can send its person to a page.
func Pages(capabilities gate.Doc) bool {
	return capabilities.At("/elicitation/url").Kind() == doc.Object
}

// Page is the parameters of a request to send a person to a page.
func Page(name, url string) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"mode": "url", "url": url, "message": "A login is needed for " + escaped.Text(name) + ". The page says for what, once you have signed in.",
	})))
}

// A LoginError is the failure of a call whose caller can log in with a browser.
type LoginError struct {
	Err error
	URL string // where
}

func (e *LoginError) Error() string { return e.Err.Error() }

func (e *LoginError) Unwrap() error { return e.Err }

// Public has the link, for clients that cannot put it to their person, and what helps a caller who
// is no person.
func (e *LoginError) Public() string {
	text := "a login is needed for this call: open " + e.URL + " in a browser, sign in there, and call again"
	if other, ok := errors.AsType[interface {
		error
		Public() string
	}](e.Err); ok {
		text += "; without a browser: " + other.Public()
	}
	return text
}

// ConnectKey is the name of the one request that asks somebody to log in.
const ConnectKey = "connect"

// ToVisit is the answer to a call of a client without a session that asks to visit a [Page].
func ToVisit(page gate.Doc, state string) gate.Doc {
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{
		"resultType":    "input_required",
		"inputRequests": map[string]any{ConnectKey: map[string]any{"method": Method, "params": page}},
		"requestState":  state,
	})))
}
