package dial_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

func TestRedirectMethods(t *testing.T) {
	tests := map[string]struct {
		status       int
		method, want string // method, body and content type
	}{
		"301 of GET":    {301, "GET", "GET body text/x"},
		"301 of HEAD":   {301, "HEAD", "HEAD body text/x"},
		"301 of POST":   {301, "POST", "GET  "},
		"301 of PUT":    {301, "PUT", "PUT body text/x"},
		"302 of POST":   {302, "POST", "GET  "},
		"302 of DELETE": {302, "DELETE", "DELETE body text/x"},
		"303 of POST":   {303, "POST", "GET  "},
		"303 of PUT":    {303, "PUT", "GET  "},
		"303 of HEAD":   {303, "HEAD", "HEAD  "},
		"307 of POST":   {307, "POST", "POST body text/x"},
		"308 of PUT":    {308, "PUT", "PUT body text/x"},
		"300 of GET":    {300, "GET", ""},
		"304 of GET":    {304, "GET", ""},
		"305 of GET":    {305, "GET", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			got := ""
			origin := w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					w.Header().Set("Location", "/next/../to?q=1")
					w.WriteHeader(tt.status)
					return
				}
				body, _ := io.ReadAll(r.Body)
				got = fmt.Sprint(r.Method, " ", string(body), " ", r.Header.Get("Content-Type"))
				if r.RequestURI != "/to?q=1" || r.Header.Get("X-Kept") != "kept" {
					t.Errorf("%s, %v", r.RequestURI, r.Header)
				}
			})
			res := mustDo(t, w.client().Egress(open(t, origin)), dial.Request{
				Method: tt.method, URL: origin, Body: []byte("body"),
				Header: map[string][]string{"Content-Type": {"text/x"}, "X-Kept": {"kept"}},
			})
			if got != tt.want || tt.want == "" && res.Status != tt.status {
				t.Errorf("the second request is %q, want %q (status %d)", got, tt.want, res.Status)
			}
		})
	}
}

func TestRedirectWithoutLocationIsAnAnswer(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) })
	if res := mustDo(t, w.client().Egress(open(t, origin)), get(origin)); res.Status != 302 {
		t.Errorf("status %d", res.Status)
	}
}

func to(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(307)
	}
}

func TestRedirectsAreJudgedAnew(t *testing.T) {
	const sent = "sent"
	tests := map[string]struct {
		location func(free, ruled, unruled string) string
		reason   string // or sent
	}{
		"to the same origin":          {func(_, _, _ string) string { return "/second" }, sent},
		"to another origin with rule": {func(_, ruled, _ string) string { return ruled + "/in/x" }, sent},
		"out of the rule's path":      {func(_, ruled, _ string) string { return ruled + "/in/../out" }, "no rule allows it"},
		"to an origin without rule":   {func(_, _, unruled string) string { return unruled }, "no rule allows it"},
		"to a private address":        {func(_, _, _ string) string { return "http://inner.example/" }, "a private address"},
		"to loopback":                 {func(_, _, _ string) string { return "http://127.0.0.1/" }, "no rule allows it"},
		"to metadata":                 {func(_, _, _ string) string { return "http://169.254.169.254/latest/meta-data/" }, "no rule allows it"},
		"to what the policy refuses":  {func(free, _, _ string) string { return free + "/forbidden" }, "the policy does not allow it"},
		"with a user":                 {func(free, _, _ string) string { return strings.Replace(free, "//", "//me@", 1) }, "user name"},
		"to a file":                   {func(_, _, _ string) string { return "file:///etc/passwd" }, "scheme"},
		"with a hidden dot segment":   {func(free, _, _ string) string { return free + "/a/%2e%2e/b" }, "hides"},
		"with a backslash":            {func(_, _, _ string) string { return `/\evil.example` }, "0x5c"},
		"to what is not a URL":        {func(_, _, _ string) string { return "/%zz" }, "not a URL"},
		"in an odd notation":          {func(_, _, _ string) string { return "//0x7f.1/" }, "four decimal numbers"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			second, hits := counted(says("second"))
			ruled, unruled := w.serve("ruled.example", second), w.serve("unruled.example", second)
			w.names["inner.example"] = []string{"10.0.0.1"}
			var free string
			free = w.serve("free.example", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					to(tt.location(free, ruled, unruled))(w, r)
					return
				}
				second(w, r)
			})
			scope := dial.Scope{
				Rules: compile(t, anyMethod(free), dial.Rule{Origin: ruled, Path: "/in"}, dial.Rule{Origin: "http://inner.example"}),
				Ask: func(_ context.Context, t dial.Target) error {
					if t.Path == "/forbidden" {
						return errors.New("forbidden")
					}
					return nil
				},
			}
			_, err := w.client().Egress(scope).Do(t.Context(), get(free))
			if tt.reason == sent {
				if err != nil || hits.Load() != 1 {
					t.Errorf("err = %v, %d second requests", err, hits.Load())
				}
				return
			}
			wantDenied(t, err, tt.reason)
			if hits.Load() != 0 || len(w.dialled) != 1 {
				t.Errorf("%d second requests; dialled %v", hits.Load(), w.dialled)
			}
		})
	}
}

func TestHeadersAbroad(t *testing.T) {
	w := newWorld(t)
	var abroad, home, back http.Header
	var origin string
	other := w.serve("other.example", func(w http.ResponseWriter, r *http.Request) {
		abroad = r.Header
		to(origin+"/back")(w, r)
	})
	origin = w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			to("/home")(w, r)
		case "/home":
			home = r.Header
			to(other)(w, r)
		default:
			back = r.Header
		}
	})
	sensitive := []string{"Authorization", "Cookie", "X-Api-Key", "X-Anything"}
	header := map[string][]string{"Accept": {"text/x"}, "User-Agent": {"me"}}
	for _, name := range sensitive {
		header[name] = []string{"value"}
	}
	mustDo(t, w.client().Egress(open(t, origin, other)), dial.Request{URL: origin, Header: header})
	if abroad.Get("Accept") != "text/x" || abroad.Get("User-Agent") != "me" || home.Get("X-Api-Key") != "value" {
		t.Errorf("at home %v, abroad %v", home, abroad)
	}
	for _, name := range sensitive {
		if home.Get(name) == "" || abroad.Get(name) != "" || back.Get(name) != "" {
			t.Errorf("%s: %q at home, %q abroad, %q when back", name, home.Get(name), abroad.Get(name), back.Get(name))
		}
	}
}

func TestAnotherPortIsAbroad(t *testing.T) {
	w := newWorld(t)
	var got http.Header
	there := w.serve("api.example", func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	here := w.serve("api.example", to(there))
	mustDo(t, w.client().Egress(open(t, here, there)), with(here, "Authorization", "Basic x"))
	if got == nil || got.Get("Authorization") != "" {
		t.Errorf("abroad: %v", got)
	}
}

func TestTooManyRedirects(t *testing.T) {
	tests := map[string]struct {
		limit int
		hits  int64
		ok    bool
	}{
		"by default": {0, 6, false},
		"by two":     {2, 3, false},
		"none":       {-1, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			handler, hits := counted(to("/again"))
			origin := w.serve("api.example", handler)
			scope := open(t, origin)
			scope.Limits.Redirects = tt.limit
			res, err := w.client().Egress(scope).Do(t.Context(), get(origin))
			if tt.ok {
				if err != nil || res.Status != 307 {
					t.Errorf("status %d, err = %v", res.Status, err)
				}
			} else {
				wantFailed(t, err, dial.LimitRedirects)
			}
			if hits.Load() != tt.hits {
				t.Errorf("%d requests, want %d", hits.Load(), tt.hits)
			}
		})
	}
}
