package apps

import (
	"encoding/base64"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// MaxPage bounds the HTML of one page, in bytes.
const MaxPage = 16 << 20

// A Page is a page as its server answered when it was read.
type Page struct {
	// Pinned is what a person approves: the URI, what the page asks of its host, and its HTML.
	Pinned doc.Doc
	// Content is what clients that show pages get, without the URI. Its text or blob is as the
	// server wrote it.
	Content doc.Doc
	// Settings are what a host gets to know of the page: see [Settings]. Left names what was left
	// out of them.
	Settings doc.Doc
	Left     []Cut
}

// ReadPage makes a page of the result of resources/read. listed is the server's entry in
// resources/list; absent if there is none. What the content says of the page goes before what
// the entry says, as it does at hosts.
func ReadPage(uri string, listed, result doc.Doc, allow options.AppSources) (Page, error) {
	content, err := contentOf(uri, result)
	if err != nil {
		return Page{}, err
	}
	html, member := content.Get("text"), "text"
	text := html.Text()
	if html.Kind() != doc.String {
		html, member = content.Get("blob"), "blob"
		b, err := base64.StdEncoding.DecodeString(html.Text())
		if err != nil || html.Kind() != doc.String {
			return Page{}, errors.New("it has neither a text nor a blob in base64")
		}
		if !utf8.Valid(b) {
			return Page{}, errors.New("its blob is not UTF-8")
		}
		text = string(b)
	}
	if len(text) > MaxPage {
		return Page{}, fmt.Errorf("it has more than %d MiB", MaxPage>>20)
	}
	ui := content.Get("_meta").Get("ui")
	if ui.Kind() != doc.Object {
		ui = listed.Get("_meta").Get("ui")
	}
	p := Page{Pinned: doc.Must(`{}`).With("uri", doc.AppendString(nil, uri)).With("html", doc.AppendString(nil, text))}
	for _, name := range []string{"csp", "permissions", "domain"} {
		if v := ui.Get(name); !v.IsZero() {
			p.Pinned = p.Pinned.With(name, v.Raw())
		}
	}
	p.Settings, p.Left = Settings(ui, allow)
	p.Content = doc.Must(`{"mimeType":"`+MIME+`"}`).With(member, html.Raw())
	if doc.Len(p.Settings) > 0 {
		p.Content = p.Content.With("_meta", doc.Must(`{}`).With("ui", p.Settings.Raw()).Raw())
	}
	return p, nil
}

// contentOf returns the content of a result that is the page.
func contentOf(uri string, result doc.Doc) (doc.Doc, error) {
	var only doc.Doc
	contents := result.Get("contents")
	for c := range contents.Elements() {
		if c.Get("uri").Text() != uri && doc.Len(contents) > 1 {
			continue
		}
		if !only.IsZero() {
			return doc.Doc{}, errors.New("the server's answer has two contents for the requested URI")
		}
		only = c
	}
	switch {
	case only.IsZero():
		return doc.Doc{}, errors.New("the server's answer has no content for the requested URI")
	case !IsPage(only.Get("mimeType").Text()):
		return doc.Doc{}, fmt.Errorf("its media type is %.80q; the page of an app has %s", only.Get("mimeType").Text(), MIME)
	}
	return only, nil
}

// Answer returns the result of resources/read for the content of a page, under the URI by
// which it was asked for.
func Answer(content doc.Doc, uri string) doc.Doc {
	return doc.Must(`{"contents":[` + content.With("uri", doc.AppendString(nil, uri)).String() + `]}`)
}
