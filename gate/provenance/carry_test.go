package provenance

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// The vectors of SipHash's authors, for the key 00 01 .. 0f and the texts 00, 00 01 and so on.
func TestSipHash(t *testing.T) {
	key := [2]uint64{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	text := "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e"
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5} {
		if got := sipHash(&key, text[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// What one process knows another one knows that has got it.
func TestEncode(t *testing.T) {
	var p Provenance
	for i, text := range []string{`{"to":"bob@corp.example"}`, `{"to":"eve@evil.example","n":98765.43}`, `{"to":"bob@corp.example"}`} {
		from := []Source{FromTrusted, FromUntrusted, FromUntrusted}[i]
		d := doc.Must(`{"structuredContent":` + text + `}`)
		p, _ = p.Join(Read(p, Reading{From: d, Source: from, Call: "c", Server: "s", Tool: "s__t", Origins: true, Private: i == 1}, 100), 100)
	}
	p = p.Show(&Shown{values: map[uint64]Source{hashOf("shown"): FromUntrusted}})
	raw, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"bob@corp.example", "eve@evil.example", "98765.43", "shown", "never met"} {
		if p.OfText(text) != q.OfText(text) {
			t.Errorf("%s: %v, and then %v", text, p.OfText(text).Names(), q.OfText(text).Names())
		}
		if a, b := p.originsOf(text), q.originsOf(text); len(a) != len(b) {
			t.Errorf("%s: origins %v, and then %v", text, a, b)
		}
	}
	if raw, err = Encode(p.Lost()); err != nil {
		t.Fatal(err)
	}
	if q, err = Decode(raw); err != nil || q.OfText("never met") != FromUntrusted {
		t.Errorf("what was lost is known again: %v %v", q.OfText("never met").Names(), err)
	}
	if _, err := Decode([]byte(`{"values":"AAAA"}`)); err == nil {
		t.Error("half a value is taken")
	}
}
