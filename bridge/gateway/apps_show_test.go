package gateway_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/scan"
	"github.com/wasmgate/wasmgate/internal/scan/report"
	"github.com/wasmgate/wasmgate/policy"
)

const html = "<!doctype html><script>\u202e/*\x00*/alert(1)</script><!-- x --><p>hello</p>"

func grantingServers(ids ...string) gateway.Policy {
	return gateway.Policy{Options: policy.Options{Timeout: patience, Grants: []policy.Grant{{To: []string{"*"}, Servers: ids}}}}
}

var eras = []string{rig.Old, rig.Newest}

// twoApps returns a gateway in front of two servers with equal URIs and names.
func twoApps(t testing.TB, change func(*gateway.Config)) (g *gateway.Gateway, c1, c2 *appServer) {
	c1, c2 = newAppServer("ui://shared/app.html", "<p>c1</p>").serve(), newAppServer("ui://shared/app.html", "<p>c2</p>")
	c2.unlisted = true
	c2.serve()
	cfg := gateway.Config{
		Recorder: new(records), Policy: grantingServers("c1", "c2"),
		Servers: []options.Endpoint{c1.endpoint("c1", options.Apps{On: true}), c2.endpoint("c2", options.Apps{On: true})},
	}
	if change != nil {
		change(&cfg)
	}
	g, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(t.Context()) })
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, c1, c2
}

// TestAppsAreShown: a client that shows pages gets them byte for byte, with tools that name
// them by the server, and calls what is only for apps while an app is open. A client that does
// not gets nothing of it.
func TestAppsAreShown(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s := newAppServer("ui://map/app.html", html)
			s.ui = map[string]any{
				"csp":         map[string]any{"connectDomains": []string{"https://a.example.com", "https://b.example.com; script-src *"}},
				"permissions": map[string]any{"camera": map[string]any{}, "x; y": map[string]any{}}, "unknown": 1,
			}
			s.serve()
			g := start(t, gateway.Config{
				Recorder: new(records), Policy: grantingServers("maps"), Servers: []options.Endpoint{s.endpoint("maps", options.Apps{On: true})},
			})
			if err := g.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			host, plain := newAppHost(t, g, era, true), newAppHost(t, g, era, false)

			const uri = "ui://maps/map/app.html"
			tools := host.tools()
			if got := tools["maps__show"].At("/_meta/ui/resourceUri").Text(); got != uri {
				t.Errorf("the tool names the page %q", got)
			}
			if got := string(tools["refresh"].At("/_meta/ui/visibility").Raw()); got != `["app"]` {
				t.Errorf("the tool that is only for the app is listed with %s: %v", got, tools)
			}
			if got := tools["show"].At("/_meta/ui"); string(got.Raw()) != `{"resourceUri":"ui://maps/map/app.html","visibility":["app"]}` {
				t.Errorf("the tool for both is listed by its own name with %s", got)
			}
			if r := host.resources(); r[uri].IsZero() || len(r) != 1 {
				t.Errorf("resources %v", r)
			}
			if got := textOf(host.call("refresh")); strings.HasPrefix(got, "refresh of") {
				t.Errorf("no app is open, and its tool says %q", got)
			}
			for _, name := range []string{uri, "ui://map/app.html"} {
				res := host.read(name)
				if got := textOf(res); got != html {
					t.Errorf("%s: %q", name, got)
				}
				if got := res.At("/result/contents/0/uri").Text(); got != name {
					t.Errorf("%s is answered as %q", name, got)
				}
				if got := string(res.At("/result/contents/0/_meta/ui").Raw()); got != `{"csp":{"connectDomains":["https://a.example.com"]},"permissions":{"camera":{}}}` {
					t.Errorf("%s: %s", name, got)
				}
			}
			for _, name := range []string{"refresh", "maps__refresh", "show", "maps__show"} {
				if got, own := textOf(host.call(name)), strings.TrimPrefix(name, "maps__"); !strings.HasPrefix(got, own+" of ") {
					t.Errorf("%s: %q", name, got)
				}
			}

			for name, d := range plain.tools() {
				if name != "maps__show" || strings.Contains(d.String(), "ui") {
					t.Errorf("a client that shows no pages is offered %s", d)
				}
			}
			if r := plain.resources(); len(r) > 0 {
				t.Errorf("a client that shows no pages is offered %v", r)
			}
			for _, name := range []string{"refresh", "maps__refresh"} {
				if got := plain.call(name); got.At("/error/code").String() != "-32602" {
					t.Errorf("%s: %s", name, got)
				}
			}
			if got := textOf(plain.read("ui://map/app.html")); strings.Contains(got, "<script>") || !strings.Contains(got, "hello") {
				t.Errorf("a client that shows no pages reads %q", got)
			}
		})
	}
}

// TestExtensionIsDeclared to clients that declare it, and to servers.
func TestExtensionIsDeclared(t *testing.T) {
	g, _, _ := twoApps(t, nil)
	host := newAppHost(t, g, rig.Newest, true)
	const at = "/result/capabilities/extensions/io.modelcontextprotocol~1ui"
	if got := host.ask("server/discover", ""); got.At(at).IsZero() {
		t.Error(got)
	}
	if got := newAppHost(t, g, rig.Newest, false).ask("server/discover", ""); !got.At(at).IsZero() {
		t.Error(got)
	}
}

// TestAppsOfTwoServers: names and URIs that two servers have in common are errors until the
// app of one is open, and lead to that then.
func TestAppsOfTwoServers(t *testing.T) {
	for _, era := range eras {
		for _, first := range []string{"c1", "c2"} {
			g, c1, c2 := twoApps(t, nil)
			host := newAppHost(t, g, era, true)
			for _, d := range []gate.Doc{host.call("refresh"), host.read("ui://shared/app.html")} {
				if got := textOf(d); !strings.Contains(got, "one of c1 and of c2") {
					t.Errorf("%s: %q", era, got)
				}
			}
			if got, want := textOf(host.read("ui://"+first+"/shared/app.html")), "<p>"+first+"</p>"; got != want {
				t.Errorf("%s: read %q, want %q", era, got, want)
			}
			if got := textOf(host.read("ui://shared/app.html")); got != "<p>"+first+"</p>" {
				t.Errorf("%s: read %q", era, got)
			}
			if got := textOf(host.call("refresh")); got != "refresh of <p>"+first+"</p>" {
				t.Errorf("%s: %q", era, got)
			}
			other := map[string]*appServer{"c1": c2, "c2": c1}[first]
			if other.calls["refresh"] > 0 {
				t.Errorf("%s: the other server was called", era)
			}
			for _, name := range []string{"c1__refresh", "c2__refresh"} {
				if got := textOf(host.call(name)); strings.HasPrefix(got, "refresh of") != strings.HasPrefix(name, first) {
					t.Errorf("%s: %s: %q", era, name, got)
				}
			}
		}
	}
}

// TestPagesArePinned: a page is shown once a person has approved it, and not after any of it
// has changed. The tool answers in text all the time.
func TestPagesArePinned(t *testing.T) {
	dir := t.TempDir()
	s := newAppServer("ui://map/app.html", html).serve()
	s.ui = map[string]any{"csp": map[string]any{"connectDomains": []string{"https://a.example.com"}}}
	const label = "maps ui ui://map/app.html"
	open := func(o options.Apps, mode options.PinMode) (*gateway.Gateway, *appHost) {
		g := start(t, gateway.Config{
			Recorder: new(records), Policy: grantingServers("maps"), Servers: []options.Endpoint{s.endpoint("maps", o)},
			Pins: &options.Pins{Mode: mode, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")},
		})
		if err := g.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g, newAppHost(t, g, rig.Old, true)
	}
	shown := func(what string, host *appHost, want bool) {
		t.Helper()
		tool := host.tools()["maps__show"]
		if tool.IsZero() || !strings.HasPrefix(textOf(host.call("maps__show")), "show of") {
			t.Errorf("%s: the tool does not answer", what)
		}
		if got := !tool.At("/_meta/ui").IsZero(); got != want {
			t.Errorf("%s: offered with its page: %v", what, got)
		}
		if got := textOf(host.read("ui://maps/map/app.html")) == s.html; got != want {
			t.Errorf("%s: read: %v", what, got)
		}
		if got := strings.HasPrefix(textOf(host.call("maps__refresh")), "refresh of"); got != want {
			t.Errorf("%s: the app's tool is called: %v", what, got)
		}
	}
	g, host := open(options.Apps{}, options.PinTrustFirst)
	shown("new", host, false)
	approve(t, g, dir, label)
	shown("approved", host, true)
	stop(t, g)
	for what, change := range map[string]func(){
		"one byte": func() { s.html += " " },
		"wider csp": func() {
			s.ui = map[string]any{"csp": map[string]any{"connectDomains": []string{"https://*.example.com"}}}
		},
		"a permission": func() {
			s.ui = map[string]any{"csp": s.ui["csp"], "permissions": map[string]any{"camera": map[string]any{}}}
		},
		"another domain": func() { s.ui = map[string]any{"csp": s.ui["csp"], "domain": "x.example.com"} },
	} {
		before, ui := s.html, s.ui
		change()
		g, host := open(options.Apps{On: true}, options.PinTrustFirst)
		host.session = ""
		host.open()
		pins, err := g.Operator().Pins()
		if err != nil {
			t.Fatal(err)
		}
		review, err := pins.(*lock.Pins).Review(label, nil)
		if err != nil || len(review.Differences) != 1 || len(review.Differences[0].Changes) == 0 {
			t.Errorf("%s: review %v, %v", what, review, err)
		}
		if got := host.tools()["maps__show"]; !got.At("/_meta/ui").IsZero() {
			t.Errorf("%s: offered with its page", what)
		}
		if got := textOf(host.read("ui://maps/map/app.html")); got == s.html {
			t.Errorf("%s: shown", what)
		}
		s.html, s.ui = before, ui
		stop(t, g)
	}
}

// TestToolsWithPagesArePinned: a tool that leads elsewhere than when it was approved, or that
// others may call, is not offered.
func TestToolsWithPagesArePinned(t *testing.T) {
	dir := t.TempDir()
	for _, now := range []struct {
		ui      map[string]any
		offered bool
	}{
		{map[string]any{"resourceUri": "ui://map/app.html"}, true},
		{map[string]any{"resourceUri": "ui://map/app.html"}, true},
		{map[string]any{"resourceUri": "ui://map/other.html"}, false},
		{map[string]any{"resourceUri": "ui://map/app.html", "visibility": []string{"model"}}, false},
		{map[string]any{}, false},
	} {
		s := newAppServer("ui://map/app.html", html).serve()
		s.addTool("show", now.ui)
		g := start(t, gateway.Config{
			Recorder: new(records), Policy: grantingServers("maps"), Servers: []options.Endpoint{s.endpoint("maps", options.Apps{On: true})},
			Pins: &options.Pins{Mode: options.PinTrustFirst, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")},
		})
		if err := g.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		host := newAppHost(t, g, rig.Newest, true)
		if got := !host.tools()["maps__show"].IsZero(); got != now.offered {
			t.Errorf("%v: offered: %v", now.ui, got)
		}
		if got := strings.HasPrefix(textOf(host.call("maps__show")), "show of"); got != now.offered {
			t.Errorf("%v: called: %v", now.ui, got)
		}
		stop(t, g)
	}
}

// TestPartsOfPagesArePinned: an approval covers the bytes, what the page asks for, or nothing.
func TestPartsOfPagesArePinned(t *testing.T) {
	for name, tt := range map[string]struct {
		o           options.Apps
		bytes, asks bool // whether a page is shown after a change of these
	}{
		"bytes":  {options.Apps{On: true}, false, false},
		"policy": {options.Apps{On: true, PinPolicy: true}, true, false},
		"off":    {options.Apps{On: true, PinOff: true}, true, true},
	} {
		dir := t.TempDir()
		s := newAppServer("ui://map/app.html", html).serve()
		shown := func() bool {
			g := start(t, gateway.Config{
				Recorder: new(records), Policy: grantingServers("maps"), Servers: []options.Endpoint{s.endpoint("maps", tt.o)},
				Pins: &options.Pins{Mode: options.PinTrustFirst, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")},
			})
			defer stop(t, g)
			if err := g.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			return textOf(newAppHost(t, g, rig.Old, true).read("ui://maps/map/app.html")) == s.html
		}
		if !shown() {
			t.Errorf("%s: not shown at first", name)
		}
		s.html += " "
		if got := shown(); got != tt.bytes {
			t.Errorf("%s: shown after a change of its bytes: %v", name, got)
		}
		s.html = strings.TrimSuffix(s.html, " ")
		s.ui = map[string]any{"csp": map[string]any{"connectDomains": []string{"https://a.example.com"}}}
		if got := shown(); got != tt.asks {
			t.Errorf("%s: shown after a change of what it asks for: %v", name, got)
		}
	}
}

// TestAppsOn: what the configuration says decides where nothing of a server was approved.
func TestAppsOn(t *testing.T) {
	for name, tt := range map[string]struct {
		o    options.Apps
		mode options.PinMode
		want bool
	}{
		"nothing said": {options.Apps{}, options.PinTrustFirst, false},
		"on":           {options.Apps{On: true}, options.PinTrustFirst, true},
		"on, strict":   {options.Apps{On: true}, options.PinStrict, false},
		"no pins":      {options.Apps{}, options.PinOff, false},
		"no pins, on":  {options.Apps{On: true}, options.PinOff, true},
		"off":          {options.Apps{Off: true}, options.PinOff, false},
	} {
		dir := t.TempDir()
		s := newAppServer("ui://map/app.html", html).serve()
		open := func(o options.Apps) map[string]gate.Doc {
			g := start(t, gateway.Config{
				Recorder: new(records), Policy: grantingServers("maps"), Servers: []options.Endpoint{s.endpoint("maps", o)},
				Pins: &options.Pins{Mode: tt.mode, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")},
			})
			defer stop(t, g)
			if err := g.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			return newAppHost(t, g, rig.Old, true).resources()
		}
		for range 2 {
			if got := !open(tt.o)["ui://maps/map/app.html"].IsZero(); got != tt.want {
				t.Errorf("%s: the page is listed: %v", name, got)
			}
		}
		if name == "nothing said" { // a server that is known already
			if open(options.Apps{On: true})["ui://maps/map/app.html"].IsZero() {
				t.Error("a server that was seen before shows nothing once apps are on")
			}
		}
	}
}

// TestAppsAreNarrowed to what the configuration allows. The record of a read names what was cut.
func TestAppsAreNarrowed(t *testing.T) {
	s := newAppServer("ui://map/app.html", html)
	s.ui = map[string]any{"csp": map[string]any{"connectDomains": []string{"https://*.example.com", "https://x.org"}, "frameDomains": []string{"https://x.org", "*"}}, "domain": "x.org"}
	s.serve()
	r := new(rig.Records)
	g := start(t, gateway.Config{
		Recorder: r, Policy: grantingServers("maps"),
		Servers: []options.Endpoint{s.endpoint("maps", options.Apps{On: true, Allow: options.AppSources{Connect: []string{"https://a.example.com"}, Frames: []string{}}})},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	host := newAppHost(t, g, rig.Newest, true)
	const want = `{"csp":{"connectDomains":["https://a.example.com"]}}`
	if got := string(host.read("ui://maps/map/app.html").At("/result/contents/0/_meta/ui").Raw()); got != want {
		t.Errorf("read: %s", got)
	}
	read := r.List()
	var cut []string
	for _, f := range read[len(read)-1].Findings {
		cut = append(cut, f.Rule+" "+strings.TrimPrefix(f.At, "/contents/0/_meta/ui"))
	}
	if diff := cmp.Diff([]string{"app/narrowed /csp/connectDomains/1", "app/narrowed /csp/frameDomains/0", "app/cut /csp/frameDomains/1", "app/narrowed /domain"}, cut); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if got := string(host.resources()["ui://maps/map/app.html"].At("/_meta/ui").Raw()); got != want {
		t.Errorf("listed: %s", got)
	}
}

// TestRisksOfPages: a scan and a review of pins name what a page asks for, and what is cut.
func TestRisksOfPages(t *testing.T) {
	s := newAppServer("ui://map/app.html", html)
	s.ui = map[string]any{
		"csp": map[string]any{
			"connectDomains":  []string{"https://a.example.com", "https://b.example.com", "https://c.example.com; connect-src *"},
			"resourceDomains": []string{"https://*.example.com", "*", "https://d.example.com"}, "frameDomains": []string{"https://a.example.com"},
			"baseUriDomains": []string{"https://a.example.com"}, "scriptDomains": []string{"https://a.example.com"},
		},
		"permissions": map[string]any{"camera": map[string]any{}, "clipboardWrite": map[string]any{}, "geolocation": map[string]any{}},
	}
	s.serve()
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: grantingServers("maps"), Pins: &options.Pins{Mode: options.PinTrustFirst, File: filepath.Join(t.TempDir(), lock.FileName), Dir: t.TempDir()},
		Servers: []options.Endpoint{s.endpoint("maps", options.Apps{Allow: options.AppSources{Connect: []string{"https://a.example.com"}, Permissions: []string{"camera", "clipboardWrite"}}})},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"high app/base /csp/baseUriDomains/0", "high app/device /permissions/camera", "high app/frames /csp/frameDomains/0", "high app/injection /csp/connectDomains/2",
		"high app/wildcard /csp/connectDomains/2", "high app/wildcard /csp/resourceDomains/0", "high app/wildcard /csp/resourceDomains/1",
		"low app/clipboard /permissions/clipboardWrite", "low app/narrowed /csp/connectDomains/1", "low app/narrowed /permissions/geolocation",
		"medium app/connect /csp/connectDomains/0", "medium app/cut /csp/resourceDomains/1", "medium app/cut /csp/scriptDomains",
		"medium app/resources /csp/resourceDomains/0", "medium app/resources /csp/resourceDomains/2",
	}
	names := func(found []scan.Finding) (all []string) {
		for _, f := range found {
			all = append(all, f.Severity.String()+" "+f.Rule+" "+f.At)
		}
		slices.Sort(all)
		return all
	}
	scanned, err := report.Servers(t.Context(), g, "maps")
	if err != nil {
		t.Fatal(err)
	}
	var found []scan.Finding
	for _, f := range scanned.Findings {
		if f.Tool == "ui://map/app.html" {
			found = append(found, f.Finding)
		}
	}
	if diff := cmp.Diff(want, names(found)); diff != "" {
		t.Errorf("scan (-want +got):\n%s", diff)
	}
	look, err := report.Look(g)
	if err != nil {
		t.Fatal(err)
	}
	pins, err := g.Operator().Pins()
	if err != nil {
		t.Fatal(err)
	}
	review, err := pins.(*lock.Pins).Review("maps ui ui://map/app.html", look)
	if err != nil || len(review.Differences) != 1 {
		t.Fatalf("review %+v, %v", review, err)
	}
	found = review.Differences[0].Findings
	for _, c := range review.Differences[0].Changes {
		found = append(found, c.Findings...)
	}
	if diff := cmp.Diff(want, names(found)); diff != "" {
		t.Errorf("review (-want +got):\n%s", diff)
	}
	if changes := review.Differences[0].Changes; changes[len(changes)-1].Pointer != "/html" {
		t.Errorf("the HTML is not the last change: %+v", changes)
	}
}

// TestHostilePages are left out alone, and the tool answers in text.
func TestHostilePages(t *testing.T) {
	for name, change := range map[string]func(*appServer){
		"javascript": func(s *appServer) { s.addTool("show", map[string]any{"resourceUri": "javascript:alert(1)"}) },
		"https":      func(s *appServer) { s.addTool("show", map[string]any{"resourceUri": "https://evil.example.com/"}) },
		"of another": func(s *appServer) { s.addTool("show", map[string]any{"resourceUri": "ui://honest/map/app.html"}) },
		"50 MiB":     func(s *appServer) { s.html = strings.Repeat("x", 50<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			evil, honest := newAppServer("ui://map/evil.html", html), newAppServer("ui://map/app.html", html).serve()
			change(evil)
			evil.serve()
			g := start(t, gateway.Config{
				Recorder: new(records), Policy: grantingServers("evil", "honest"),
				Servers: []options.Endpoint{evil.endpoint("evil", options.Apps{On: true}), honest.endpoint("honest", options.Apps{On: true})},
			})
			if err := g.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			host := newAppHost(t, g, rig.Newest, true)
			var tools map[string]gate.Doc
			rig.Within(t, "the tools are offered", func() bool { // after a page that broke the connection, too
				tools = host.tools()
				return !tools["evil__show"].IsZero() && !tools["honest__show"].IsZero()
			})
			if got := tools["evil__show"]; !got.At("/_meta/ui/resourceUri").IsZero() {
				t.Errorf("offered: %s", got)
			}
			if got := tools["honest__show"].At("/_meta/ui/resourceUri").Text(); got != "ui://honest/map/app.html" {
				t.Errorf("the honest server's page is %q", got)
			}
			if name != "50 MiB" && !strings.HasPrefix(textOf(host.call("evil__show")), "show of") {
				t.Error("the tool does not answer in text")
			}
		})
	}
}

// TestLargePage: a page of 4.3 MB arrives byte for byte, and one with a secret does not.
func TestLargePage(t *testing.T) {
	large := newAppServer("ui://pdf/app.html", strings.Repeat("<script>let \u202e\x01 = \"\\n\"</script>\n", 4_300_000/37)).serve()
	leaking := newAppServer("ui://x/app.html", "<script>key = '"+"-----BEGIN "+"PRIVATE KEY-----\n"+strings.Repeat("MIIEvQ9aB3dE/fGh", 20)+"\n-----END "+"PRIVATE KEY-----'</script>").serve()
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: grantingServers("pdf", "x"),
		Servers: []options.Endpoint{large.endpoint("pdf", options.Apps{On: true}), leaking.endpoint("x", options.Apps{On: true})},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	host := newAppHost(t, g, rig.Newest, true)
	for range 2 {
		if textOf(host.read("ui://pdf/pdf/app.html")) != large.html {
			t.Error("the large page differs")
		}
		if got := textOf(host.read("ui://x/x/app.html")); !strings.Contains(got, "the page holds a secret") {
			t.Errorf("a page with a secret is answered with %.200q", got)
		}
	}
}

// TestCatalogWithApps lists what has a page also where only the catalog is listed, to a client
// that shows it.
func TestCatalogWithApps(t *testing.T) {
	g, _, _ := twoApps(t, func(c *gateway.Config) { c.Catalog = gateway.CatalogOnly })
	for renders, want := range map[bool]bool{true: true, false: false} {
		names := newAppHost(t, g, rig.Newest, renders).tools()
		if got := !names["c1__show"].IsZero(); got != want {
			t.Errorf("shows pages %v: %v", renders, names)
		}
	}
	host := newAppHost(t, g, rig.Newest, true)
	host.read("ui://c1/shared/app.html")
	res := host.ask("tools/call", `"name":"catalog__call","arguments":{"name":"c1__refresh","arguments":{}}`)
	if strings.Contains(res.String(), "refresh of") {
		t.Error("the catalog calls what is only for apps")
	}
}

// TestAppInput: policies see what the gateway knows of apps.
func TestAppInput(t *testing.T) {
	const rego = `package wasmgate
deny contains "a page calls while the other is open" if {
	input.app.own_name
	count(input.app.open) > 1
}
deny contains "only for apps" if {
	input.app.only
	not input.app.own_name
}`
	g, _, _ := twoApps(t, func(c *gateway.Config) {
		c.Policy.Files = fstest.MapFS{"apps.rego": {Data: []byte(rego)}}
		c.Policy.Options.Packs = []string{"grants"}
	})
	host := newAppHost(t, g, rig.Newest, true)
	host.call("c1__show")
	if got := textOf(host.call("refresh")); got != "refresh of <p>c1</p>" {
		t.Error(got)
	}
	if got := textOf(host.call("c1__refresh")); !strings.Contains(got, "only for apps") {
		t.Error(got)
	}
}
