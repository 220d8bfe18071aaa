package config

// Pins says which definitions of tools are approved.
type Pins struct {
	Mode     string // trust-first | strict | off
	Lockfile string // path, which need not exist
	TLSKey   bool   // the key of its certificate is part of what a server with a URL is
}

func (d *decoder) pins(to *Pins, n *node, path string) {
	d.table(n, path, map[string]reader{
		"mode": d.one(&to.Mode, "trust-first", "strict", "off"), "lockfile": d.path(&to.Lockfile), "tls_key": d.flag(&to.TLSKey),
	})
}
