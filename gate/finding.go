package gate

import "slices"

// A Finding is something that was found in a result.
type Finding struct {
	Rule    string `json:"rule"`
	At      string `json:"at,omitempty"` // JSON Pointer into the result, or "arguments:" and one into the arguments, or "answer:" and one into a client's answer
	Count   int    `json:"count"`
	Removed bool   `json:"removed"` // false: reported, and left in place
	// Fingerprint distinguishes secrets without revealing them; "" for what is no secret.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// maxFindings bounds the findings kept of one result; a hostile text can be
// made of nothing else.
const maxFindings = 100

// maxPointer bounds the place of a finding, in bytes: the server chooses the
// names in it.
const maxPointer = 256

// merged adds up findings of one rule.
func merged(found []Finding) (out []Finding) {
	for _, f := range found {
		i := slices.IndexFunc(out, func(o Finding) bool { return o.Rule == f.Rule && o.Removed == f.Removed })
		if i < 0 {
			out = append(out, f)
			continue
		}
		out[i].Count += f.Count
	}
	return out
}
