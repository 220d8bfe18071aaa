package gate

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/internal/peer"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/forms"
)

// maxPeerRequests is how often a call may ask its client: a person has long stopped answering. One
// more is refused and recorded, and those after it are refused without a record, so that a server
// cannot fill the audit log.
const maxPeerRequests = 100

// Request asks the client of the permitted call something on behalf of its server, and returns the
// client's result, an object. It is decided for the principal and the session of the call, with the
// server and the request as the policy's input; every string of params goes the way of the strings
// of results; it is recorded before the client sees it, and once more when it has answered. The
// error is a [*Refusal], whose Reason the server may see, the client's own, or wraps ctx.Err(). If
// the policy would ask a person, the request is refused, and so is a decision with an obligation
// that the call is not under already. The answer has the shape that MCP gives it, and goes to the
// server as arguments do, without secrets, unless the request is one for a secret that was allowed:
// see [forms.AsksSecret]. After the call every request is refused. Request may be called
// concurrently.
func (p Permit) Request(ctx context.Context, method Action, params Doc) (Doc, error) {
	n, err := p.peerWay(method, params)
	if err != nil {
		return Doc{}, err
	}
	ctx, cancel := p.of.asking.during(ctx)
	defer cancel()
	answer, err := n.consult(ctx)
	if err == nil && !forms.AsksSecret(method, n.rec.Call.Args) { // not even the digest of a PIN is kept
		n.rec.Result = answer
	}
	if err := n.end(ctx, peerOutcome(err), err); err != nil {
		return Doc{}, err
	}
	return answer, nil
}

// peerOutcome is the code of what came of a request: an error that a client answers
// with is its own, as that of a tool.
func peerOutcome(err error) string {
	if code := Code(err); code != codes.Protocol {
		return code
	}
	return codes.ToolError
}

// peerWay returns the way of a request of a server, or why it has none.
func (p Permit) peerWay(method Action, params Doc) (*nested, error) {
	refuse := func(s step.Step, reason string) (*nested, error) {
		return nil, &Refusal{Step: s, Name: string(method), Reason: reason}
	}
	switch {
	case p.of == nil || p.of.over.Load():
		return refuse(step.Authorize, "the server may ask the client only while it answers a call, and no call is in progress")
	case p.of.asking == nil:
		return refuse(step.Authorize, "the client cannot be asked")
	case p.of.asking.times.Add(1) > maxPeerRequests+1:
		return refuse(step.Limit, tooOften)
	}
	if params.IsZero() {
		params = emptyObject
	}
	return p.of.nested(Done, method, params), nil
}

const tooOften = "the server has asked the client too often in this call"

// propose takes a request of a server up to the point where the client is asked.
func (n *nested) propose(ctx context.Context) (err error) {
	defer n.caught(ctx, &err)

	c, of := n.rec.Call, n.by
	if of.asking.times.Load() > maxPeerRequests {
		n.next(step.Limit)
		return n.fail(ctx, tooOften, nil)
	}
	if len(c.Args.Raw()) > peer.MaxBytes(c.Action) {
		return n.fail(ctx, fmt.Sprintf("the request is larger than %d bytes", peer.MaxBytes(c.Action)), nil)
	}
	if err := peer.CheckRequest(c.Action, c.Args); err != nil {
		return n.fail(ctx, err.Error(), nil)
	}
	n.next(step.Authorize)
	if lacks := peer.Lacks(of.call.Reach().Capabilities, c.Action, c.Args); lacks != "" {
		return n.fail(ctx, "the client has not declared that it can be asked for "+lacks, nil)
	}

	n.next(step.Sanitize)
	if err := n.cleanRequest(ctx); err != nil {
		return err
	}

	n.next(step.Authorize)
	return n.settle(ctx)
}

// cleanRequest sanitizes the parameters before the client sees them. The policy then decides on
// what the client would see.
func (n *nested) cleanRequest(ctx context.Context) error {
	c := n.rec.Call
	s := n.scrub(n.by.tool, n.by.duty.profile)
	doc, err := contents{n.ContentChecker, c, n.by.duty.profile, s}.check(c.Args)
	if err != nil {
		return n.fail(ctx, "the request cannot be sanitized", err)
	}
	doc, err = s.result(c.Action, doc)
	switch {
	case err != nil:
		return n.fail(ctx, "the request cannot be sanitized", err)
	case s.refused():
		return n.fail(ctx, "the request holds a secret", nil)
	case c.Action == actions.Elicit && doc.Get("url").Text() != c.Args.Get("url").Text():
		return n.fail(ctx, "the URL has characters that cannot be shown safely", nil)
	}
	n.rec.Findings = append(n.rec.Findings, s.found...)
	c.Args = doc
	return nil
}

// consult puts a request to the client, and returns its answer as the server may have
// it.
func (n *nested) consult(ctx context.Context) (answer Doc, err error) {
	defer n.caught(ctx, &err)

	if err := n.propose(ctx); err != nil {
		return Doc{}, err
	}
	if err := n.recordGranted(ctx); err != nil {
		return Doc{}, err
	}
	n.next(step.Invoke)
	answer, err = n.reach(ctx)
	if err != nil {
		return Doc{}, n.refusedByClient(ctx, err)
	}
	return n.checkReply(ctx, answer)
}

// refusedByClient returns the error of a client as its server may read it: without
// secrets, as all that goes to a server.
func (n *nested) refusedByClient(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", n.rec.Call.Action, ctx.Err())
	}
	text, _ := ParseDoc(doc.AppendString(nil, err.Error()))
	n.next(step.Sanitize)
	if _, found, serr := n.guard(n.by.tool).without(inAnswer, text); serr != nil || secretKinds(found) != "" {
		return n.fail(ctx, "the client's refusal holds a secret", serr)
	}
	return err
}

// checkReply holds the answer of a client to the shape that it has in MCP, and takes
// secrets out of it.
func (n *nested) checkReply(ctx context.Context, answer Doc) (Doc, error) {
	c := n.rec.Call
	n.next(step.ValidateOutput)
	if len(answer.Raw()) > peer.MaxBytes(c.Action) {
		return Doc{}, n.fail(ctx, fmt.Sprintf("the client's answer is larger than %d bytes", peer.MaxBytes(c.Action)), nil)
	}
	if c.Action == actions.ListRoots {
		answer = peer.OnlyFiles(answer)
	}
	if err := peer.CheckAnswer(c.Action, answer); err != nil {
		return Doc{}, n.fail(ctx, "the client's answer is malformed: "+err.Error(), nil)
	}
	n.next(step.Sanitize)
	if err := n.alive(ctx); err != nil {
		return Doc{}, err
	}
	if forms.AsksSecret(c.Action, c.Args) { // that it holds one was allowed
		return answer, nil
	}
	g := n.guard(n.by.tool)
	clean, found, err := g.without(inAnswer, answer)
	if err != nil {
		return Doc{}, n.fail(ctx, "the client's answer cannot be searched for secrets", err)
	}
	redacts := g.arguments.redacts()
	for _, f := range found {
		f.Removed = f.Removed && redacts
		n.found(f)
	}
	if kinds := secretKinds(found); kinds != "" && !redacts { // no one can be asked in the middle of a call
		return Doc{}, n.fail(ctx, "the client's answer holds a secret ("+kinds+")", nil)
	}
	if redacts {
		return clean, nil
	}
	return answer, nil
}
