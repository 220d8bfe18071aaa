package artifact

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

const (
	connectTimeout = 10 * time.Second
	// answerTimeout is how long a registry may take until it begins to answer. Some
	// look a layer up in a store of their own first.
	answerTimeout = 30 * time.Second
	// idleTimeout is how long a connection outlives the request that it was made for.
	idleTimeout = 10 * time.Second
	// maxHeader bounds the headers of an answer, in bytes; tokens are in them.
	maxHeader = 64 << 10
	// maxRedirects is what registries need (one, to the store of their layers), with
	// room for a store that moved.
	maxRedirects = 5
	// maxRetries is how often a request is repeated after an answer 429 or 5xx, or a
	// connection that broke; each waits longer, and 2 s at most.
	maxRetries = 2
)

func newTransport(connect func(ctx context.Context, network, addr string) (net.Conn, error)) http.RoundTripper {
	if connect == nil {
		connect = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	return &http.Transport{
		Proxy:                  nil, // never the environment's
		DialContext:            connect,
		TLSHandshakeTimeout:    connectTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is verified is what was sent
	}
}

// closeIdle ends unused connections: modules are fetched seldom.
func (s *Store) closeIdle() {
	if t, ok := s.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// repository returns a client for one Fetch. Nothing of it, tokens included, is
// kept for the next.
func (s *Store) repository(ref Reference) *remote.Repository {
	at := registry.Reference{Registry: ref.Registry, Repository: ref.Repository}
	local := isLoopback(ref.Registry)
	return &remote.Repository{
		Reference:        at,
		PlainHTTP:        local,
		MaxMetadataBytes: maxManifest,
		Client: &auth.Client{
			Client:     &http.Client{Transport: guard{retrying(s.cfg.Transport), local}, CheckRedirect: limitRedirects},
			Header:     http.Header{"User-Agent": {"wasmgate"}},
			Credential: s.keys.get,
			Cache:      auth.NewCache(),
		},
	}
}

func retrying(t http.RoundTripper) http.RoundTripper {
	policy := &retry.GenericPolicy{
		Retryable: retry.DefaultPredicate, Backoff: retry.DefaultBackoff,
		MinWait: 200 * time.Millisecond, MaxWait: 2 * time.Second, MaxRetry: maxRetries,
	}
	return &retry.Transport{Base: t, Policy: func() retry.Policy { return policy }}
}

func limitRedirects(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// A guard is in front of the network: every request passes it, also after a redirect or for a token.
type guard struct {
	next  http.RoundTripper
	local bool // the registry is on this machine, so that plain HTTP to this machine is allowed
}

func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" || r.URL.Scheme == "http" && g.local && isLoopback(r.URL.Host) {
		return g.next.RoundTrip(r)
	}
	return nil, fmt.Errorf("refused to go to %.80s://%.255s: only HTTPS is used, and plain HTTP on this machine for a registry on this machine", r.URL.Scheme, r.URL.Host)
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(hostport string) bool { return loopback.Address((&url.URL{Host: hostport}).Hostname()) }
