package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func TestNarrowingIntersect(t *testing.T) {
	tests := map[string]struct{ a, b, want obligation.Narrowing }{
		"nothing narrows nothing": {},
		"one alone": {
			obligation.Narrowing{HTTP: []string{"https://b", "https://a"}, NoKV: true, Fuel: 5, Timeout: time.Second}, obligation.Narrowing{},
			obligation.Narrowing{HTTP: []string{"https://a", "https://b"}, NoKV: true, Fuel: 5, Timeout: time.Second},
		},
		"what both leave": {
			obligation.Narrowing{HTTP: []string{"https://a", "https://b"}, Secrets: []string{"A", "B"}, Fuel: 5, Timeout: time.Hour},
			obligation.Narrowing{HTTP: []string{"https://b", "https://c"}, Secrets: []string{"B"}, Fuel: 9, Timeout: time.Second},
			obligation.Narrowing{HTTP: []string{"https://b"}, Secrets: []string{"B"}, Fuel: 5, Timeout: time.Second},
		},
		"nothing in common is nothing, not everything": {
			obligation.Narrowing{HTTP: []string{"https://a"}, Dirs: []string{"/a"}, Secrets: []string{"A"}},
			obligation.Narrowing{HTTP: []string{"https://b"}, Dirs: []string{"/ab"}, Secrets: []string{}},
			obligation.Narrowing{HTTP: []string{}, Dirs: []string{}, Secrets: []string{}},
		},
		"of two directories the deeper one": {
			obligation.Narrowing{Dirs: []string{"/srv/docs/a", "/var"}}, obligation.Narrowing{Dirs: []string{"/srv/docs", "/var/log", "/var/lib"}},
			obligation.Narrowing{Dirs: []string{"/srv/docs/a", "/var/lib", "/var/log"}},
		},
		"everything is below the root": {
			obligation.Narrowing{Dirs: []string{"/"}}, obligation.Narrowing{Dirs: []string{"/srv"}}, obligation.Narrowing{Dirs: []string{"/srv"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.a.Intersect(tt.b)); diff != "" {
				t.Errorf("a with b (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, tt.b.Intersect(tt.a)); diff != "" {
				t.Errorf("b with a (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, tt.want.Intersect(tt.a).Intersect(tt.b)); diff != "" {
				t.Errorf("once more (-want +got):\n%s", diff)
			}
		})
	}
}

// What an intersection leaves, each of its parts leaves, whatever they are.
func TestNarrowingNeverWidens(t *testing.T) {
	r := seed.Rand(t)
	names := []string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/b", "A", "B"}
	some := func() []string {
		if r.IntN(4) == 0 {
			return nil
		}
		list := []string{}
		for _, s := range names {
			if r.IntN(2) == 0 {
				list = append(list, s)
			}
		}
		return list
	}
	for range 2000 {
		a := obligation.Narrowing{HTTP: some(), Secrets: some(), Dirs: some(), NoKV: r.IntN(2) == 0, Fuel: r.Uint64N(3), Timeout: time.Duration(r.Int64N(3))}
		b := obligation.Narrowing{HTTP: some(), Secrets: some(), Dirs: some(), NoKV: r.IntN(2) == 0, Fuel: r.Uint64N(3), Timeout: time.Duration(r.Int64N(3))}
		both := a.Intersect(b)
		for _, s := range names {
			if both.Origin(s) != (a.Origin(s) && b.Origin(s)) || both.Secret(s) != (a.Secret(s) && b.Secret(s)) {
				t.Fatalf("%+v and %+v leave %+v, which is wrong of %q", a, b, both, s)
			}
			if covers(both.Dir("/"), s) != (covers(a.Dir("/"), s) && covers(b.Dir("/"), s)) {
				t.Fatalf("%+v and %+v leave %+v, which is wrong of the directory %q", a, b, both, s)
			}
		}
		if both.NoKV != (a.NoKV || b.NoKV) || both.Fuel == 0 && a.Fuel+b.Fuel > 0 || a.Fuel > 0 && both.Fuel > a.Fuel ||
			b.Timeout > 0 && (both.Timeout > b.Timeout || both.Timeout == 0) {
			t.Fatalf("%+v and %+v leave %+v", a, b, both)
		}
	}
}

// covers reports whether a path is in one of the directories.
func covers(dirs []string, path string) bool {
	for _, d := range dirs {
		if path == d || d == "/" && path[0] == '/' || len(path) > len(d) && path[:len(d)+1] == d+"/" {
			return true
		}
	}
	return false
}

func TestNarrowingLeaves(t *testing.T) {
	n := obligation.Narrowing{HTTP: []string{"https://a"}, Dirs: []string{"/srv/docs", "/var/lib/x"}, Secrets: []string{}}
	if !n.Origin("https://a") || n.Origin("https://a:8443") || n.Origin("http://a") || n.Secret("A") {
		t.Error("an origin or a secret is left that is not named, or the other way round")
	}
	if free := (obligation.Narrowing{}); !free.Origin("https://a") || !free.Secret("A") {
		t.Error("the zero narrowing narrows")
	}
	for dir, want := range map[string][]string{
		"/srv/docs": {"/srv/docs"}, "/srv/docs/a": {"/srv/docs/a"}, "/srv": {"/srv/docs"}, "/": {"/srv/docs", "/var/lib/x"}, "/srv/docsx": {}, "/etc": {},
	} {
		if diff := cmp.Diff(want, n.Dir(dir)); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", dir, diff)
		}
	}
	if diff := cmp.Diff([]string{"/etc"}, (obligation.Narrowing{}).Dir("/etc")); diff != "" {
		t.Errorf("the zero narrowing (-want +got):\n%s", diff)
	}
}

func TestNarrowingReachesTheUpstream(t *testing.T) {
	a := obligation.Narrowing{HTTP: []string{"https://a", "https://b"}, Fuel: 9}
	b := obligation.Narrowing{HTTP: []string{"https://b"}, Timeout: time.Second}
	some := obligation.Narrowing{Scopes: []string{"read", "write"}, TTL: time.Minute}
	tests := map[string]struct {
		obligations []obligation.Obligation
		sandboxed   bool
		want        obligation.Narrowing
		code        string
		login       bool
	}{
		"none":                        {nil, true, obligation.Narrowing{}, "ok", false},
		"one":                         {[]obligation.Obligation{b}, true, b, "ok", false},
		"two are one":                 {[]obligation.Obligation{a, b}, true, obligation.Narrowing{HTTP: []string{"https://b"}, Fuel: 9, Timeout: time.Second}, "ok", false},
		"none, in no sandbox":         {nil, false, obligation.Narrowing{}, "ok", false},
		"one, in no sandbox":          {[]obligation.Obligation{b}, false, obligation.Narrowing{}, "refused_authorize", false},
		"an empty one, in no sandbox": {[]obligation.Obligation{obligation.Narrowing{}}, false, obligation.Narrowing{}, "refused_authorize", true},
		"a part of a login":           {[]obligation.Obligation{some}, false, some, "ok", true},
		"two parts of a login":        {[]obligation.Obligation{some, obligation.Narrowing{Scopes: []string{"write"}, TTL: time.Hour}}, false, obligation.Narrowing{Scopes: []string{"write"}, TTL: time.Minute}, "ok", true},
		"a part of no login":          {[]obligation.Obligation{some}, false, obligation.Narrowing{}, "refused_credential", false},
		"in the sandbox, of no login": {[]obligation.Obligation{some}, true, obligation.Narrowing{}, "refused_credential", false},
		"of a login, and of a module": {[]obligation.Obligation{some, b}, false, obligation.Narrowing{}, "refused_authorize", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.tool.Sandboxed, r.tool.Login = tt.sandboxed, tt.login
			decides(gate.Decision{Effect: gate.Allow, Obligations: tt.obligations})(r)
			var got obligation.Narrowing
			r.hosted = func(_ context.Context, p gate.Permit) (gate.Result, error) {
				got = p.Narrowing()
				return answer(`{"structuredContent":1}`), nil
			}
			_, err := r.do(t, newCall())
			if gate.Code(err) != tt.code || (r.count("invoke") > 0) != (tt.code == "ok") {
				t.Errorf("err = %v, trace = %v; want %s", err, r.trace, tt.code)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the upstream got (-want +got):\n%s", diff)
			}
		})
	}
	none := (gate.Permit{}).Narrowing()
	if none.Origin("https://a") || none.Secret("A") || len(none.Dir("/")) > 0 || !none.NoKV || none.Fuel != 1 || none.Timeout != 1 || len(none.Scopes) > 0 || none.Scopes == nil {
		t.Errorf("the zero permit leaves %+v", none)
	}
}
