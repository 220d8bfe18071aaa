package console

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/wasmgate/wasmgate/internal/app/exceptions"
	"github.com/wasmgate/wasmgate/internal/config/except"
	"github.com/wasmgate/wasmgate/policy"
)

// exceptionHandlers offer exceptions from rules that found something, and write them.
type exceptionHandlers struct {
	*frame
	exceptions exceptions.Exceptions
}

// found reads which finding is meant, as the list of findings has it.
func found(r *http.Request) except.Found {
	return except.Found{
		Rule: r.FormValue("rule"), Tool: r.FormValue("tool"), Server: r.FormValue("server"),
		Arguments: except.InArguments(r.FormValue("at")), Fingerprint: r.FormValue("fingerprint"),
	}
}

func (h *exceptionHandlers) getExceptions(w http.ResponseWriter, r *http.Request) error {
	x, err := h.exceptions.Offers(found(r))
	return answer(w, x, err)
}

// except writes an exception.
func (h *exceptionHandlers) except(r *http.Request, q exceptions.Request) (exceptions.Written, error) {
	by := by(r.Context())
	return h.exceptions.Write(r.Context(), policy.AdminQuery{Who: by.Principal, Operator: by.operator}, q)
}

func (h *exceptionHandlers) postException(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Rule        string `json:"rule"`
		Tool        string `json:"tool"`
		Server      string `json:"server"`
		At          string `json:"at"`
		Fingerprint string `json:"fingerprint"`
		Name        string `json:"name"`
		Seen        string `json:"seen"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	f := except.Found{Rule: asked.Rule, Tool: asked.Tool, Server: asked.Server, Arguments: except.InArguments(asked.At), Fingerprint: asked.Fingerprint}
	written, err := h.except(r, exceptions.Request{Found: f, Name: asked.Name, Seen: asked.Seen})
	return answer(w, written, err)
}

func (h *exceptionHandlers) exceptionsPage(w http.ResponseWriter, r *http.Request) error {
	x, err := h.exceptions.Offers(found(r))
	if err != nil {
		return err
	}
	query := make(map[string]string)
	for _, name := range []string{"rule", "tool", "server", "at", "fingerprint"} {
		query[name] = r.FormValue(name)
	}
	return h.show(w, r, "exceptions", "Exceptions", map[string]any{"For": query, "Place": cmp.Or(query["at"], "the call"), "Exceptions": x})
}

func (h *exceptionHandlers) exceptPage(w http.ResponseWriter, r *http.Request) error {
	written, err := h.except(r, exceptions.Request{Found: found(r), Name: r.PostFormValue("name"), Seen: r.PostFormValue("seen")})
	if err != nil {
		return err
	}
	return h.done(w, r, "/ui/findings", strings.TrimSpace("written, and read by the gateway in a moment: "+strings.TrimSpace(written.Line)+"\n"+written.Advice))
}
