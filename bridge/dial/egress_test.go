package dial_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

func TestDo(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", echoRequest)
	e := w.client().Egress(open(t, origin))
	res := mustDo(t, e, dial.Request{
		Method: "POST", URL: origin + "/a%2Fb/../c?q=%20", Header: fields("x-one", "1", "2"), Body: []byte("body"),
	})
	for _, want := range []string{"POST /c?q=%20 body\n", "X-One: 1\r\nX-One: 2\r\n", "Accept-Encoding: identity\r\n", "User-Agent: wasmgate\r\n"} {
		if !strings.Contains(string(res.Body), want) {
			t.Errorf("the origin saw\n%s, which lacks %q", res.Body, want)
		}
	}
	if res.Status != 200 || len(res.Header["Content-Type"]) != 1 {
		t.Errorf("status %d, header %v", res.Status, res.Header)
	}
}

func TestNoProxyOfTheEnvironment(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", says("direct"))
	if res := mustDo(t, w.client().Egress(open(t, origin)), get(origin)); string(res.Body) != "direct" {
		t.Errorf("body = %q", res.Body)
	}
	if proxied.Load() != 0 {
		t.Error("the proxy of the environment was used")
	}
	// The environment would be followed by others.
	req, _ := http.NewRequest("GET", origin, nil)
	if u, err := http.ProxyFromEnvironment(req); err != nil || u == nil {
		t.Fatalf("the test has no proxy: %v, %v", u, err)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	s := httptest.NewUnstartedServer(says("hello"))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate()) // for example.com
	tests := map[string]struct {
		host    string
		roots   *x509.CertPool
		trusted bool
	}{
		"a known root":               {"example.com", roots, true},
		"an unknown root":            {"example.com", nil, false},
		"the certificate of another": {"other.example", roots, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.names[tt.host] = []string{"93.184.215.14"}
			origin := "https://" + tt.host + ":" + portOf(s.URL)
			client := dial.New(dial.Options{Roots: tt.roots, Resolve: w.resolve, Connect: w.connect})
			_, err := client.Egress(open(t, origin)).Do(t.Context(), get(origin))
			if (err == nil) != tt.trusted {
				t.Fatalf("err = %v", err)
			}
			if !tt.trusted {
				wantFailed(t, err, "")
			}
		})
	}
}

func TestOnlyHTTP1(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	w := newWorld(t)
	w.names["example.com"] = []string{"93.184.215.14"}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	origin := "https://example.com:" + portOf(s.URL)
	client := dial.New(dial.Options{Roots: roots, Resolve: w.resolve, Connect: w.connect})
	if res := mustDo(t, client.Egress(open(t, origin)), get(origin)); string(res.Body) != "HTTP/1.1" {
		t.Errorf("the request came as %s", res.Body)
	}
}

// Nothing is resolved or dialled for what rules or policy refuse.
func TestRefusedBeforeAnythingIsDone(t *testing.T) {
	policy := errors.New("not on Sundays")
	no := func(context.Context, dial.Target) error { return policy }
	noSecret := func(context.Context, string, dial.Target) error { return policy }
	w := newWorld(t)
	handler, hits := counted(says(""))
	origin := w.serve("api.example", handler)
	rules := compile(t, dial.Rule{Origin: origin, Methods: methods, Path: "/v1"})
	secrets := []dial.Secret{newSecret(t, "API", randomText(20), origin), newSecret(t, "OTHER", randomText(20), "https://api.example")}
	tests := map[string]struct {
		scope  dial.Scope
		r      dial.Request
		reason string
		cause  error
	}{
		"the zero scope":               {dial.Scope{}, get(origin + "/v1"), "no rule allows it", nil},
		"no rule":                      {dial.Scope{Rules: rules, Ask: yes}, get(origin + "/v2"), "no rule allows it", nil},
		"no policy":                    {dial.Scope{Rules: rules}, get(origin + "/v1"), "no policy that could allow it", nil},
		"the policy":                   {dial.Scope{Rules: rules, Ask: no}, get(origin + "/v1"), "the policy does not allow it", policy},
		"a bad URL":                    {dial.Scope{Rules: rules, Ask: yes}, get("ftp://api.example/"), "scheme", nil},
		"a secret in the URL":          {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets, AskSecret: yesSecret}, get(origin + "/v1?{{secret:API}}"), "has a secret or the placeholder of one", nil},
		"a secret without policy":      {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets}, with(origin+"/v1", "X", "{{secret:API}}"), "no policy that could allow it", nil},
		"a secret by policy":           {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets, AskSecret: noSecret}, with(origin+"/v1", "X", "{{secret:API}}"), "the policy does not allow secret API", policy},
		"a secret that is not granted": {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets, AskSecret: yesSecret}, with(origin+"/v1", "X", "{{secret:NONE}}"), "secret NONE is not granted", nil},
		"a secret of another origin":   {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets, AskSecret: yesSecret}, with(origin+"/v1", "X", "{{secret:OTHER}}"), "secret OTHER is bound to another origin", nil},
		"the zero secret":              {dial.Scope{Rules: rules, Ask: yes, Secrets: []dial.Secret{{}}, AskSecret: yesSecret}, with(origin+"/v1", "X", "{{secret:}}"), "is written", nil},
		"an open placeholder":          {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets, AskSecret: yesSecret}, with(origin+"/v1", "X", "{{secret:API"), "is written", nil},
		"a placeholder's bad name":     {dial.Scope{Rules: rules, Ask: yes, Secrets: secrets, AskSecret: yesSecret}, with(origin+"/v1", "X", "{{secret: API}}"), "is written", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := w.client().Egress(tt.scope).Do(t.Context(), tt.r)
			d := wantDenied(t, err, tt.reason)
			if tt.cause != nil && !errors.Is(err, tt.cause) || tt.cause != nil && strings.Contains(err.Error(), tt.cause.Error()) {
				t.Errorf("err = %v, cause %v: the tool must not read it, the operator must", err, d.Err)
			}
			if len(w.resolved)+len(w.dialled) > 0 || hits.Load() > 0 {
				t.Errorf("resolved %v, dialled %v, %d requests", w.resolved, w.dialled, hits.Load())
			}
		})
	}
}

func TestDeniedSaysWhatItNeeds(t *testing.T) {
	w := newWorld(t)
	_, err := w.client().Egress(dial.Scope{}).Do(t.Context(), dial.Request{Method: "POST", URL: "https://api.example.com/v1/x?y=z"})
	d := wantDenied(t, err, "dial: POST https://api.example.com/v1/x refused: no rule allows it")
	if d.Need == nil {
		t.Fatal("needs nothing")
	}
	if allowed, _ := compile(t, *d.Need).Allow(d.Target); !allowed {
		t.Errorf("%s does not allow %+v", d.Need, d.Target)
	}
}

func TestPolicySeesTheWholeTarget(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", says(""))
	var got []string
	scope := open(t, origin)
	scope.Ask = func(_ context.Context, t dial.Target) error {
		got = append(got, fmt.Sprint(t.Method, t.Scheme, t.Host, t.Port > 0, t.Path))
		return nil
	}
	mustDo(t, w.client().Egress(scope), dial.Request{Method: "PUT", URL: strings.ToUpper(origin) + "/x/../Y?q"})
	if want := []string{fmt.Sprint("PUT", "http", "api.example", true, "/Y")}; !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

func TestHeaderSmuggling(t *testing.T) {
	w := newWorld(t)
	handler, hits := counted(says(""))
	origin := w.serve("api.example", handler)
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "API", randomText(20), origin)}
	tests := map[string]struct{ name, value string }{
		"an empty name":                 {"", "a"},
		"a name with a space":           {"X Y", "a"},
		"a name with a space behind":    {"Host ", "a"},
		"a name with a colon":           {"X: a\r\nY", "a"},
		"a name with a line end":        {"X\r\nY", "a"},
		"a name beyond ASCII":           {"X-Ü", "a"},
		"a value with CR LF":            {"X", "a\r\nHost: evil"},
		"a value with LF":               {"X", "a\nHost: evil"},
		"a value with CR":               {"X", "a\rHost: evil"},
		"a value with NUL":              {"X", "a\x00"},
		"a value with DEL":              {"X", "a\x7f"},
		"a line end behind":             {"X", "a\r\n"},
		"Host":                          {"Host", "evil.example"},
		"host in lower case":            {"host", "evil.example"},
		"Content-Length":                {"Content-Length", "5"},
		"Content-Length by underscore":  {"Content_Length", "5"},
		"Transfer-Encoding":             {"transfer-encoding", "chunked"},
		"Connection":                    {"Connection", "keep-alive"},
		"Keep-Alive":                    {"Keep-Alive", "timeout=5"},
		"Upgrade":                       {"Upgrade", "websocket"},
		"TE":                            {"TE", "trailers"},
		"Trailer":                       {"Trailer", "X"},
		"HTTP2-Settings":                {"HTTP2-Settings", "AAMAAABkAAQAAP__"},
		"Expect":                        {"Expect", "100-continue"},
		"Proxy-Authorization":           {"Proxy-Authorization", "Basic x"},
		"Proxy-Connection":              {"proxy-connection", "keep-alive"},
		"Accept-Encoding":               {"Accept-Encoding", "br"},
		"another method":                {"X-HTTP-Method-Override", "DELETE"},
		"another method, in short":      {"X-HTTP-Method", "DELETE"},
		"another method, yet otherwise": {"x-method-override", "DELETE"},
		"another path":                  {"X-Original-URL", "/admin"},
		"another path, otherwise":       {"X-Rewrite-URL", "/admin"},
		"a part of an echo":             {"Range", "bytes=0-3"},
		"too long":                      {"X", strings.Repeat("a", 16<<10)},
		"too many placeholders":         {"Y", strings.Repeat("{{secret:API}}", 17)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := with(origin, tt.name, tt.value)
			r.Header["Authorization"] = []string{"Bearer {{secret:API}}"}
			_, err := w.client().Egress(scope).Do(t.Context(), r)
			wantDenied(t, err, "")
			if hits.Load() > 0 {
				t.Error("it was sent")
			}
		})
	}
	t.Run("too many fields", func(t *testing.T) {
		_, err := w.client().Egress(scope).Do(t.Context(), dial.Request{URL: origin, Header: fields("X", slices.Repeat([]string{"a"}, 101)...)})
		wantDenied(t, err, "more than 100 fields")
	})
	t.Run("a range without a secret is fine", func(t *testing.T) {
		mustDo(t, w.client().Egress(scope), with(origin, "Range", "bytes=0-3"))
	})
}

func TestNothingIsKept(t *testing.T) {
	w := newWorld(t)
	cookies := 0
	origin := w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
		cookies += len(r.Cookies())
		if !r.Close {
			t.Error("the connection is to be kept")
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/" {
			to("/next")(w, r)
		}
	})
	client := w.client()
	for range 2 {
		e := client.Egress(open(t, origin))
		if res := mustDo(t, e, get(origin)); len(res.Header["Set-Cookie"]) != 1 {
			t.Errorf("header %v", res.Header)
		}
	}
	if cookies != 0 || len(w.dialled) != 4 {
		t.Errorf("%d cookies, %d connections for 4 requests", cookies, len(w.dialled))
	}
}

// generous answers with as much as its path says.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	origin := w.serve("api.example", func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := w.client().Egress(open(t, origin)).Do(ctx, get(origin))
	if wantFailed(t, err, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestNothingIsDecompressed(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 1<<20))
	z.Close()
	tests := map[string]string{"gzip": "gzip", "brotli": "br", "one upon the other": "identity, gzip"}
	for name, encoding := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			origin := w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Values("Accept-Encoding"); !slices.Equal(got, []string{"identity"}) {
					t.Errorf("Accept-Encoding: %v", got)
				}
				w.Header().Set("Content-Encoding", encoding)
				w.Write(bomb.Bytes())
			})
			_, err := w.client().Egress(open(t, origin)).Do(t.Context(), get(origin))
			wantFailed(t, err, "")
		})
	}
}

func TestSwitchingProtocolsIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))
	_, err := w.client().Egress(open(t, origin)).Do(t.Context(), get(origin))
	wantFailed(t, err, "")
}

// raw answers with bytes of its own.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, answer)
	}
}

// Many goroutines share the quota of a call, and get exactly what it has.
