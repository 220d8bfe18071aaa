package bridge

// MaxAudiences is maxAudiences.
const MaxAudiences = maxAudiences

// Subscribed reports whether a server is subscribed to a resource.
func (f *Fleet) Subscribed(server, uri string) bool {
	for _, m := range f.snapshot() {
		if m.id == server && len(m.endpoint.subscriptions.of(uri)) > 0 {
			return true
		}
	}
	return false
}

// MaxAsked is maxAsked.
const MaxAsked = maxAsked
