package lock

import "github.com/wasmgate/wasmgate/gate"

// CheckInstructions returns nil if what a server says of how it is used is approved, as
// [Pins.Check] does of a tool.
func (p *Pins) CheckInstructions(server string, text gate.Doc) error {
	return p.view.Load().check(Pin{Key{server, Instructions, ""}, text.Digest()})
}
