package gate

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// page returns the page of an app to a client that shows it: byte for byte as it is pinned,
// because its own code may hold anything. A secret cannot be taken out of a page without
// breaking it, so that a page with one is refused where secrets in results are not allowed.
func (w *way) page(ctx context.Context, p *permitted, answer Doc) (Doc, error) {
	w.found(p.tool.Page.Cut...)
	if w.guard(p.tool).results == allowSecrets {
		return answer, nil
	}
	found := p.tool.Page.secrets(w.Secrets)
	w.found(found...)
	if holdSecret(found) {
		return Doc{}, w.fail(ctx, "the page holds a secret ("+secretKinds(found)+")", nil)
	}
	return answer, nil
}

// A search is what was found in a page.
type search struct {
	by    Secrets
	found []Finding
}

// secrets looks for secrets in the page, once for each s: a page may have megabytes.
func (p *Page) secrets(s Secrets) []Finding {
	if last, ok := p.searched.Load().(search); ok && last.by == s {
		return last.found
	}
	member, html := "text", p.Content.Get("text").Text()
	if html == "" {
		member = "blob"
		b, _ := base64.StdEncoding.DecodeString(p.Content.Get("blob").Text()) // it was read when the page was listed
		html = string(b)
	}
	at := "/contents/0/" + member
	_, found := s.Redact(at, member, html)
	found = found[:min(len(found), maxFindings)]
	for i := range found {
		found[i].At = at
	}
	p.searched.Store(search{s, found})
	return found
}

// skill returns what a client gets of a skill: unchanged, because hosts verify it. What would
// have to be changed is refused.
func (w *way) skill(ctx context.Context, p *permitted, answer Doc) (Doc, error) {
	if p.duty.profile != "" || p.duty.redact != nil {
		return Doc{}, w.fail(ctx, unableToMeet, errors.New("a skill passes unchanged: nothing in it can be sanitized or redacted"))
	}
	if w.guard(p.tool).results == allowSecrets {
		return answer, nil
	}
	var found []Finding
	_, err := doc.MapStrings(answer, func(at doc.Leaf, s string) string {
		if strings.HasSuffix(at.Pointer(), "/blob") {
			if b, err := base64.StdEncoding.DecodeString(s); err == nil {
				s = string(b)
			}
		}
		_, one := w.Secrets.Redact(at.Pointer(), at.Name(), s)
		found = append(found, one[:min(len(one), maxFindings-len(found))]...)
		return s
	})
	if err != nil {
		return Doc{}, w.fail(ctx, "the skill cannot be searched for secrets", err)
	}
	w.found(found...)
	if holdSecret(found) {
		return Doc{}, w.fail(ctx, "the skill holds a secret ("+secretKinds(found)+"); hosts verify its bytes, so that it cannot be taken out", nil)
	}
	return answer, nil
}
