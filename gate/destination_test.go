package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
)

// there approves what it is asked about, and its destinations; if beside is set, the values next to
// them as well.
type there struct {
	asked  []gate.Question
	n      int // how often
	beside bool
	narrow bool // the call alone is approved
}

func (a *there) Approve(_ context.Context, q gate.Question) (gate.Approval, error) {
	a.asked = append(a.asked, q)
	a.n++
	approval := gate.Approval{ID: fmt.Sprintf("a-%d", a.n), By: "cli:local", Destinations: q.Destinations}
	switch {
	case a.narrow:
		approval.Destinations = nil
	case a.beside:
		approval.Destinations = slices.Concat(q.Destinations, q.Beside)
	}
	return approval, nil
}

// asking asks about calls whose destination or content no trusted source has named.
type asking struct{ *scene }

func (a asking) Authorize(ctx context.Context, q gate.Query) (gate.Decision, error) {
	d, err := a.scene.Authorize(ctx, q)
	for pointer, arg := range a.seen {
		if !arg.Source.Trusted() && (pointer == "/to" || strings.HasPrefix(pointer, "/to/") || pointer == "/text" && strings.Contains(arg.Text, "@")) {
			d.Effect, d.Reasons = gate.Ask, []string{"nobody has named " + pointer}
		}
	}
	return d, err
}

// An approval of a destination is for one session, one server and arguments that say to
// whom or where; it ends when it is revoked, and with the session.
func TestDestinations(t *testing.T) {
	to := provenance.ToolLabels{Effects: external, To: []string{"/to"}, Content: []string{"/text"}}
	s := newScene(t, map[string]provenance.ToolLabels{"mail__read": {Effects: read}, "mail__send": to, "mail__draft": to, "chat__post": to})
	sessions, person := session.New(session.Options{}), new(there)
	p := s.gate.Parts()
	p.Sessions, p.Approver, p.Authorizer = sessions, person, asking{s}
	s.gate = newGate(t, p)
	asks := func(tool, args string) bool {
		t.Helper()
		before := len(person.asked)
		s.does(tool, args, "")
		return len(person.asked) > before
	}
	read := s.does("mail__read", "{}", `{"from":"Lily <lily@corp.example>"}`)
	if !asks("mail__send", `{"to":"lily@corp.example","text":"hello"}`) {
		t.Fatal("nobody is asked")
	}
	if text := person.asked[0].Inquiry().Text(); !strings.Contains(text, "No trusted source has named lily@corp.example") || !strings.Contains(text, "/from of mail__read (call "+read+")") || !strings.Contains(text, "The session has read: untrusted") {
		t.Errorf("the question does not show the way:\n%s", text)
	}
	for _, same := range [][2]string{{"mail__send", `{"to":"LILY@corp.example","text":"more"}`}, {"mail__draft", `{"to":"lily@corp.example"}`}} {
		if asks(same[0], same[1]) {
			t.Errorf("asked again about %s %s", same[0], same[1])
		}
	}
	s.call.Who = &gate.Principal{Owner: gate.Owner{ID: "ann"}}
	if !asks("mail__send", `{"to":"lily@corp.example"}`) {
		t.Error("it holds in another session")
	}
	s.call.Who = nil
	for _, list := range []string{"lily@corp.example,eve@evil.example", "eve@evil.example; lily@corp.example", "lily@corp.example <eve@evil.example>"} {
		person.narrow = true
		if !asks("mail__send", `{"to":"`+list+`"}`) {
			t.Errorf("not asked about %s", list)
		}
	}
	person.narrow = false
	for _, other := range [][2]string{{"mail__send", `{"to":"eve@evil.example"}`}, {"mail__send", `{"text":"lily@corp.example"}`}, {"mail__send", `{"to":{"eve@evil.example":"lily@corp.example"}}`}} {
		person.asked = nil
		if !asks(other[0], other[1]) && !strings.Contains(other[1], "{\"eve") {
			t.Errorf("not asked about %s %s", other[0], other[1])
		}
	}
	if asks("chat__post", `{"text":"x"}`) || !asks("chat__post", `{"to":"lily@corp.example"}`) {
		t.Error("it holds at another server")
	}
	if gone, err := sessions.Revoke("a-1"); err != nil || len(gone) == 0 {
		t.Fatal(gone, err)
	}
	if _, err := sessions.Revoke("a-1"); err == nil {
		t.Error("what is not there was revoked")
	}
	if !asks("mail__send", `{"to":"lily@corp.example"}`) {
		t.Error("it holds after it was revoked")
	}
	for _, state := range sessions.List() {
		if err := sessions.Reset(t.Context(), state.Key, state.Version, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.does("mail__read", "{}", `{"from":"x"}`)
	if !asks("mail__send", `{"to":"lily@corp.example"}`) {
		t.Error("it holds in a session that was reset")
	}
}

// The values next to a destination are those at the same place of the same result: a question shows
// all of them, or none.
func TestBeside(t *testing.T) {
	to := provenance.ToolLabels{Effects: external, To: []string{"/to"}, Content: []string{"/text"}}
	many := make([]string, 11)
	for i := range many {
		many[i] = fmt.Sprintf("person%d@corp.example", i)
	}
	long := strings.Repeat("a", 120) + "@corp.example"
	for name, tt := range map[string]struct {
		result string
		to     string // JSON; empty is lily only
		at     string
		beside []string
	}{
		"elements":                    {result: `{"to":["lily@corp.example","Bob <bob@corp.example>","LILY@corp.example"],"cc":["eve@evil.example"]}`, at: "/to/*", beside: []string{"bob@corp.example"}},
		"members of elements":         {result: `{"items":[{"from":"lily@corp.example","about":"eve@evil.example"},{"from":"bob@corp.example"}]}`, at: "/items/*/from", beside: []string{"bob@corp.example"}},
		"names of members":            {result: `{"a":{"lily@corp.example":"r","bob@corp.example":"w"},"b":{"eve@evil.example":"r"}}`, at: "/a", beside: []string{"bob@corp.example"}},
		"one text of several":         {result: `[{"body":"lily@corp.example and bob@corp.example"},{"body":"eve@evil.example, lily2@corp.example"}]`, at: "/0/body", beside: []string{"bob@corp.example"}},
		"all of the call's":           {result: `["lily@corp.example","bob@corp.example","ann@corp.example"]`, to: `["bob@corp.example","lily@corp.example"]`, at: "/*", beside: []string{"ann@corp.example"}},
		"not all":                     {result: `["lily@corp.example","bob@corp.example"]`, to: `["lily@corp.example","eve@evil.example"]`},
		"alone":                       {result: `{"to":"lily@corp.example","cc":"bob@corp.example"}`},
		"more than are read":          {result: `["lily@corp.example","` + strings.Join(many, `","`) + `"]`},
		"one that looks like another": {result: `["lily@corp.example","bob@corp.example","bоb@corp.example"]`},
		"one that is not shown whole": {result: `["lily@corp.example","bob@corp.example","` + long + `"]`},
		"one that is trusted":         {result: `["lily@corp.example","me@home.example"]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, map[string]provenance.ToolLabels{"mail__read": {Effects: read}, "mail__send": to})
			s.call.Who = &gate.Principal{Owner: gate.Owner{ID: "ann"}, Identities: provenance.Identities{"@home.example"}}
			person := &there{beside: true}
			p := s.gate.Parts()
			p.Sessions, p.Approver, p.Authorizer = session.New(session.Options{}), person, asking{s}
			s.gate = newGate(t, p)
			call := s.does("mail__read", "{}", tt.result)
			if tt.to == "" {
				tt.to = `"lily@corp.example"`
			}
			s.does("mail__send", `{"to":`+tt.to+`}`, "")
			if len(person.asked) == 0 {
				t.Fatal("nobody is asked")
			}
			q := person.asked[0]
			if !slices.Equal(q.Beside, tt.beside) || tt.beside != nil && (q.BesideOf.Place != tt.at || q.BesideOf.Call != call || q.BesideOf.Tool != "mail__read") {
				t.Errorf("%q at %+v", q.Beside, q.BesideOf)
			}
			text := q.Inquiry().Text()
			if shown := strings.Contains(text, "An answer can also cover the other values at "+tt.at+" of mail__read (call "+call+"): "+strings.Join(tt.beside, ", ")); shown != (tt.beside != nil) {
				t.Errorf("the question is\n%s", text)
			}
		})
	}
}

// A person that approves the values next to a destination is not asked about these again, and is
// asked about all else as before.
func TestBesideIsApproved(t *testing.T) {
	to := provenance.ToolLabels{Effects: external, To: []string{"/to"}, Content: []string{"/text"}}
	s := newScene(t, map[string]provenance.ToolLabels{"mail__read": {Effects: read}, "mail__send": to, "chat__post": to})
	sessions, person := session.New(session.Options{}), &there{beside: true}
	p := s.gate.Parts()
	p.Sessions, p.Approver, p.Authorizer = sessions, person, asking{s}
	s.gate = newGate(t, p)
	asks := func(tool, args string) bool {
		t.Helper()
		before := len(person.asked)
		s.does(tool, args, "")
		return len(person.asked) > before
	}
	s.does("mail__read", "{}", `{"to":["lily@corp.example","bob@corp.example"],"cc":["eve@evil.example","lily@corp.example"]}`)
	s.does("mail__read", "{}", `["bob@corp.example","mallory@evil.example"]`)
	if !asks("mail__send", `{"to":"lily@corp.example"}`) || asks("mail__send", `{"to":"bob@corp.example"}`) {
		t.Error("whom the question has shown is asked about again")
	}
	s.does("mail__read", "{}", `["lily@corp.example","late@evil.example"]`)
	for _, args := range []string{`{"to":"eve@evil.example"}`, `{"to":"late@evil.example"}`, `{"to":"x","text":"mallory@evil.example"}`} {
		person.beside = false
		if !asks("mail__send", args) {
			t.Errorf("not asked about %s", args)
		}
	}
	if !asks("chat__post", `{"to":"bob@corp.example"}`) {
		t.Error("it holds at another server")
	}
	if gone, err := sessions.Revoke("a-1"); err != nil || len(gone) != 2 {
		t.Errorf("revoked %v: %v", gone, err)
	}
	if !asks("mail__send", `{"to":"bob@corp.example"}`) {
		t.Error("it holds after it was revoked")
	}
}

// keeping keeps records.
type keeping struct{ all []gate.Record }

func (k *keeping) Record(_ context.Context, r *gate.Record) error {
	k.all = append(k.all, *r)
	return nil
}

// The record of a call that was not simply allowed says where its values were met, and nothing that
// anybody else has written.
func TestRecordsSayWhereValuesWereMet(t *testing.T) {
	to := provenance.ToolLabels{Effects: external, To: []string{"/to"}, Content: []string{"/text"}}
	s := newScene(t, map[string]provenance.ToolLabels{"mail__read": {Effects: read}, "mail__send": to})
	kept := new(keeping)
	p := s.gate.Parts()
	p.Sessions, p.Approver, p.Authorizer, p.Recorder = session.New(session.Options{}), new(there), asking{s}, kept
	s.gate = newGate(t, p)
	call := s.does("mail__read", "{}", `{"from":"eve@evil.example","tell her all":{"a b@c":"eve@evil.example"}}`)
	s.does("mail__send", `{"to":"eve@evil.example","text":"x"}`, "")
	s.does("mail__send", `{"to":"eve@evil.example","text":"y"}`, "")
	var met [][]string
	for _, r := range kept.all {
		if r.Event == gate.Done && r.Tool.Name.Tool == "send" {
			met = append(met, r.Met)
		}
	}
	if len(met) != 2 || len(met[0]) == 0 || met[1] != nil {
		t.Fatalf("met: %q; want some of the first call and none of the second, whose destination is approved", met)
	}
	all := strings.Join(met[0], "\n")
	if !strings.Contains(all, "/to: untrusted, at /") || !strings.Contains(all, " of mail__read in call "+call) || strings.Contains(all, "tell") || strings.Contains(all, "@") {
		t.Errorf("met: %s", all)
	}
}
