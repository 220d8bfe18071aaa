package console

import (
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/paused"
)

// serverHandlers serve the servers with their tools, and pause them.
type serverHandlers struct {
	*frame
	inventory *inventory.Inventory
	pauses    *paused.Pauses
}

func (h *serverHandlers) getServers(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, h.status().Servers, nil)
}

func (h *serverHandlers) getTools(w http.ResponseWriter, r *http.Request) error {
	tools, err := h.inventory.Tools(r.Context(), r.FormValue("as"), r.FormValue("all") == "true")
	if err != nil {
		return &misused{err.Error()}
	}
	return answer(w, tools, nil)
}

func (h *serverHandlers) serversPage(w http.ResponseWriter, r *http.Request) error {
	s := h.status()
	return h.show(w, r, "servers", "Servers", map[string]any{"Status": s, "Paused": s.Paused})
}

func (h *serverHandlers) serverPage(w http.ResponseWriter, r *http.Request) error {
	s := h.status()
	id := r.PathValue("server")
	for _, one := range s.Servers {
		if one.Server == id {
			tools, err := h.inventory.Tools(r.Context(), "", true)
			if err != nil {
				return err
			}
			tools = slices.DeleteFunc(tools, func(t inventory.Tool) bool { return t.Server != id })
			return h.show(w, r, "server", id, map[string]any{"Server": one, "Tools": tools, "Paused": s.Paused})
		}
	}
	return &missing{"server " + id}
}

func (h *serverHandlers) postPause(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Server string `json:"server"`
		Resume bool   `json:"resume"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	paused, err := h.pauses.Pause(r.Context(), asked.Server, asked.Resume, named(r.Context()))
	return answer(w, map[string]any{"paused": append([]string{}, paused...)}, err)
}

func (h *serverHandlers) pausePage(w http.ResponseWriter, r *http.Request) error {
	server, resume := r.PostFormValue("server"), r.PostFormValue("resume") == "true"
	if _, err := h.pauses.Pause(r.Context(), server, resume, named(r.Context())); err != nil {
		return err
	}
	what, to := "the gateway", "/ui/"
	if server != "" {
		what, to = "server "+server, "/ui/servers"
	}
	if resume {
		return h.done(w, r, to, what+" is resumed")
	}
	return h.done(w, r, to, what+" is paused: every new call is refused")
}

func (h *serverHandlers) postRestart(w http.ResponseWriter, r *http.Request) error {
	return answer(w, map[string]any{}, h.pauses.Restart(r.Context(), r.PathValue("server"), named(r.Context())))
}

func (h *serverHandlers) restartPage(w http.ResponseWriter, r *http.Request) error {
	server := r.PathValue("server")
	if err := h.pauses.Restart(r.Context(), server, named(r.Context())); err != nil {
		return err
	}
	return h.done(w, r, "/ui/servers", "server "+server+" has restarted")
}
