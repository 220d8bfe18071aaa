package telemetry

import (
	"crypto/rand"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

// spans returns the spans of a call: as the gateway received it, as it sent it on, and of
// the wait for a person. A host call is one without length.
func (c *ended) spans() []*trace.Span {
	if c.event == gate.HostCall {
		s := c.span(trace.Span_SPAN_KIND_INTERNAL, randomSpan(), c.trace.Client[:], c.began, 0)
		s.Name = string(c.action)
		c.fail(s)
		return []*trace.Span{s}
	}
	c.place()
	server := c.span(trace.Span_SPAN_KIND_SERVER, c.trace.Server[:], nonzero(c.trace.Parent), c.began, c.took)
	server.Attributes = append(server.Attributes, attributes("wasmgate.call", c.id, "wasmgate.code", c.code, "wasmgate.effect", string(c.effect), "wasmgate.policy.revision", c.revision)...)
	if c.linked.ID != [16]byte{} {
		server.Links = []*trace.Span_Link{{TraceId: c.linked.ID[:], SpanId: c.linked.Parent[:]}}
	}
	c.fail(server)
	all := []*trace.Span{server}
	began, sent := c.began, false
	for _, s := range c.steps {
		switch {
		case s.Step == step.Invoke && !sent: // it has one span, whose ID the server knows
			sent = true
			client := c.span(trace.Span_SPAN_KIND_CLIENT, c.trace.Client[:], c.trace.Server[:], began, s.Took)
			c.fail(client)
			all = append(all, client)
		case s.Step == step.Approve:
			wait := c.span(trace.Span_SPAN_KIND_INTERNAL, randomSpan(), c.trace.Server[:], began, s.Took)
			wait.Name = "approve " + wait.Name
			all = append(all, wait)
		default:
			server.Attributes = append(server.Attributes, attributes("wasmgate.step."+string(s.Step), s.Took.String())...)
		}
		began = began.Add(s.Took)
	}
	return all
}

// place gives IDs to a refused call that was not sampled.
func (c *ended) place() {
	if c.trace.ID == [16]byte{} {
		rand.Read(c.trace.ID[:]) // never fails
	}
	if c.trace.Server == [8]byte{} {
		tracing.Mint(&c.trace)
	}
}

// span returns one of the call's, by the names of the conventions.
func (c *ended) span(kind trace.Span_SpanKind, id, parent []byte, began time.Time, took time.Duration) *trace.Span {
	s := &trace.Span{
		TraceId: c.trace.ID[:], SpanId: id, ParentSpanId: parent, Kind: kind, Name: string(c.action),
		StartTimeUnixNano: uint64(began.UnixNano()), EndTimeUnixNano: uint64(began.Add(took).UnixNano()),
	}
	name := c.offered
	if kind == trace.Span_SPAN_KIND_CLIENT {
		name = c.tool
	}
	if c.tool == Other {
		name = Other
	}
	s.Attributes = attributes("mcp.method.name", string(c.action), "wasmgate.server", c.server)
	switch c.action {
	case gate.CallTool:
		s.Attributes = append(s.Attributes, attributes("gen_ai.tool.name", name, "gen_ai.operation.name", "execute_tool")...)
	case gate.GetPrompt:
		s.Attributes = append(s.Attributes, attributes("gen_ai.prompt.name", name)...)
	default:
		name = "" // a URI is no name
	}
	if name != "" {
		s.Name += " " + name
	}
	return s
}

// fail says in a span that the call failed.
func (c *ended) fail(s *trace.Span) {
	if c.code == codes.OK {
		return
	}
	s.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: c.code}
	s.Attributes = append(s.Attributes, attributes("error.type", c.code)...)
}

func randomSpan() []byte {
	id := make([]byte, 8)
	rand.Read(id) // never fails
	return id
}

func nonzero(id [8]byte) []byte {
	if id == [8]byte{} {
		return nil
	}
	return id[:]
}
