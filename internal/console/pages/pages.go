package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/replay"
)

//go:embed *.html
var files embed.FS

// templates are the pages, each within the frame.
var templates = sync.OnceValue(func() map[string]*template.Template {
	functions := template.FuncMap{
		"visible": visible, "who": match.Name, "clock": clock, "took": took, "left": left, "help": product.Help, "state": state, "pausing": pausingOf, "escaped": url.PathEscape, "effect": effect, "join": strings.Join, "ago": ago, "percent": func(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) },
		"words": wordsOf, "raw": func(b []byte) string { return escaped.JSON(b) }, "otherwise": replay.Otherwise,
		"why":  func(e audit.Entry) string { return audit.Why(&e) },
		"text": func(b []byte) string { return escaped.Text(string(b)) },
	}
	frame := template.Must(template.New("frame.html").Funcs(functions).ParseFS(files, "frame.html"))
	all := make(map[string]*template.Template)
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, f := range entries {
		if name, ok := strings.CutSuffix(f.Name(), ".html"); ok && name != "frame" {
			all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, f.Name()))
		}
	}
	return all
})

// A View is what a page shows.
type View struct {
	Title   string
	At      string  // the link of the navigation under which it stands
	Nav     []Group // none if no one is signed in
	Out     bool    // no one is signed in
	Problem string
	Done    string // what was done before
	Of      any
}

// A Group is a part of the navigation with a heading.
type Group struct {
	Name  string
	Links []Link
}

// A Link leads to a page, with how much waits for a person there; 0 if nothing does.
type Link struct {
	At, Path, Label string
	Count           int
	Waits           string // what is counted, for those who hear the page
}

// Waiting is how many questions wait for an answer, for the title of the window.
func (v View) Waiting() int {
	for _, g := range v.Nav {
		for _, l := range g.Links {
			if l.At == "approvals" {
				return l.Count
			}
		}
	}
	return 0
}

// Write writes a page with a status. View.Of is what the page of this name shows.
func Write(w http.ResponseWriter, status int, name string, v View) {
	var b bytes.Buffer
	if err := templates()[name].Execute(&b, v); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the browser has gone
}
