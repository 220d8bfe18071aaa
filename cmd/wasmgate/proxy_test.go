package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/wasmgate/wasmgate/internal/testing/duplex"
)

// serveProxy makes this program a raw reverse proxy, if it was started as one: it shows what calls
// cost that nothing checks. It prints its URL and ends with its input.
func serveProxy() {
	to, ok := os.LookupEnv("WASMGATE_TEST_PROXY")
	if !ok {
		return
	}
	target, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256}, // a connection for each client, as in production
	}
	fmt.Println(httptest.NewServer(duplex.Handler(proxy)).URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
