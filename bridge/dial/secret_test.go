package dial_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func TestBadSecrets(t *testing.T) {
	const host = "https://api.example.com"
	good := randomText(20)
	tests := map[string]struct{ name, value, origin string }{
		"no name":                    {"", good, host},
		"a name with a brace":        {"A}", good, host},
		"a name that is too long":    {strings.Repeat("A", 65), good, host},
		"no value":                   {"API", "", host},
		"a value that is too short":  {"API", good[:7], host},
		"a value that is too long":   {"API", randomText(4097), host},
		"a value with a newline":     {"API", good + "\n", host},
		"a value with a line inside": {"API", good + "\r\nHost: evil", host},
		"a value with a space":       {"API", " " + good, host},
		"no origin":                  {"API", good, ""},
		"an origin with a wildcard":  {"API", good, "https://*.example.com"},
		"an origin with a path":      {"API", good, host + "/v1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := dial.NewSecret(tt.name, tt.value, tt.origin)
			if err == nil || len(tt.value) > 0 && strings.Contains(err.Error(), tt.value) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	value := randomText(20)
	s := newSecret(t, "API", value, "https://api.example.com")
	wrapped := struct{ s dial.Secret }{s} // fmt calls no method of what is not exported
	scope := dial.Scope{Secrets: []dial.Secret{s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		for _, v := range []any{s, &s, wrapped, &wrapped, scope, dial.New(dial.Options{}).Egress(scope)} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "secret", s, "scope", scope)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "secret", s, "wrapped", wrapped)
	if err := json.NewEncoder(&out).Encode([]any{s, wrapped, map[string]dial.Secret{"a": s}}); err != nil {
		t.Fatal(err)
	}
	if leaks(out.String(), value) {
		t.Errorf("shown in\n%s", out.String())
	}
	if !strings.Contains(out.String(), `"secret":"{{secret:API}}"`) || s.Name() != "API" {
		t.Errorf("the name is not shown in\n%s", out.String())
	}
}

func leaks(text, value string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, strings.ToLower(value)) || strings.Contains(text, hex.EncodeToString([]byte(value)))
}

func TestSecretIsSentToItsOrigin(t *testing.T) {
	value := randomText(20)
	w := newWorld(t)
	var got http.Header
	origin := w.serve("api.example", func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "API", value, origin), newSecret(t, "B", value+"{{secret:API}}", origin)}
	mustDo(t, w.client().Egress(scope), dial.Request{URL: origin, Header: map[string][]string{
		"Authorization": {"Bearer {{secret:API}}"}, "X-Two": {"{{secret:API}}:{{secret:API}}"}, "X-None": {"{{ secret }}"}, "X-Nested": {"{{secret:B}}"},
	}})
	for name, want := range map[string]string{
		"Authorization": "Bearer " + value, "X-Two": value + ":" + value, "X-None": "{{ secret }}", "X-Nested": value + "{{secret:API}}",
	} {
		if got.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Get(name), want)
		}
	}
}

func TestPlaceholderInABodyStays(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", echoRequest)
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "API", randomText(20), origin)}
	res := mustDo(t, w.client().Egress(scope), dial.Request{Method: "POST", URL: origin, Body: []byte("{{secret:API}}")})
	if !strings.Contains(string(res.Body), "{{secret:API}}") {
		t.Errorf("the origin saw %q", res.Body)
	}
}

// A secret goes to its origin, and stays there when the request is redirected, whichever field
// holds it and whichever server writes the location.
func TestSecretsDoNotFollowRedirects(t *testing.T) {
	value := randomText(20)
	encoded := url.QueryEscape(value)
	tests := map[string]struct {
		field  string
		path   string // of the location
		denied bool
	}{
		"in Authorization":                      {"Authorization", "/", false},
		"in a field that follows":               {"User-Agent", "/", false},
		"in another field":                      {"X-Key", "/", false},
		"written into the location":             {"X-Key", "/?" + value, true},
		"written into the location as base64":   {"X-Key", "/" + base64.RawURLEncoding.EncodeToString([]byte("x"+value)), true},
		"written into the location, escaped":    {"X-Key", "/?%" + fmt.Sprintf("%02x", value[0]) + encoded[1:], true},
		"written into the location as its host": {"X-Key", "@" + value + ".example/", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var got string
			other := w.serve("other.example", func(_ http.ResponseWriter, r *http.Request) {
				var b bytes.Buffer
				r.Write(&b)
				got = b.String()
			})
			sent := false
			origin := w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
				sent = strings.Contains(r.Header.Get(tt.field), value)
				to(other+tt.path)(w, r)
			})
			scope := open(t, origin, other)
			scope.Secrets = []dial.Secret{newSecret(t, "API", value, origin)}
			_, err := w.client().Egress(scope).Do(t.Context(), with(origin, tt.field, "Key {{secret:API}}"))
			if !sent {
				t.Error("the secret's origin did not get it")
			}
			if tt.denied {
				wantDenied(t, err, "redirect: ")
				if got != "" || leaks(err.Error(), value) {
					t.Errorf("err = %v; the other origin saw %q", err, got)
				}
				return
			}
			if err != nil || got == "" || leaks(got, value) || strings.Contains(got, "{{secret") {
				t.Errorf("err = %v; the other origin saw\n%s", err, got)
			}
		})
	}
}

// The policy is asked for the secret at each hop that would carry it.
func TestEachUseOfASecretIsAsked(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			to("/second")(w, r)
		}
	})
	var asked []string
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "API", randomText(20), origin)}
	scope.AskSecret = func(_ context.Context, name string, t dial.Target) error {
		asked = append(asked, name+" "+t.Path)
		return nil
	}
	r := with(origin, "X", "{{secret:API}}{{secret:API}}")
	r.Header["Y"] = r.Header["X"]
	mustDo(t, w.client().Egress(scope), r)
	if got := strings.Join(asked, ", "); got != "API /, API /second" {
		t.Errorf("asked %s", got)
	}
}

// echoes are forms in which an origin may send a secret back.
var echoes = map[string]func(string) string{
	"as it is":                    func(s string) string { return s },
	"in the middle":               func(s string) string { return "before" + s + "after" },
	"twice":                       func(s string) string { return s + s },
	"in upper case":               strings.ToUpper,
	"in lower case":               strings.ToLower,
	"base64":                      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 behind one byte":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(":" + s + "tail")) },
	"base64 behind two bytes":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s + "tail")) },
	"base64 behind three bytes":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + s)) },
	"base64 for URLs":             func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 in a URL":             func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("u:" + s))) },
	"hex":                         func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hex in upper case":           func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"escaped as a query":          url.QueryEscape,
	"escaped as a path":           url.PathEscape,
	"each byte escaped":           func(s string) string { return each(s, "%%%02X") },
	"each byte escaped twice":     func(s string) string { return strings.ReplaceAll(each(s, "%%%02x"), "%", "%25") },
	"in JSON":                     quoted,
	"in JSON in JSON":             func(s string) string { return quoted(quoted(s)) },
	"in JSON in JSON in JSON":     func(s string) string { return quoted(quoted(quoted(s))) },
	"each byte as an escape":      func(s string) string { return each(s, `\u%04x`) },
	"each byte as a short escape": func(s string) string { return each(s, `\x%02X`) },
	"some bytes as escapes":       func(s string) string { return s[:3] + each(s[3:6], `\u%04X`) + s[6:] },
	"escapes of different kinds":  func(s string) string { return each(s[:3], `\u%04x`) + each(s[3:6], "%%%02x") + s[6:] },
	"slashes with backslashes":    func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	"in HTML":                     html.EscapeString,
	"each byte in HTML":           func(s string) string { return each(s, "&#%d;") },
	"each byte in HTML, in hex":   func(s string) string { return each(s, "&#X%x;") },
	"quoted in HTML":              func(s string) string { return html.EscapeString(quoted(s)) },
}

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestSecretsAreScrubbed(t *testing.T) {
	values := map[string]string{
		"letters and digits":       randomText(24),
		"as short as may be":       randomText(8),
		"a length of 3n+1":         randomText(25),
		"a length of 3n+2":         randomText(26),
		"slashes, plus, percent":   randomText(5) + `/+%` + randomText(4) + `=&"<`,
		"plus and slash in base64": randomText(6) + "?>~?>~???>>>",
		"spaces":                   randomText(5) + ` ~ ` + randomText(5),
		"backslashes":              randomText(5) + `\` + randomText(5) + `\u0041'`,
		"what looks escaped":       randomText(5) + `%41&amp;\/` + randomText(5),
	}
	for kind, value := range values {
		for name, echo := range echoes {
			t.Run(kind+", "+name, func(t *testing.T) {
				text := echo(value)
				res := echoed(t, value, text)
				for where, got := range map[string]string{"body": string(res.Body), "header": strings.Join(res.Header["X-Echo"], "\n")} {
					if !strings.Contains(got, "{{secret:API}}") {
						t.Fatalf("%s: %q has become %q", where, text, got)
					}
					rest := strings.ReplaceAll(got, "{{secret:API}}", "")
					if part := longestPart(rest, text); part > len(text)/2 && part > 12 {
						t.Errorf("%s: %q has become %q", where, text, got)
					}
				}
			})
		}
	}
}

// Characters of base64 at the ends of a secret hold bits of its neighbours, too.
// They are scrubbed, and no others.
func TestScrubbingOfBase64IsExact(t *testing.T) {
	for length := 8; length < 14; length++ {
		for before := range 4 {
			for after := range 4 {
				value := randomText(length)
				full := base64.StdEncoding.EncodeToString([]byte("abcd"[:before] + value + "efgh"[:after]))
				want := full[:8*before/6] + "{{secret:API}}" + full[(8*(before+length)+5)/6:]
				if got := echoed(t, value, full).Header["X-Echo"][0]; got != want {
					t.Errorf("%q has become %q, want %q", full, got, want)
				}
			}
		}
	}
}

// longestPart returns the length of the longest part of text that is in got.
func longestPart(got, text string) int {
	for n := len(text); n > 0; n-- {
		for i := 0; i+n <= len(text); i++ {
			if strings.Contains(got, text[i:i+n]) {
				return n
			}
		}
	}
	return 0
}

// echoed returns what a tool gets of an origin that answers with text.
func echoed(t *testing.T, value, text string) dial.Response {
	w := newWorld(t)
	origin := w.serve("api.example", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Echo", text)
		io.WriteString(w, "<"+text+">")
	})
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "API", value, origin)}
	return mustDo(t, w.client().Egress(scope), with(origin, "X", "{{secret:API}}"))
}

// The text around a secret stays as it is, byte for byte.
func TestScrubbingLeavesTheRest(t *testing.T) {
	random := seed.Rand(t)
	const letters = `ab%&\"/u0041x<;#=` + "\x00\xff\n"
	noise := func() string {
		b := make([]byte, random.IntN(40))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	value := randomText(20)
	for range 100 {
		before, after := noise()+"|", "|"+noise()
		var text, want string
		if random.IntN(4) == 0 {
			text, want = before+after, before+after
		} else {
			text, want = before+value+after, before+"{{secret:API}}"+after
		}
		w := newWorld(t)
		origin := w.serve("api.example", says(text))
		scope := open(t, origin)
		scope.Secrets = []dial.Secret{newSecret(t, "API", value, origin)}
		if res := mustDo(t, w.client().Egress(scope), get(origin)); string(res.Body) != want {
			t.Fatalf("%q has become %q, want %q", text, res.Body, want)
		}
	}
}

// A secret that this request did not send may come back too.
func TestAllSecretsOfTheCallAreScrubbed(t *testing.T) {
	a, b := randomText(20), randomText(20)
	w := newWorld(t)
	origin := w.serve("api.example", says(a+" and "+b))
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "A", a, origin), newSecret(t, "B", b, "https://elsewhere.example"), {}}
	if res := mustDo(t, w.client().Egress(scope), get(origin)); string(res.Body) != "{{secret:A}} and {{secret:B}}" {
		t.Errorf("body = %q", res.Body)
	}
}

func TestSecretAsTheNameOfAHeader(t *testing.T) {
	value := randomText(20)
	w := newWorld(t)
	origin := w.serve("api.example", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(value, "x") })
	scope := open(t, origin)
	scope.Secrets = []dial.Secret{newSecret(t, "API", value, origin)}
	if res := mustDo(t, w.client().Egress(scope), get(origin)); leaks(fmt.Sprint(res.Header), value) || res.Status != 200 {
		t.Errorf("status %d, header %v", res.Status, res.Header)
	}
}

func TestSecretsInErrors(t *testing.T) {
	value := randomText(20)
	tests := map[string]string{
		"in the status line": "HTTP/1.1 " + value + "\r\n\r\n",
		"instead of HTTP":    value + "\r\n\r\n",
		"in a header":        "HTTP/1.1 200 OK\r\n" + value + "\r\n\r\n",
		"as the length":      "HTTP/1.1 200 OK\r\nContent-Length: " + value + "\r\n\r\n",
		"as the encoding":    "HTTP/1.1 200 OK\r\nContent-Encoding: " + value + "\r\n\r\n",
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			origin := w.serve("api.example", raw(answer))
			scope := open(t, origin)
			scope.Secrets = []dial.Secret{newSecret(t, "API", value, origin)}
			_, err := w.client().Egress(scope).Do(t.Context(), with(origin, "X", "{{secret:API}}"))
			wantFailed(t, err, "")
			for ; err != nil; err = unwrap(err) {
				if leaks(fmt.Sprintf("%v %+v %#v", err, err, err), value) { // the Detail, too
					t.Errorf("err = %#v", err)
				}
			}
		})
	}
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

func TestLongForeignTextInErrors(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", raw("HTTP/1.1 "+strings.Repeat("a", 5000)+"\r\n\r\n"))
	_, err := w.client().Egress(open(t, origin)).Do(t.Context(), get(origin))
	if wantFailed(t, err, ""); len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// A placeholder can be longer than its secret; the quota counts what the tool
// gets.
func TestScrubbingDoesNotGrowBeyondTheQuota(t *testing.T) {
	value := randomText(8)
	w := newWorld(t)
	origin := w.serve("api.example", says(strings.Repeat(value+" ", 1000)))
	scope := open(t, origin)
	scope.Limits.ResponseBytes = 20_000
	scope.Secrets = []dial.Secret{newSecret(t, strings.Repeat("N", 64), value, origin)}
	_, err := w.client().Egress(scope).Do(t.Context(), get(origin))
	wantFailed(t, err, dial.LimitResponseBytes)
}
