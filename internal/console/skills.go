package console

import "net/http"

func (c *Console) getSkills(w http.ResponseWriter, r *http.Request) error {
	list, err := c.app.Inventory.Skills(r.Context(), r.FormValue("as"))
	if err != nil {
		return &misused{err.Error()}
	}
	return answer(w, list, nil)
}

func (c *Console) skillsPage(w http.ResponseWriter, r *http.Request) error {
	list, err := c.app.Inventory.Skills(r.Context(), "")
	if err != nil {
		return err
	}
	return c.show(w, r, "skills", "Skills", list)
}
