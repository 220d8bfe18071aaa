package console

import (
	"net/http"

	"github.com/wasmgate/wasmgate/internal/app/inventory"
)

// skillHandlers serve the skills of the servers.
type skillHandlers struct {
	*frame
	inventory *inventory.Inventory
}

func (h *skillHandlers) getSkills(w http.ResponseWriter, r *http.Request) error {
	list, err := h.inventory.Skills(r.Context(), r.FormValue("as"))
	if err != nil {
		return &misused{err.Error()}
	}
	return answer(w, list, nil)
}

func (h *skillHandlers) skillsPage(w http.ResponseWriter, r *http.Request) error {
	list, err := h.inventory.Skills(r.Context(), "")
	if err != nil {
		return err
	}
	return h.show(w, r, "skills", "Skills", list)
}
