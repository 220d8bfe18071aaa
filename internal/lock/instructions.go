package lock

import "github.com/wasmgate/wasmgate/gate"

// Instructions are what a server says of how it is used.
const Instructions Kind = "instructions"

var instructionsKind = kind{Kind: Instructions, single: true, subject: "instructions"}

// CheckInstructions returns nil if what a server says of how it is used is approved, as
// [Pins.Check] does of a tool.
func (p *Pins) CheckInstructions(server string, text gate.Doc) error {
	return p.view.Load().check(Key{server, Instructions, ""}, text.Digest(), Key{}, "")
}
