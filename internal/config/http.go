package config

import "regexp"

// HTTP lists what the endpoint accepts in addition to loopback.
type HTTP struct {
	Origins []string `key:"origins origin"` // scheme://host[:port]
	Hosts   []string `key:"hosts host"`     // host[:port]
}

var (
	originPattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)
	hostPattern   = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$`)
)
