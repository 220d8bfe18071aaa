package policy_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// asker returns what decides by the functions of the packs paths and urls.
func asker(tb testing.TB) func(tool string, argument any) bool {
	tb.Helper()
	e := load(tb, user(`
import data.wasmgate.paths
import data.wasmgate.urls

allow contains "path" if {
	input.tool.name == "a__path"
	paths.within(input.arguments.x, "/srv/a")
}

allow contains "url" if {
	input.tool.name == "a__url"
	urls.host_is(input.arguments.x, "good.example")
}
`), policy.Options{Packs: []string{"paths", "urls"}})
	who := gate.Local()
	tools := map[string]*gate.Tool{"path": newTool("a__path"), "url": newTool("a__url")}
	return func(tool string, argument any) bool {
		b, err := json.Marshal(map[string]any{"x": argument})
		if err != nil {
			tb.Fatal(err)
		}
		d, err := e.Authorize(tb.Context(), gate.Query{
			Call: &gate.Call{Action: gate.CallTool, Who: who, Args: gate.MustDoc(string(b))}, Tool: tools[tool],
		})
		if err != nil {
			tb.Fatalf("%s %q: %v", tool, argument, err)
		}
		return d.Effect == gate.Allow
	}
}

// Arguments of any kind are an answer, no error that denies what other rules allow.
func TestHelpersTakeAnyArgument(t *testing.T) {
	within := asker(t)
	if !within("path", "/srv/a/b") || !within("url", "https://good.example/x") {
		t.Fatal("what is plain does not pass")
	}
	for _, x := range []any{nil, 7, true, "", []string{"/srv/a"}, map[string]string{"a": "/srv/a"}} {
		for _, tool := range []string{"path", "url"} {
			if within(tool, x) {
				t.Errorf("%s: %v passes", tool, x)
			}
		}
	}
}

// Whatever is put together of pieces that confuse parsers: a path that passes is
// below the root after every way of cleaning it that servers have.
func TestPathsThatPassAreBelowTheRoot(t *testing.T) {
	within := asker(t)
	r := seed.Rand(t)
	pieces := []string{"/srv/a", "/", "/", `\`, "..", ".", "a", "b", "ab", " ", "%2e", "%2f", "%5c", "%25", "\x00", "\n", "C:", "~", "\uff0f", "\uff0e", "\u2024", "ü", ";", "\u202e"}
	passed := 0
	for range unraced.Fewer(20_000) {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteString("/srv/a")
		}
		for range r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		s := b.String()
		if !within("path", s) {
			continue
		}
		passed++
		unescaped, err := url.PathUnescape(s)
		if err != nil {
			unescaped = s
		}
		for _, read := range []string{s, unescaped, strings.ReplaceAll(s, `\`, "/"), strings.NewReplacer("\uff0f", "/", "\uff0e", ".", "\u2024", ".").Replace(s)} {
			if clean := path.Clean(read); clean != "/srv/a" && !strings.HasPrefix(clean, "/srv/a/") || strings.ContainsAny(read, "\x00\n") {
				t.Fatalf("%q passes, and is %q", s, clean)
			}
		}
	}
	if passed < unraced.Fewer(100) {
		t.Errorf("%d passed: the test says little", passed)
	}
}

// A URL that passes has the host also for Go's parser and for one that reads as
// browsers do.
func TestURLsThatPassHaveTheHost(t *testing.T) {
	if unraced.Short() {
		t.Skip("one goroutine: the race detector finds nothing in it")
	}
	within := asker(t)
	r := seed.Rand(t)
	pieces := []string{
		"http:", "https:", "//", "/", `\`, "good.example", "GOOD.example", "evil.example", "@", ":", ".", "80", "?", "#", "%40", "%2e", "%00", "\t", "\r\n", " ",
		"user", "[", "]", "0x7f.1", ";", "&", "。", "о", "/..", "/%2e%2e", "a",
	}
	passed := 0
	for range unraced.Fewer(30_000) {
		var b strings.Builder
		if r.IntN(3) > 0 {
			b.WriteString("https://")
			if r.IntN(2) == 0 {
				b.WriteString("good.example")
			}
		}
		for range r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		s := b.String()
		if !within("url", s) {
			continue
		}
		passed++
		u, err := url.Parse(s)
		if err != nil || !strings.EqualFold(u.Hostname(), "good.example") || u.User != nil {
			t.Fatalf("%q passes, and Go reads %+v, %v", s, u, err)
		}
		if host := asBrowsers(s); host != "good.example" {
			t.Fatalf("%q passes, and a browser reads %q", s, host)
		}
	}
	if passed < unraced.Fewer(100) {
		t.Errorf("%d passed: the test says little", passed)
	}
}

// asBrowsers returns the host of a URL as the URL standard of WHATWG has it read, as
// far as the pieces above go: tabs and newlines are left out, a backslash is a slash,
// and the host begins after the last @ of what comes before a slash.
func asBrowsers(s string) string {
	s = strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(strings.TrimSpace(s))
	_, rest, _ := strings.Cut(s, ":")
	rest = strings.TrimLeft(rest, "/")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	host, _, _ := strings.Cut(rest, ":")
	return strings.ToLower(host)
}

// The functions belong to the packs: no other policy adds to what they mean.
func TestHelpersBelongToTheirPacks(t *testing.T) {
	for name, text := range map[string]string{
		"a package of a pack":        "package wasmgate.paths\n\nwithin(p, _) if p == \"/etc\"\n",
		"one below it":               "package wasmgate.urls.more\n\nx := 1\n",
		"a rule in a pack's package": "package wasmgate\n\npaths.within(p, _) if p == \"/etc\"\n",
		"the limits":                 "package ratelimit\n\nx := 1\n",
	} {
		files := user("")
		files["x.rego"] = files["user.rego"]
		files["user.rego"].Data = []byte(text)
		for _, packs := range [][]string{{"paths", "urls"}, {}} {
			if _, err := policy.Load(t.Context(), files, policy.Options{Packs: packs}); err == nil || !strings.Contains(err.Error(), "belongs to the") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

// Time is linear in the length of an argument, which is bounded at that.
func TestHelpersAreBounded(t *testing.T) {
	within := asker(t)
	for _, unit := range []string{"/", "/..", "%2e", "%25", "a.", "@", "[", ":0"} {
		long := strings.Repeat(unit, 1<<20/len(unit))
		if within("path", "/srv/a"+long) || within("url", "https://good.example/"+long) {
			t.Errorf("a megabyte of %q passes", unit)
		}
	}
	if within("path", fmt.Sprint("/srv/a/", strings.Repeat("b", 4096))) {
		t.Error("a path longer than the bound passes")
	}
}
