package wire

import (
	"net/http"
	"net/url"
	"strings"
)

// exchange does what [http.Client.Do] does with a request whose headers are the caller's
// to change, for a client of [NewHTTPClient]. What that does for redirects, cookies and
// passwords in URLs costs as much as to parse the answer: a plain exchange goes past it,
// all else has it.
func exchange(client *http.Client, r *http.Request) (*http.Response, error) {
	o, ok := client.Transport.(*origin)
	if !ok || r.URL.User != nil || r.URL.Scheme != o.scheme || r.URL.Host != o.host {
		return client.Do(r)
	}
	resp, err := o.send(r)
	if err != nil {
		return nil, &url.Error{Op: r.Method[:1] + strings.ToLower(r.Method[1:]), URL: r.URL.String(), Err: err}
	}
	if !redirects(resp.StatusCode) {
		return resp, nil
	}
	again := *client
	again.Transport = &answered{resp, o}
	return again.Do(r)
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// answered is a transport whose first request has its answer already.
type answered struct {
	first *http.Response
	next  http.RoundTripper
}

func (a *answered) RoundTrip(r *http.Request) (*http.Response, error) {
	if resp := a.first; resp != nil {
		a.first = nil
		return resp, nil
	}
	return a.next.RoundTrip(r)
}
