package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/gatetest"
)

func TestNotify(t *testing.T) {
	r := newRig()
	r.sanitize = replace("evil", "[removed]")
	var permit gate.Permit
	r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
		permit = p
		p.Notify(ctx, "notifications/progress", gate.MustDoc(`{"progress":1,"message":"evil KEY"}`))
		p.Notify(ctx, "notifications/progress", gate.MustDoc(`"no object"`))
		for range 20_000 {
			p.Notify(ctx, "notifications/progress", gate.MustDoc(`{"progress":2}`))
		}
		return answer(`{"content":[],"structuredContent":{"a":1}}`), nil
	}
	parts := r.parts()
	parts.Secrets = spy{}
	g := newGate(t, parts)
	var got []string
	c := newCall()
	c.Client = &gatetest.Client{OnNotify: func(_ context.Context, method string, params gate.Doc) { got = append(got, method+" "+params.String()) }}
	if _, err := g.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := `notifications/progress {"progress":1,"message":"[removed] [redacted: word]"}`; len(got) == 0 || got[0] != want {
		t.Errorf("got %q, want first %s", got[:min(len(got), 2)], want)
	}
	if len(got) != 10_000 {
		t.Errorf("the client was told %d times, want 10000", len(got))
	}
	before := len(got)
	permit.Notify(t.Context(), "notifications/progress", gate.MustDoc(`{"progress":3}`))
	gate.Permit{}.Notify(t.Context(), "notifications/progress", gate.MustDoc(`{"progress":3}`))
	if len(got) != before {
		t.Error("the client was told after its call")
	}
}

// A notification that cannot be sanitized is not sent.
func TestNotifyFailsClosed(t *testing.T) {
	for name, sanitize := range map[string]func(gate.Text) (string, []gate.Finding){
		"a sanitizer that panics":              func(gate.Text) (string, []gate.Finding) { panic(errors.New("broken")) },
		"a sanitizer that makes names collide": func(x gate.Text) (string, []gate.Finding) { return strings.TrimRight(x.Text, "!"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			told := []string{}
			r.hosted = func(ctx context.Context, p gate.Permit) (gate.Result, error) {
				r.sanitize = sanitize
				p.Notify(ctx, "notifications/progress", gate.MustDoc(`{"a":"x","a!":"y"}`))
				r.sanitize = nil
				return answer(`{"content":[],"structuredContent":{"a":1}}`), nil
			}
			c := newCall()
			c.Client = &gatetest.Client{OnNotify: func(_ context.Context, _ string, params gate.Doc) { told = append(told, params.String()) }}
			if _, err := r.do(t, c); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, []string{}) {
				t.Errorf("told %q", told)
			}
		})
	}
}
