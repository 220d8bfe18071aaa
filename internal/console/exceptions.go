package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/except"
)

// exceptions are what could be written into the configuration for a finding. Seen names the state
// of its file.
type exceptions struct {
	File string      `json:"file"`
	Seen string      `json:"seen"`
	All  []exception `json:"exceptions"`
}

type exception struct {
	except.Exception
	Line   string `json:"line,omitempty"`    // of the file as it would be, which has the exception
	ByHand string `json:"by_hand,omitempty"` // why it cannot be written
}

// found reads which finding is meant, as the list of findings has it.
func found(r *http.Request) except.Found {
	return except.Found{
		Rule: r.FormValue("rule"), Tool: r.FormValue("tool"), Server: r.FormValue("server"),
		Arguments: strings.HasPrefix(r.FormValue("at"), "arguments:"), Fingerprint: r.FormValue("fingerprint"),
	}
}

func (c *Console) exceptions(f except.Found) (x exceptions, err error) {
	cfg := c.app.Config()
	x = exceptions{File: cfg.File, All: []exception{}}
	seen, data, err := except.See(cfg.File)
	if err != nil && !errors.As(err, new(*except.ByHand)) {
		return x, err
	}
	x.Seen = seen
	for _, e := range except.For(cfg, f) {
		one := exception{Exception: e}
		why := err
		if why == nil {
			_, one.Line, why = except.Plan(cfg.File, data, e)
		}
		if why != nil {
			one.ByHand = why.Error()
		}
		x.All = append(x.All, one)
	}
	return x, nil
}

func (c *Console) getExceptions(w http.ResponseWriter, r *http.Request) error {
	x, err := c.exceptions(found(r))
	return answer(w, x, err)
}

// except writes an exception. What it is was decided on, and is recorded, before.
func (c *Console) except(r *http.Request, f except.Found, name, seen string) (line string, err error) {
	cfg := c.app.Config()
	all := except.For(cfg, f)
	i := slices.IndexFunc(all, func(e except.Exception) bool { return e.Name == name })
	if i < 0 {
		return "", &missing{"such exception: it is not one of this finding's, or holds already"}
	}
	if err := c.may(r.Context(), "admin/grant", "exceptions.write", all[i].String(), true); err != nil {
		return "", err
	}
	return except.Write(cfg.File, seen, all[i])
}

func (c *Console) postException(w http.ResponseWriter, r *http.Request) error {
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
	f := except.Found{Rule: asked.Rule, Tool: asked.Tool, Server: asked.Server, Arguments: strings.HasPrefix(asked.At, "arguments:"), Fingerprint: asked.Fingerprint}
	line, err := c.except(r, f, asked.Name, asked.Seen)
	return answer(w, map[string]any{"file": c.app.Config().File, "line": line}, err)
}

func (c *Console) exceptionsPage(w http.ResponseWriter, r *http.Request) error {
	x, err := c.exceptions(found(r))
	if err != nil {
		return err
	}
	query := make(map[string]string)
	for _, name := range []string{"rule", "tool", "server", "at", "fingerprint"} {
		query[name] = r.FormValue(name)
	}
	return show(w, r, "exceptions", "Exceptions", map[string]any{"For": query, "Place": cmp.Or(query["at"], "the call"), "Exceptions": x})
}

func (c *Console) exceptPage(w http.ResponseWriter, r *http.Request) error {
	line, err := c.except(r, found(r), r.PostFormValue("name"), r.PostFormValue("seen"))
	if err != nil {
		return err
	}
	return done(w, r, "/ui/findings", "written, and read by the gateway in a moment: "+strings.TrimSpace(line))
}
