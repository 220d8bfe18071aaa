package config

import "regexp"

// HTTP lists what the endpoint accepts beside loopback.
type HTTP struct {
	Origins []string // scheme://host[:port]
	Hosts   []string // host[:port]
}

var (
	originPattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)
	hostPattern   = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$`)
)

func (d *decoder) http(to *HTTP, n *node, path string) {
	d.table(n, path, map[string]reader{
		"origins": d.texts(&to.Origins, matches(originPattern, "an origin in lower case without a path, such as https://app.example.com")),
		"hosts":   d.texts(&to.Hosts, matches(hostPattern, "a host, such as tools.example.com or tools.example.com:8443")),
	})
}
