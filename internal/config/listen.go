package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// unixPrefix begins a listen address that is a Unix socket.
const unixPrefix = "unix:"

// CheckListen returns an error unless the gateway may listen on an address: host:port, or
// unix:PATH. One that other machines reach takes authentication and TLS; what is missing is
// said key by key.
func (c *Config) CheckListen(addr string) error {
	if err := checkListen(addr); err != nil {
		return fmt.Errorf("listen address %q %w", addr, err)
	}
	if missing := c.lacks(addr); len(missing) > 0 {
		return fmt.Errorf("listen address %q is reachable from other machines:\n  %s", addr, strings.Join(missing, "\n  "))
	}
	return nil
}

// Loopback reports whether only this machine reaches a listen address.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return isUnix(addr) || err == nil && loopback.Host(host)
}

func isUnix(addr string) bool { return strings.HasPrefix(addr, unixPrefix) }

// listen reads an address, or a list of them.
func listen(to *[]string) decode.Reader {
	return func(v decode.Value) {
		if v.Kind != tree.List {
			var one string
			if decode.Text(&one, checkListen)(v); one != "" {
				*to = []string{socket(v, one)}
			}
			return
		}
		decode.Texts(to, checkListen)(v)
		for i, addr := range *to {
			(*to)[i] = socket(v, addr)
		}
		if len(v.Items) == 0 {
			v.Fail("is empty: name an address such as %s, or leave the key out", DefaultListen)
		}
	}
}

// socket has the path of a Unix socket start at the folder of the file.
func socket(v decode.Value, addr string) string {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return unixPrefix + v.Resolve(path)
	}
	return addr
}

func checkListen(addr string) error {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		if path == "" {
			return errors.New("names no socket: write unix:PATH")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("is not host:port, such as " + DefaultListen + ", nor unix:PATH")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no port from 0 to 65535")
	}
	return nil
}

// lacks says what the configuration has not that an address takes which other machines
// reach.
func (c *Config) lacks(addr string) (missing []string) {
	if Loopback(addr) {
		return nil
	}
	if !c.Auth.On() {
		missing = append(missing, "auth names no way to authenticate: issuers, keys, mtls or proxy, or else listen on 127.0.0.1")
	} else if c.Auth.Local {
		missing = append(missing, "auth.local: allow lets everyone in: remove it")
	}
	if c.TLS.Cert == "" && c.TLS.TerminatedBy == nil {
		missing = append(missing, "tls has no cert and key, and names no proxy that speaks TLS under terminated_by")
	}
	if !strings.HasPrefix(c.PublicURL, "https://") {
		missing = append(missing, "public_url is not the https URL by which clients reach the gateway")
	}
	return missing
}
