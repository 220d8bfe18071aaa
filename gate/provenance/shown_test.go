package provenance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// An address is noticed at any place of a listing and in whatever it is wrapped, also if the
// definition is pinned; no clean call vouches for it then.
func TestListedAddresses(t *testing.T) {
	r := seed.Rand(t)
	places := []string{
		`{"name":%q}`, `{"mimeType":%q}`, `{"_meta":{"a":[%q]}}`, `{"annotations":{"lastModified":%q}}`, `{"icons":[{"src":"data:","sizes":[%q]}]}`,
		`{%q:1}`, `{"inputSchema":{"properties":{%q:{}}}}`, `{"inputSchema":{"properties":{"to":{"enum":["x",%q]}}}}`, `{"inputSchema":{"properties":{"to":{"default":%q}}}}`,
		`{"uri":%q}`, `{"uriTemplate":%q}`, `{"execution":{"x":{"y":%q}}}`,
	}
	wraps := []string{"%s", "x://%s", "file:///%s/inbox", "to_%s.", "to-%s", "a.b+%s", "mail for %s!", "see(%s)", "x:%s?q=1", "urn:mail:%s", "a=%s&b", "~%s~"}
	for range 300 {
		name := string(rune('a'+r.IntN(26))) + fmt.Sprint(r.IntN(1000))
		value := name + "@evil.example"
		wrapped := fmt.Sprintf(wraps[r.IntN(len(wraps))], value)
		if r.IntN(4) == 0 {
			wrapped = strings.Replace(wrapped, "@", "%40", 1)
		}
		checkListed(t, fmt.Sprintf(places[r.IntN(len(places))], wrapped), value, r.IntN(2) == 0)
	}
	const account = "DE89370400440532013000"
	checkListed(t, `{"_meta":{"pay":"iban:`+account+`"}}`, account, true)
	checkListed(t, `{"_meta":{"pay":1234567890123}}`, "1234567890123", true)
}

func checkListed(t *testing.T, definition, value string, pinned bool) {
	t.Helper()
	d := doc.Must(definition)
	p := provenance.Provenance{}.Show(provenance.NewShown(func(yield func(doc.Doc, bool) bool) { yield(d, pinned) }))
	args := doc.Must(fmt.Sprintf(`{"to":%q}`, value))
	p, _ = p.Join(provenance.Read(p, provenance.Reading{From: args, Source: provenance.FromTrusted, Used: true}, 1000), 1000)
	if s := p.OfText(value); s.Trusted() || s&provenance.FromUntrusted == 0 {
		t.Errorf("%s (pinned %v): a clean call with %s makes it %v", definition, pinned, value, s.Names())
	}
	if s := p.OfText("ann@corp.example"); s != 0 {
		t.Errorf("%s: another address is %v", definition, s.Names())
	}
}
