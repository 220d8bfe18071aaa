package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/config/except"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy"
)

// A route is one request of the API, or one page.
type route struct {
	pattern string      // as of [http.ServeMux]
	action  gate.Action // that policies decide on
	op      string      // of it
	object  string      // the path's value that names what it is about; "" if there is none
	// do answers. What it does is recorded before, if the method changes anything or the op is
	// [readArguments]. A page's
	// error is shown on a page.
	do func(w http.ResponseWriter, r *http.Request) error
}

func (r route) isPage() bool { return strings.Contains(r.pattern, " /ui/") }

// maxForm bounds what a browser or a program sends, in bytes.
const maxForm = 1 << 20

// serve decides on a request, records what changes anything, and does it.
func (c *Console) serve(route route) http.HandlerFunc {
	isPage := route.isPage()
	changes := !strings.HasPrefix(route.pattern, "GET ")
	recorded := changes || route.op == readArguments
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		fail := problem
		if isPage {
			fail = problemPage
		}
		by, err := c.caller(r, isPage, true)
		if err != nil {
			if isPage && !changes {
				http.Redirect(w, r, "/ui/signin", http.StatusSeeOther)
				return
			}
			fail(w, http.StatusUnauthorized, err.Error())
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, by))
		object := ""
		if route.object != "" {
			object = r.PathValue(route.object)
		}
		err = c.may(r.Context(), route.action, route.op, object, recorded)
		if err == nil {
			err = route.do(w, r)
		}
		if err != nil {
			fail(w, codeOf(err), err.Error())
		}
	}
}

// A caller is the sender of a request: the operator, who comes over the control socket or has signed in
// by it; a person who has signed in at an issuer; or, at the API, the holder of the key in the request.
type caller struct {
	*gate.Principal
	operator bool
	key      string // that a program has brought, or a person's token
}

type callerKey struct{}

// overSocketKey marks requests that came over the control socket.
type overSocketKey struct{}

var errSignIn = errors.New("sign in with: wasmgate console; programs bring an API key")

// caller finds out who sends a request. A request with a key is the key holder's, even if its browser
// is signed in. If the request asks, and does not only wait, the browser stays signed in for longer.
func (c *Console) caller(r *http.Request, isPage, asks bool) (caller, error) {
	if r.Header.Values("Authorization") != nil && !isPage {
		who, err := c.app.Callers.KeyHolder(r)
		return caller{who, false, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}, err
	}
	if r.Context().Value(overSocketKey{}) != nil {
		return caller{gate.Local(), true, ""}, nil
	}
	token, in := c.signins.in(r, asks)
	switch {
	case !in:
		return caller{}, errSignIn
	case token == "":
		return caller{gate.Local(), true, ""}, nil
	}
	who, err := c.people.TokenHolder(r.Context(), token)
	if err != nil { // it has expired, or was revoked
		return caller{}, errSignIn
	}
	return caller{who, false, token}, nil
}

// by is who sends the request of a context.
func by(ctx context.Context) caller { return ctx.Value(callerKey{}).(caller) }

// named returns the sender of a context's request, as records name it.
func named(ctx context.Context) string {
	by := by(ctx)
	return "console:" + match.Name(by.Tenant, by.ID)
}

// readArguments is the op of reading what calls were made with, and what they returned, which is
// recorded before they are shown.
const readArguments = "arguments.read"

// may decides on what the sender of a request would do, and records it if it changes anything.
func (c *Console) may(ctx context.Context, action gate.Action, op, object string, changes bool) error {
	by := by(ctx)
	return c.app.Gateway().Operator().Admin(ctx, policy.AdminQuery{Who: by.Principal, Action: action, Op: op, Object: object, Operator: by.operator}, changes)
}

// codeOf returns the HTTP status of an error.
func codeOf(err error) int {
	var (
		changed *conflict
		none    *missing
		wrong   *misused
		session *sessions.Error
		over    *gate.NotApproved
		denied  *gate.Refusal
	)
	switch {
	case errors.Is(err, errComparing):
		return http.StatusConflict
	case errors.Is(err, replay.ErrNoTool):
		return http.StatusNotFound
	case errors.Is(err, replay.ErrArguments), errors.As(err, new(*naming.PrincipalError)), errors.As(err, new(*policy.CompileError)):
		return http.StatusBadRequest
	case errors.Is(err, errReaders):
		return http.StatusServiceUnavailable
	case errors.As(err, &denied):
		return http.StatusForbidden
	case errors.As(err, &changed), errors.As(err, &over):
		return http.StatusConflict
	case errors.As(err, &none), errors.As(err, &session), errors.Is(err, naming.ErrNoServer), errors.Is(err, except.ErrNone):
		return http.StatusNotFound
	case errors.Is(err, policydata.ErrGrantsChanged), errors.Is(err, except.ErrChanged), errors.As(err, new(*except.ByHand)):
		return http.StatusConflict
	case errors.As(err, &wrong), errors.As(err, new(tree.Problems)):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// problem answers a program (RFC 9457).
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": escaped.Text(detail)}) // the client may have gone
}

func problemPage(w http.ResponseWriter, status int, detail string) {
	page(w, status, "problem", view{Title: http.StatusText(status), Problem: detail, Out: status == http.StatusUnauthorized})
}

// answer answers a program.
func answer(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // the client may have gone
	return nil
}

// read reads what a program sends.
func read(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &misused{"the request is not the expected JSON object: " + err.Error()}
	}
	return nil
}
