package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// served are the methods that the host has an answer to.
var served = []string{
	"initialize", "ping", mcp.MethodDiscover, mcp.MethodListen, "tools/list", string(gate.CallTool),
	"prompts/list", string(gate.GetPrompt), "resources/list", "resources/templates/list", string(gate.ReadResource), string(gate.Complete),
	mcp.MethodSetLevel, string(gate.Subscribe), mcp.MethodUnsubscribe,
	mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel,
	"notifications/initialized", mcp.MethodCancelled, mcp.MethodProgress, mcp.MethodRootsChanged,
}

// A refusal is the answer to a message that nothing else gets to see.
type refusal struct {
	status int    // for HTTP
	body   []byte // nil if the message expects no answer
	plain  string // in place of it, where there is no message to answer
}

func (no *refusal) write(w http.ResponseWriter) {
	switch {
	case no.plain != "":
		http.Error(w, no.plain, no.status)
	case no.body != nil:
		respond.JSON(w, no.status, no.body)
	default:
		w.WriteHeader(no.status)
	}
}

func refuse(status int, id []byte, code int64, why string) *refusal {
	if id == nil {
		id = []byte("null")
	}
	return &refusal{status: status, body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, mcp.MustJSON(why))}
}

// screen reads a client's message strictly before anything else reads it, and
// refuses what is no message of MCP. A tool call that it refuses is recorded. The refusal is nil if the message may pass.
func (h *Host) screen(ctx context.Context, p peerInfo, body []byte) (gate.Doc, *refusal) {
	doc, err := gate.ParseDoc(body)
	if err != nil {
		return gate.Doc{}, h.unreadable(ctx, p, body, err)
	}
	return doc, h.judge(ctx, p, doc)
}

func (h *Host) judge(ctx context.Context, p peerInfo, doc gate.Doc) *refusal {
	id, method, params := doc.Get("id"), doc.Get("method"), doc.Get("params")
	name := method.Text()
	switch {
	case doc.Kind() == gate.Array:
		return refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: there are no batches in MCP since 2025-06-18")
	case !mcp.IsRPC(doc), method.IsZero() && id.IsZero(), !method.IsZero() && method.Kind() != gate.String:
		return refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: no message of JSON-RPC 2.0")
	case !validID(id):
		return refuse(http.StatusBadRequest, nil, mcp.CodeInvalidRequest, "invalid request: an id is a string or an integer up to 2^53")
	case method.IsZero():
		return nil // an answer
	case !h.serves(ctx, p, name, !id.IsZero()):
		return h.unserved(ctx, p, id, name, params)
	}
	used, err := checkParams(gate.Action(name), params)
	if err == nil {
		return nil
	}
	if action, acts := actionOf(name); acts {
		h.malformed(ctx, p, action, used, err)
	}
	return refuse(http.StatusBadRequest, id.Raw(), mcp.CodeInvalidParams, "invalid parameters: "+err.Error())
}

// serves reports whether there is an answer to the requests of a method, or use for its
// notifications.
func (h *Host) serves(ctx context.Context, p peerInfo, method string, request bool) bool {
	switch {
	case p.stateless && (asksToHear(method) || onlyWithSessions(method)), !h.offers(ctx, method):
		return false
	case slices.Contains(served, method):
		return true
	default:
		return request && h.offersMethod(ctx, p, method)
	}
}

// validID reports whether an id is absent, or one that comes back as it was.
func validID(id gate.Doc) bool {
	const most = 1 << 53
	switch id.Kind() {
	case gate.Absent:
		return true
	case gate.String:
		return len(id.Raw()) <= mcp.MaxID
	case gate.Number:
		n, err := strconv.ParseInt(string(id.Raw()), 10, 64)
		return err == nil && -most <= n && n <= most
	default:
		return false
	}
}

// acting are the actions by which clients use what servers offer.
var acting = []gate.Action{gate.CallTool, gate.GetPrompt, gate.ReadResource, gate.Subscribe, gate.Complete}

// checkParams checks the parameters of a use, and returns what they name. What is
// wrong with other parameters is said by who answers.
func checkParams(action gate.Action, params gate.Doc) (name string, err error) {
	switch {
	case isMethod(string(action)):
		return string(action), checkMethodParams(params)
	case action == gate.CallTool:
		return params.Get("name").Text(), checkCall(params)
	case slices.Contains(acting, action):
		return checkUse(action, params)
	case !params.IsZero() && params.Kind() != gate.Object && params.Kind() != gate.Null:
		return "", errors.New("params is no object")
	case action == "initialize":
		return "", checkInitialize(params)
	case action == mcp.MethodListen:
		if meta := params.Get("_meta"); !meta.IsZero() && meta.Kind() != gate.Object {
			return "", errors.New("_meta is no object")
		}
	}
	if _, ok := listings[string(action)]; ok {
		return "", checkCursor(params.Get("cursor"))
	}
	return "", nil
}

// checkCursor refuses every cursor, since lists have one page: it is another's, or made
// up (MCP 2025-11-25, server/utilities/pagination, "Error Handling"). An empty one is
// that of clients that always send one.
func checkCursor(cursor gate.Doc) error {
	if cursor.IsZero() || cursor.Kind() == gate.Null || cursor.Kind() == gate.String && cursor.Text() == "" {
		return nil
	}
	return errors.New("the cursor is of another list: this one has a single page")
}

// checkCall checks the shape of a tool call's parameters.
func checkCall(params gate.Doc) error {
	if params.Get("name").Kind() != gate.String {
		return errors.New("no name of a tool")
	}
	for _, name := range []string{"arguments", "_meta"} {
		if v := params.Get(name); !v.IsZero() && v.Kind() != gate.Object {
			return fmt.Errorf("%s is no object", name)
		}
	}
	return checkBrought(params)
}

// unserved answers a method that is not served. A notification has no answer.
func (h *Host) unserved(ctx context.Context, p peerInfo, id gate.Doc, method string, params gate.Doc) *refusal {
	if id.IsZero() {
		return &refusal{status: http.StatusAccepted}
	}
	status := http.StatusOK
	if p.stateless {
		status = http.StatusNotFound // MCP 2026-07-28, basic/transports
	}
	_, err := h.dispatch(ctx, p, method, params)
	var rpc *mcp.Error
	if !errors.As(err, &rpc) {
		rpc = &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	return refuse(status, id.Raw(), rpc.Code, rpc.Message)
}

// unreadable refuses what is no acceptable JSON.
func (h *Host) unreadable(ctx context.Context, p peerInfo, body []byte, why error) *refusal {
	id, method, name := glimpse(body)
	code := int64(mcp.CodeParse)
	if method != "" {
		code = mcp.CodeInvalidParams
	}
	if slices.Contains(acting, gate.Action(method)) {
		h.malformed(ctx, p, gate.Action(method), name, why)
	} else if h.method(ctx, method) != nil {
		h.malformed(ctx, p, gate.MethodAction(method), method, why)
	}
	return refuse(http.StatusBadRequest, id, code, "message refused: "+why.Error())
}

// glimpse returns what a lenient parser makes of the beginning of a message. It
// is used for nothing but the answer and the record.
func glimpse(body []byte) (id []byte, method, name string) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if t, _ := d.Token(); t != json.Delim('{') {
		return nil, "", ""
	}
	members(d, func(key string, value json.Token) (entered bool) {
		text, isText := value.(string)
		number, isNumber := value.(json.Number)
		switch {
		case key == "method":
			method = text
		case key == "id" && isText && len(text) <= mcp.MaxID:
			id = mcp.MustJSON(text)
		case key == "id" && isNumber && len(number) <= mcp.MaxID:
			id = []byte(number)
		case key == "params" && value == json.Delim('{'):
			members(d, func(key string, value json.Token) bool {
				if text, ok := value.(string); ok && (key == "name" || key == "uri") {
					name = text
				}
				return false
			})
			return true
		}
		return false
	})
	return id, method, name
}

// members gives f the members of the object that d has entered, until something
// is wrong: of arrays and objects the opening, the rest of which is passed over
// unless f has entered it.
func members(d *json.Decoder, f func(key string, value json.Token) (entered bool)) {
	for d.More() {
		key, _ := d.Token()
		value, err := d.Token()
		if err != nil {
			return
		}
		name, _ := key.(string)
		if _, ok := value.(json.Delim); !f(name, value) && ok {
			for depth := 1; depth > 0; {
				delim, err := nextDelim(d)
				if err != nil {
					return
				}
				if delim == '{' || delim == '[' {
					depth++
				} else {
					depth--
				}
			}
		}
	}
	_, _ = d.Token() // the end of the object
}

func nextDelim(d *json.Decoder) (json.Delim, error) {
	for {
		t, err := d.Token()
		if err != nil {
			return 0, err
		}
		if delim, ok := t.(json.Delim); ok {
			return delim, nil
		}
	}
}
