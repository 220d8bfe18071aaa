package message

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/questions"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// This file describes the shape of MCP messages, independent of their sender and of what is
// offered: nothing here knows a host.

// Served are the methods that the host has an answer to.
var Served = []string{
	"initialize", "ping", mcp.MethodDiscover, mcp.MethodListen, "tools/list", string(gate.CallTool),
	"prompts/list", string(gate.GetPrompt), "resources/list", "resources/templates/list", string(gate.ReadResource), string(gate.Complete),
	mcp.MethodSkills, string(gate.GetSkill), string(gate.ReadDirectory),
	mcp.MethodSetLevel, string(gate.Subscribe), mcp.MethodUnsubscribe,
	mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel,
	"notifications/initialized", mcp.MethodCancelled, mcp.MethodProgress, mcp.MethodRootsChanged,
}

// Acting are the actions by which clients use what servers offer.
var Acting = []gate.Action{gate.CallTool, gate.GetPrompt, gate.ReadResource, gate.Subscribe, gate.Complete, gate.GetSkill, gate.ReadDirectory}

// IsMethod reports whether MCP does not have the method of a request.
func IsMethod(method string) bool {
	return !slices.Contains(Served, method) && actions.IsMethod(actions.OfMethod(method))
}

// ActionOf returns the action of a request by which a client uses what a server offers;
// false of any other request.
func ActionOf(method string) (gate.Action, bool) {
	if IsMethod(method) {
		return actions.OfMethod(method), true
	}
	return gate.Action(method), slices.Contains(Acting, gate.Action(method))
}

// ValidID reports whether an id is absent, or one that comes back as it was.
func ValidID(id gate.Doc) bool {
	switch id.Kind() {
	case doc.Absent:
		return true
	case doc.String:
		return len(id.Raw()) <= mcp.MaxID
	case doc.Number:
		_, err := strconv.ParseInt(string(id.Raw()), 10, 64)
		return err == nil
	default:
		return false
	}
}

// CheckParams checks the parameters of a use, and returns what they name. Other parameters are
// checked by whatever answers the request.
func CheckParams(action gate.Action, params gate.Doc) (name string, err error) {
	switch {
	case IsMethod(string(action)):
		return string(action), CheckMethodParams(params)
	case action == gate.CallTool:
		return params.Get("name").Text(), checkCall(params)
	case slices.Contains(Acting, action):
		return CheckUse(action, params)
	case !params.IsZero() && params.Kind() != doc.Object && params.Kind() != doc.Null:
		return "", errors.New("params is not an object")
	case action == "initialize":
		return "", checkInitialize(params)
	case action == mcp.MethodListen:
		if meta := params.Get("_meta"); !meta.IsZero() && meta.Kind() != doc.Object {
			return "", errors.New("_meta is not an object")
		}
	}
	if _, ok := Listings[string(action)]; ok {
		return "", checkCursor(params.Get("cursor"))
	}
	return "", nil
}

// Object returns a member of parameters that was checked to be an object; null is none.
func Object(params gate.Doc, member string) gate.Doc {
	if v := params.Get(member); v.Kind() == doc.Object {
		return v
	}
	return gate.Doc{}
}

// checkCursor refuses every cursor, since lists have one page: it is another's, or made
// up (MCP 2025-11-25, server/utilities/pagination, "Error Handling"). An empty one is
// that of clients that always send one.
func checkCursor(cursor gate.Doc) error {
	if cursor.IsZero() || cursor.Kind() == doc.Null || cursor.Kind() == doc.String && cursor.Text() == "" {
		return nil
	}
	return errors.New("the cursor does not belong to this list, which has only one page")
}

// checkCall checks the shape of a tool call's parameters.
func checkCall(params gate.Doc) error {
	if params.Get("name").Kind() != doc.String {
		return errors.New("the name of the tool is missing")
	}
	for _, name := range []string{"arguments", "_meta"} {
		if v := params.Get(name); !v.IsZero() && v.Kind() != doc.Null && v.Kind() != doc.Object {
			return fmt.Errorf("%s is not an object", name)
		}
	}
	return checkInputResponses(params)
}

// CheckUse checks the shape of the parameters of a use of a prompt or a resource,
// and returns what they name.
func CheckUse(action gate.Action, params gate.Doc) (name string, err error) {
	objects := []string{"_meta"}
	switch action {
	case gate.GetPrompt:
		name, err = textOf(params, "/name")
		objects = append(objects, "arguments")
	case gate.ReadResource, gate.Subscribe, gate.GetSkill, gate.ReadDirectory:
		name, err = textOf(params, "/uri")
	case gate.Complete:
		objects = append(objects, "argument", "context")
		switch params.At("/ref/type").Text() {
		case "ref/prompt":
			name, err = textOf(params, "/ref/name")
		case "ref/resource":
			name, err = textOf(params, "/ref/uri")
		default:
			err = errors.New("/ref/type is neither ref/prompt nor ref/resource")
		}
	}
	if err != nil {
		return name, err
	}
	for _, member := range objects {
		if v := params.Get(member); !v.IsZero() && v.Kind() != doc.Null && v.Kind() != doc.Object {
			return name, fmt.Errorf("%s is not an object", member)
		}
	}
	if isURI := mcp.URIScheme.MatchString(name); params.At("/ref/type").Text() == "ref/prompt" && isURI {
		return name, errors.New("/ref/name is a URI")
	}
	return name, checkInputResponses(params)
}

func textOf(params gate.Doc, pointer string) (string, error) {
	v := params.At(pointer)
	if v.Kind() != doc.String {
		return "", fmt.Errorf("%s is not a string", pointer)
	}
	return v.Text(), nil
}

// checkInputResponses checks the shape of what a client brings with a call that it was
// asked to make again.
func checkInputResponses(params gate.Doc) error {
	if state := params.Get("requestState"); !state.IsZero() && (state.Kind() != doc.String || len(state.Text()) > sealed.Max) {
		return fmt.Errorf("requestState is not a string of at most %d bytes", sealed.Max)
	}
	responses := params.Get("inputResponses")
	if !responses.IsZero() && responses.Kind() != doc.Object {
		return errors.New("inputResponses is not an object")
	}
	n := 0
	for _, r := range responses.Members() {
		if n++; n > questions.Max {
			return fmt.Errorf("inputResponses has more than %d members", questions.Max)
		}
		if !elicit.IsResponse(r) {
			return errors.New("inputResponses has a member that is not a result of elicitation/create, sampling/createMessage or roots/list")
		}
	}
	return nil
}

// CheckMethodParams checks the shape of the parameters of a method that MCP does not have.
func CheckMethodParams(params gate.Doc) error {
	if !params.IsZero() && params.Kind() != doc.Object {
		return errors.New("params is not an object")
	}
	if meta := params.Get("_meta"); !meta.IsZero() && meta.Kind() != doc.Object {
		return errors.New("_meta is not an object")
	}
	return nil
}

// CheckMeta checks what a request without a session has to say of its client (MCP
// 2026-07-28, basic, "_meta").
func CheckMeta(params gate.Doc) error {
	meta := params.Get("_meta")
	revision := meta.Get(mcp.MetaProtocol).Text()
	if revision < mcp.Stateless {
		return nil
	}
	if client := meta.Get(mcp.MetaClient); !client.IsZero() && checkClient(client) != nil {
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("invalid _meta field %q", mcp.MetaClient)}
	}
	if !objects(meta.Get(mcp.MetaCapabilities)) {
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaCapabilities)}
	}
	if !slices.Contains(Revisions, revision) {
		return Unsupported("unsupported protocol version", Revisions, revision)
	}
	return nil
}

// checkClient checks what a client says that it is.
func checkClient(client gate.Doc) error {
	if client.Kind() != doc.Object {
		return errors.New("clientInfo is not an object")
	}
	for _, name := range []string{"name", "version"} {
		if v := client.Get(name); !v.IsZero() && v.Kind() != doc.String {
			return fmt.Errorf("%s in clientInfo is not a string", name)
		}
	}
	return nil
}

// checkInitialize checks the parameters of initialize.
func checkInitialize(params gate.Doc) error {
	if v := params.Get("protocolVersion"); !v.IsZero() && v.Kind() != doc.String {
		return errors.New("protocolVersion is not a string")
	}
	if c := params.Get("capabilities"); !c.IsZero() && c.Kind() != doc.Object {
		return errors.New("capabilities is not an object")
	}
	if client := params.Get("clientInfo"); !client.IsZero() {
		return checkClient(client)
	}
	return nil
}

// objects reports whether d is an object of objects, as capabilities are.
func objects(d gate.Doc) bool {
	for _, v := range d.Members() {
		if v.Kind() != doc.Object {
			return false
		}
	}
	return d.Kind() == doc.Object
}

// Listings are the methods that list, by what they list and the member of the result
// that has it.
var Listings = map[string]struct {
	Feature gate.Feature
	Member  string
}{
	"tools/list":               {gate.FeatureTool, "tools"},
	"prompts/list":             {gate.FeaturePrompt, "prompts"},
	"resources/list":           {gate.FeatureResource, "resources"},
	"resources/templates/list": {gate.FeatureTemplate, "resourceTemplates"},
	mcp.MethodSkills:           {gate.FeatureSkill, "skills"},
}

// DeclaresTasks reports whether the client of a request says in its _meta that it can be
// answered with a task.
func DeclaresTasks(meta gate.Doc) bool {
	return meta.Get(mcp.MetaCapabilities).Get("extensions").Get(mcp.ExtensionTasks).Kind() == doc.Object
}

// OnlyWithSessions reports whether a request about tasks is one that clients without a session do
// not have.
func OnlyWithSessions(method string) bool {
	return method == mcp.MethodTaskResult || method == mcp.MethodTaskList
}

// Subscribes reports whether a method is one by which a client with a session says what
// it wants to hear.
func Subscribes(method string) bool {
	return method == mcp.MethodSetLevel || method == string(gate.Subscribe) || method == mcp.MethodUnsubscribe
}
