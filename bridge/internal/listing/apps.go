package listing

import (
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/apps"
)

// maxPages bounds the pages of one server, and maxPageBytes their total size. maxCuts bounds how
// many of the things that a page does not get are named.
const (
	maxPages     = 64
	maxPageBytes = 32 << 20
	maxCuts      = 100
)

// A PageRef is a page that a server has, as its lists name it.
type PageRef struct {
	URI    string
	Listed gate.Doc // in resources/list; absent if it is not there
}

// Pages returns the pages that a server's lists name: by its tools, and among its resources.
func (s *Tools) Pages(o options.Apps) (refs []PageRef) {
	if o.Off {
		return nil
	}
	listed := make(map[string]gate.Doc)
	known := make(map[string]bool)
	add := func(uri string) {
		if !known[uri] && CheckURI(uri) == nil {
			known[uri] = true
			refs = append(refs, PageRef{URI: uri})
		}
	}
	for _, def := range s.Features.Declared[gate.FeatureResource] {
		uri := def.Get("uri").Text()
		listed[uri] = def
		if apps.IsURI(uri) && apps.IsPage(def.Get("mimeType").Text()) {
			add(uri)
		}
	}
	for _, def := range s.Declared {
		if uri := apps.UseOf(def).Page; uri != "" {
			add(uri)
		}
	}
	if len(refs) > maxPages {
		s.noteApp(refs[maxPages].URI, fmt.Sprintf("left out: the server has more than %d pages of apps", maxPages))
		refs = refs[:maxPages]
	}
	for i := range refs {
		refs[i].Listed = listed[refs[i].URI]
	}
	return refs
}

func (s *Tools) noteApp(uri, text string) {
	s.Features.Notes = append(s.Features.Notes, status.Note{Feature: gate.FeatureResource, Tool: mcp.QuoteName(uri), Text: text})
}

// AddPages takes the pages of a server out of its other resources, and has its tools know
// theirs. read returns the result of resources/read. A page that cannot be read or shown is
// left out alone: the tools that have it answer in text.
func (s *Tools) AddPages(o options.Apps, refs []PageRef, read func(uri string) (gate.Doc, error)) {
	pages, size := make(map[string]*gate.Tool), 0
	for _, ref := range refs {
		t, pinned, err := s.newPage(o, ref, read)
		if err == nil {
			if size += len(pinned.Raw()); size > maxPageBytes {
				err = fmt.Errorf("the pages of the server have more than %d MiB together", maxPageBytes>>20)
			}
		}
		if err != nil {
			s.noteApp(ref.URI, fmt.Sprintf("it is not a page of an app: %v", err))
			continue
		}
		pages[ref.URI] = t
		s.Features.Pages = append(s.Features.Pages, t)
		s.Features.declare(gate.FeaturePage, pinned)
	}
	var others []*gate.Tool
	for _, t := range s.Features.Resources {
		if pages[t.Local] == nil {
			others = append(others, t)
		}
	}
	s.Features.Resources = others
	s.LinkPages()
}

// LinkPages has the tools of a server know its pages.
func (s *Tools) LinkPages() {
	if len(s.Features.Pages) == 0 {
		return
	}
	pages := make(map[string]*gate.Tool)
	for _, t := range s.Features.Pages {
		pages[t.Local] = t
	}
	for i, t := range s.All {
		use := apps.UseOf(s.Declared[i])
		t.App = &gate.App{Page: pages[use.Page], Calls: use.App}
	}
}

// newPage reads a page, and returns it with what is pinned of it.
func (s *Tools) newPage(o options.Apps, ref PageRef, read func(uri string) (gate.Doc, error)) (*gate.Tool, gate.Doc, error) {
	answer, err := read(ref.URI)
	if err != nil {
		return nil, gate.Doc{}, err
	}
	page, err := apps.ReadPage(ref.URI, ref.Listed, answer, o.Allow)
	if err != nil {
		return nil, gate.Doc{}, err
	}
	def := ref.Listed
	if def.IsZero() {
		def = gate.MustDoc(`{}`).With("uri", mcp.MustJSON(ref.URI))
	}
	f := s.Features
	t, err := f.newResource(gate.FeatureResource, def)
	if err != nil {
		return nil, gate.Doc{}, err
	}
	var cut []gate.Finding
	for _, left := range page.Left[:min(len(page.Left), maxCuts)] {
		s.noteApp(ref.URI, left.Rule()+": "+left.String())
		cut = append(cut, gate.Finding{Rule: left.Rule(), At: "/contents/0/_meta/ui" + left.At, Count: 1, Removed: true})
	}
	pinned := page.Pinned
	if o.PinPolicy {
		pinned = mcp.Without(pinned, "html")
	}
	t.Offered, t.Digest, t.MIME = apps.OfferedURI(f.Server, ref.URI), pinned.Digest(), apps.MIME
	t.Page = &gate.Page{Content: page.Content, Settings: page.Settings, Cut: cut, Usable: o.On}
	t.Definition = t.Definition.With("uri", mcp.MustJSON(t.Offered)).With("mimeType", mcp.MustJSON(apps.MIME))
	if meta := page.Content.Get("_meta"); !meta.IsZero() {
		t.Definition = t.Definition.With("_meta", meta.Raw())
	}
	return t, pinned, nil
}
