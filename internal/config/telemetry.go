package config

import (
	"errors"
	"net"
	"strconv"
)

// Telemetry says what monitoring systems are told. The zero Telemetry tells them nothing.
type Telemetry struct {
	Metrics Metrics
}

// Metrics says where Prometheus finds what is counted.
type Metrics struct {
	Listen string // host:port; empty for nowhere
	Series int    // the most there are, beside those of Go and the process
}

// Bounds of Metrics.Series, and what a file that is silent means.
const (
	DefaultSeries = 2_000
	minSeries     = 500
	maxSeries     = 1_000_000
)

func (d *decoder) telemetry(to *Telemetry, n *node, path string) {
	d.table(n, path, map[string]reader{
		"metrics": func(n *node, path string) {
			d.table(n, path, map[string]reader{
				"listen": d.text(&to.Metrics.Listen, hostPort), "series": d.count(&to.Metrics.Series, minSeries, maxSeries),
			})
		},
	})
}

// hostPort checks an address to listen on, wherever it is reached from.
func hostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("is not host:port, such as 127.0.0.1:9464")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no port from 0 to 65535")
	}
	return nil
}
