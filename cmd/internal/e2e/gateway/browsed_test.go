//go:build unix

package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// browsed: the console of one gateway shows all gateways and their calls, and names those that do not answer.
func (c *cluster) browsed(t *testing.T) {
	for at := range c.urls {
		if ok, code := passes(t, c.client(c.urls[at], c.token(t, fmt.Sprint("browsed", at), fmt.Sprint("browsed", at))), "own__find", `{}`); !ok {
			t.Fatal(code)
		}
	}
	var in struct{ Code, At string }
	if err := json.Unmarshal([]byte(c.nodes[0].Must("console", "--json")), &in); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	signed, err := browser.PostForm(in.At+"signin", url.Values{"code": {in.Code}})
	if err != nil {
		t.Fatal(err)
	}
	signed.Body.Close()
	get := func(page string) string {
		t.Helper()
		r, err := browser.Get(in.At + page)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v: %s", page, r.Status, err, text)
		}
		return string(text)
	}
	nodes := get("nodes")
	for at := range c.urls {
		if !strings.Contains(nodes, fmt.Sprintf(`href="/ui/calls?gateway=n%d"`, at)) {
			t.Errorf("gateway n%d is not shown: %s", at, nodes)
		}
	}
	if !strings.Contains(nodes, "n0</a> (this one)") || strings.Count(nodes, ">running<") != 3 || !strings.Contains(nodes, "the configuration differs") {
		t.Errorf("gateways: %s", nodes)
	}
	var calls string
	timelimit.Wait(t, "the calls of all are indexed", func() bool {
		calls = get("calls")
		return strings.Contains(calls, "browsed0") && strings.Contains(calls, "browsed1") && strings.Contains(calls, "browsed2")
	})
	for at := range c.urls {
		if !strings.Contains(calls, fmt.Sprintf("<td>n%d</td>", at)) {
			t.Errorf("no call of n%d: %s", at, calls)
		}
		only := get(fmt.Sprintf("calls?gateway=n%d&text=browsed%d", at, at))
		_, rest, _ := strings.Cut(only, `<td class="time"><a href="`)
		page, _, found := strings.Cut(rest, `"`)
		if !found || !strings.Contains(page, fmt.Sprintf("?gateway=n%d", at)) {
			t.Fatalf("calls of n%d: %s", at, only)
		}
		call := get(strings.TrimPrefix(page, "/ui/"))
		if !strings.Contains(call, fmt.Sprint("browsed", at)) || strings.Contains(call, "Recorded by gateway") != (at > 0) {
			t.Errorf("a call of n%d: %s", at, call)
		}
	}
	c.between[2].set(true)
	timelimit.Wait(t, "the one that does not answer is named", func() bool {
		return strings.Contains(get("calls"), "The calls of gateway n2 are missing")
	})
	if calls = get("calls"); !strings.Contains(calls, "browsed1") {
		t.Errorf("calls of those that answer: %s", calls)
	}
	c.between[2].set(false)
}
