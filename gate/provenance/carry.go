package provenance

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// carried is a Provenance on its way to another process.
type carried struct {
	Lost   bool                `json:"lost,omitempty"`
	Values []byte              `json:"values,omitempty"` // each a hash and a source
	Places map[uint64][]Origin `json:"places,omitempty"`
	Lists  []List              `json:"lists,omitempty"`
	Shown  []byte              `json:"shown,omitempty"` // hashes
	All    bool                `json:"all,omitempty"`   // more was shown
}

// Encode returns what is known of where values came from, for [Decode] in another process with the same
// [ShareKey].
func Encode(p Provenance) ([]byte, error) {
	c := carried{Lost: p.lost}
	values := map[uint64]Source{}
	for l := p.newest; l != nil; l = l.older {
		for key, s := range l.values {
			values[key] |= s
		}
	}
	for key, s := range values {
		c.Values = append(binary.LittleEndian.AppendUint64(c.Values, key), byte(s))
	}
	for l := p.places; l != nil; l = l.older { // the newest first
		for key, origins := range l.values {
			if c.Places == nil {
				c.Places = map[uint64][]Origin{}
			}
			c.Places[key] = newerFirst(origins, c.Places[key])
		}
	}
	if p.lists != nil {
		c.Lists = *p.lists
	}
	if p.shown != nil {
		all := p.shown.with(new(Shown))
		for key := range all.values {
			c.Shown = binary.LittleEndian.AppendUint64(c.Shown, key)
		}
		c.All = all.all
	}
	return json.Marshal(c)
}

// Decode returns what [Encode] was given.
func Decode(raw []byte) (p Provenance, err error) {
	var c carried
	if err := json.Unmarshal(raw, &c); err != nil {
		return p, err
	}
	const one = 8 + 1
	if len(c.Values)%one != 0 || len(c.Shown)%8 != 0 {
		return p, fmt.Errorf("values of %d bytes, and %d that were shown, are not whole", len(c.Values), len(c.Shown))
	}
	values := make(map[uint64]Source, len(c.Values)/one)
	for b := c.Values; len(b) > 0; b = b[one:] {
		values[binary.LittleEndian.Uint64(b)] = Source(b[8])
	}
	p.newest = p.newest.add(values, nil)
	p.places = p.places.add(c.Places, nil)
	p.lists = newerLists(nil, c.Lists)
	if c.All || len(c.Shown) > 0 {
		shown := &Shown{values: map[uint64]Source{}, all: c.All}
		for b := c.Shown; len(b) > 0; b = b[8:] {
			shown.values[binary.LittleEndian.Uint64(b)] = FromUntrusted
		}
		p = p.Show(shown)
	}
	p.lost = c.Lost
	return p, nil
}
