package config

// Pins says which definitions of tools are approved.
type Pins struct {
	Mode     string `key:"mode trust-first|strict|off" default:"trust-first"`
	Lockfile string `key:"lockfile path" default:"wasmgate.lock"` // which need not exist
	TLSKey   bool   `key:"tls_key"`                               // the key of its certificate is part of what a server with a URL is
}
