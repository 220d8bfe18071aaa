package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Methods that MCP does not have come and go with the servers that have them, and the SDK
// takes no request whose method was not registered before. So it is given one method that
// stands for all of them, with the real one in _meta.
const (
	methodOwn  = "wasmgate/method"
	metaMethod = "io.github.wasmgate/method"
)

// isMethod reports whether MCP does not have the method of a request.
func isMethod(method string) bool {
	return !slices.Contains(served, method) && gate.MethodAction(method).IsMethod()
}

// method returns the method of a server that a request names; nil if no server has it.
func (h *Host) method(ctx context.Context, method string) *gate.Tool {
	if h.cfg.Lookup == nil || h.cfg.Features == nil || !isMethod(method) {
		return nil
	}
	t, err := h.cfg.Lookup(ctx, gate.MethodAction(method), method)
	if err != nil || t.Feature != gate.FeatureMethod {
		return nil
	}
	return t
}

// offersMethod reports whether a client may use the method that its request names. For all
// others it does not exist.
func (h *Host) offersMethod(ctx context.Context, p peerInfo, method string) bool {
	t := h.method(ctx, method)
	if t == nil {
		return false
	}
	offered, err := h.listed(ctx, p, gate.FeatureMethod)
	return err == nil && slices.ContainsFunc(offered, func(one *gate.Tool) bool { return one.Name == t.Name })
}

// actionOf returns the action of a request by which a client uses what a server offers;
// false of any other request.
func actionOf(method string) (gate.Action, bool) {
	if isMethod(method) {
		return gate.MethodAction(method), true
	}
	return gate.Action(method), slices.Contains(acting, gate.Action(method))
}

// checkMethodParams checks the shape of the parameters of a method that MCP does not have.
func checkMethodParams(params gate.Doc) error {
	if !params.IsZero() && params.Kind() != gate.Object {
		return errors.New("params is no object")
	}
	if meta := params.Get("_meta"); !meta.IsZero() && meta.Kind() != gate.Object {
		return errors.New("_meta is no object")
	}
	return nil
}

var errNoMethod = &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}

// useMethod answers a request of a method that MCP does not have. A client without a
// session cannot be asked meanwhile: MCP has that for methods of its own alone.
func (h *Host) useMethod(ctx context.Context, p peerInfo, method string, params gate.Doc) (gate.Doc, error) {
	c := p.call(gate.MethodAction(method), method)
	c.Notify, c.Poll = p.tell, p.poll
	if err := checkMethodParams(params); err != nil {
		c.Malformed = err
	} else if !params.IsZero() {
		c.Meta, c.Args = params.Get("_meta"), mcp.Without(params, "_meta")
	}
	if !p.stateless && p.send != nil {
		c.Peer = sessionPeer{p.capabilities, ctx, p.send}
	}
	res, err := h.cfg.Do(ctx, c)
	switch {
	case err != nil && c.Malformed != nil && !h.offersMethod(ctx, p, method):
		return gate.Doc{}, errNoMethod
	case err != nil:
		return gate.Doc{}, h.unused(ctx, p, &c, err)
	case res.IsError && !res.Doc.Get("_meta").Get(mcp.MetaError).IsZero(): // and not what the server has for a result
		return gate.Doc{}, serverError(res.Doc)
	}
	return p.complete(res.Doc), nil
}

// addMethods registers with the SDK what stands for methods that MCP does not have. They
// are answered by dispatch.
func (h *Host) addMethods(s *sdk.Server) {
	err := sdk.AddReceivingCustomMethod(s, methodOwn, func(context.Context, *sdk.ServerSession, *methodRequest) (*rawResult, error) {
		return nil, errors.New("not dispatched")
	})
	if err != nil {
		panic(err) // the SDK would have to know the method
	}
}

// methodRequest are the parameters of a request of a method that MCP does not have, and
// the method in their _meta.
type methodRequest struct{ taskParams }

// method returns the method that was asked for, and its parameters as they came.
func (r *methodRequest) method() (method string, params gate.Doc) {
	meta := r.doc.Get("_meta")
	return meta.Get(metaMethod).Text(), r.doc.With("_meta", mcp.Without(meta, metaMethod).Raw())
}

// stowMethod puts the method of a request that MCP does not have where the SDK keeps it.
func stowMethod(method string, params gate.Doc) gate.Doc {
	if params.IsZero() {
		params = gate.MustDoc("{}")
	}
	meta := params.Get("_meta")
	if meta.IsZero() {
		meta = gate.MustDoc("{}")
	}
	return params.With("_meta", meta.With(metaMethod, mcp.MustJSON(method)).Raw())
}

// stowMethodHTTP is stowMethod for a request over HTTP, whose headers were checked.
func stowMethodHTTP(r *http.Request, msg gate.Doc) {
	method := msg.Get("method").Text()
	if !isMethod(method) {
		return
	}
	if r.Header.Get(mcp.HeaderMethod) != "" {
		r.Header.Set(mcp.HeaderMethod, methodOwn)
	}
	msg = msg.With("method", mcp.MustJSON(methodOwn)).With("params", stowMethod(method, msg.Get("params")).Raw())
	r.Body = io.NopCloser(bytes.NewReader(msg.Raw()))
}

// stowMethodLine is stowMethod for a request that came on a line.
func stowMethodLine(m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Request)
	if !ok || !isMethod(r.Method) {
		return nil
	}
	var params gate.Doc
	if len(r.Params) > 0 {
		var err error
		if params, err = gate.ParseDoc(r.Params); err != nil {
			return err
		}
	}
	r.Params = stowMethod(r.Method, params).Raw()
	r.Method = methodOwn
	return nil
}

// methodDiffers returns how the header that names the method of a request without a
// session differs from the message, which the SDK gets another method of.
func methodDiffers(h http.Header, method string) error {
	if isMethod(method) && !slices.Equal(h[mcp.HeaderMethod], []string{method}) {
		return fmt.Errorf("header mismatch: %s does not say once what the message says", mcp.HeaderMethod)
	}
	return nil
}

// noMethod is the error that there is no such method, in words that the SDK leaves as they
// are: in one that is equal to its own it would name the method that it was given.
type noMethod string

func (e noMethod) Error() string { return string(e) }

// As gives the SDK the code.
func (e noMethod) As(target any) bool {
	to, ok := target.(**jsonrpc.Error)
	if ok {
		*to = &jsonrpc.Error{Code: mcp.CodeMethodNotFound, Message: string(e)}
	}
	return ok
}
