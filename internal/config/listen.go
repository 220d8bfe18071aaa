package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// CheckListen returns an error unless addr is host:port with a host that only
// this machine reaches. There is no authentication in this version, so any
// other address would open the tools to the network.
func CheckListen(addr string) error {
	if err := checkListen(addr); err != nil {
		return fmt.Errorf("listen address %q %w", addr, err)
	}
	return nil
}

func checkListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("is not host:port, such as " + DefaultListen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no port from 0 to 65535")
	}
	if !loopback(host) {
		return fmt.Errorf("is reachable from other machines, and this version has no authentication: "+
			"listen on 127.0.0.1:%s, and put a reverse proxy that authenticates in front of it", port)
	}
	return nil
}

// Loopback reports whether an address, host:port, is one of this machine alone.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopback(host)
}

// loopback reports whether host names this machine alone. Names other than
// localhost (RFC 6761, 6.3) are not resolved: what they mean can change.
func loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
