package bridge

// Declared returns what each server has declared last, in the order of
// configuration and as it was written: also definitions that are quarantined. A
// server that has not been connected has declared nothing.
func (f *Fleet) Declared() []Declaration {
	var all []Declaration
	for _, m := range f.snapshot() {
		switch up := m.upstream.(type) {
		case *Local:
			all = append(all, up.declaration())
		case *Endpoint:
			all = append(all, up.Declared())
		}
	}
	return all
}

// Declared returns what the server has declared last, also definitions that are
// quarantined.
func (e *Endpoint) Declared() Declaration {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := Declaration{Server: e.cfg.Server, Config: &e.cfg, Tools: e.tools.listed}
	d.Own = make([]bool, len(d.Tools))
	if e.link != nil {
		d.Instructions, d.TLSKey = e.link.instructions, e.link.tlsKey
	}
	return d
}
