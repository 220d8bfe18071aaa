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
	"github.com/wasmgate/wasmgate/internal/console/pages"
	"github.com/wasmgate/wasmgate/internal/escaped"
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
func serve(a *access, route route) http.HandlerFunc {
	isPage := route.isPage()
	changes := !strings.HasPrefix(route.pattern, "GET ")
	recorded := changes || route.op == readArguments
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		fail := problem
		if isPage {
			fail = problemPage
		}
		by, err := a.caller(r, isPage, true)
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
		err = a.may(r.Context(), route.action, route.op, object, recorded)
		if err == nil {
			err = route.do(w, r)
		}
		if err != nil {
			fail(w, codeOf(err), err.Error())
		}
	}
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
	pages.Write(w, status, "problem", pages.View{Title: http.StatusText(status), Problem: detail, Out: status == http.StatusUnauthorized})
}
