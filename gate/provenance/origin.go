package provenance

import "slices"

// An Origin is one place in which a session has met a value.
type Origin struct {
	Source  string `json:"source"`            // a name of [Source.Names]
	Server  string `json:"server,omitempty"`  // "" for what is no result
	Tool    string `json:"tool,omitempty"`    // server__tool
	Pointer string `json:"pointer,omitempty"` // JSON Pointer into what the result says
	Call    string `json:"call"`              // its ID
	Label   string `json:"label,omitempty"`   // the operator's label of the place: identity, or a kind of ids
}

const (
	// maxOrigins bounds how many values of a session have origins, the newest ones.
	maxOrigins = 4096
	// originsOfOne bounds the origins of one value.
	originsOfOne = 4
)

// newerFirst joins the origins of a value.
func newerFirst(older, newer []Origin) []Origin {
	all := append(slices.Clone(newer), older...)
	return all[:min(len(all), originsOfOne)]
}
