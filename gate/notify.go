package gate

import "context"

// maxNotifications bounds what a client is told during one call; a server that
// tells more is not listened to.
const maxNotifications = 10_000

// Notify tells the client of the call what its server says of it while it runs,
// such as how far it is: a notification of MCP with its parameters, an object.
// Every string goes the way of the strings of results. What cannot be made safe,
// and what comes after the call or by the zero Permit, is dropped. It returns
// once the client's connection has taken it, or ctx has ended.
func (p Permit) Notify(ctx context.Context, method string, params Doc) {
	o := p.of
	if o == nil || o.call.Notify == nil || o.over.Load() || params.Kind() != Object || o.told.Add(1) > maxNotifications {
		return
	}
	defer func() { _ = recover() }() // a part that panics has made nothing safe
	w := way{Parts: o.parts, duty: o.duty, rec: Record{Tool: o.tool}}
	s := scrub{w: o.parts.Sanitizer, text: Text{Server: o.tool.Name.Server, Tool: o.tool.Name.String(), Profile: o.duty.profile}, secrets: w.guardResult()}
	clean, err := s.doc(params, "", 0)
	if err != nil || s.secrets != nil && w.refusesSecrets(s.found) {
		return
	}
	o.call.Notify(ctx, method, clean)
}
