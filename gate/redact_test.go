package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
)

// obliged returns a rig whose policy allows under obligations.
func obliged(o ...obligation.Obligation) *rig {
	r := newRig()
	r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Allow, Obligations: o} }
	return r
}

func TestRedactArguments(t *testing.T) {
	tests := map[string]struct {
		pointers []string
		args     string
		want     string
	}{
		"a member":                       {[]string{"/b"}, `{"a": 1, "b": "x", "c":[]}`, `{"a": 1, "b": "[redacted]", "c":[]}`},
		"an element":                     {[]string{"/a/1"}, `{"a":["x","y","z"]}`, `{"a":["x","[redacted]","z"]}`},
		"an object whole":                {[]string{"/a"}, `{"a":{"b":[1,{"c":2}]},"d":3}`, `{"a":"[redacted]","d":3}`},
		"one within another":             {[]string{"/a/b", "/a"}, `{"a":{"b":1}}`, `{"a":"[redacted]"}`},
		"several, in any order":          {[]string{"/c", "/a"}, `{"a":1,"b":2,"c":3}`, `{"a":"[redacted]","b":2,"c":"[redacted]"}`},
		"the same twice":                 {[]string{"/a", "/a"}, `{"a":1}`, `{"a":"[redacted]"}`},
		"names with ~ and /":             {[]string{"/a~1b/c~0d"}, `{"a/b":{"c~d":1}}`, `{"a/b":{"c~d":"[redacted]"}}`},
		"a name that is written escaped": {[]string{"/ssn"}, `{"\u0073sn":"x"}`, `{"\u0073sn":"[redacted]"}`},
		"what is not there":              {[]string{"/x", "/a/0", "/a/b/c"}, `{"a":"x"}`, `{"a":"x"}`},
		"an index with a zero before":    {[]string{"/a/01"}, `{"a":[1,2]}`, `{"a":[1,2]}`},
		"a star, which is a plain name":  {[]string{"/*"}, `{"a":1,"*":2}`, `{"a":1,"*":"[redacted]"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := obliged(obligation.Redact{Arguments: tt.pointers})
			var sent, checked []string
			r.input = func(d gate.Doc) error { checked = append(checked, d.String()); return nil }
			invoke := r.invoke
			r.hosted = func(x ctx, p gate.Permit) (gate.Result, error) {
				c, _, _ := p.Open()
				sent = append(sent, c.Args.String())
				return invoke(x, c)
			}
			c := newCall()
			c.Args = gate.MustDoc(tt.args)
			if _, err := r.do(t, c); err != nil {
				t.Fatal(err)
			}
			if len(sent) != 1 || sent[0] != tt.want {
				t.Errorf("sent %q, want %q", sent, tt.want)
			}
			if checked[0] != tt.args || checked[len(checked)-1] != tt.want {
				t.Errorf("checked %q, want the arguments first and what is sent last", checked)
			}
			for _, rec := range r.records {
				if got := rec.Call.Args.String(); got != tt.want {
					t.Errorf("%s holds %s, want what was sent", rec.Event, got)
				}
			}
		})
	}
}

// What is left of the arguments has to keep to the schema, whether the decision is
// the first or one that is taken again because the session has changed.
func TestRedactedArgumentsKeepToTheSchema(t *testing.T) {
	for name, later := range map[string]bool{"at once": false, "decided again": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			decided := 0
			r.decide = func(gate.Query) gate.Decision {
				decided++
				d := gate.Decision{Effect: gate.Allow}
				if !later || decided > 1 {
					d.Obligations = []obligation.Obligation{obligation.Redact{Arguments: []string{"/path"}}}
				}
				return d
			}
			r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
				if s.Version == 0 {
					s.Version = 1
					return s, gate.ErrStale
				}
				return s, nil
			}
			r.input = func(d gate.Doc) error {
				if d.Get("path").Text() == "[redacted]" {
					return doc.Violations{{Pointer: "/path", Message: "no path"}}
				}
				return nil
			}
			_, err := r.do(t, newCall())
			if gate.Code(err) != "refused_validate_input" || r.count("invoke") > 0 {
				t.Errorf("err = %v, invoked %d times", err, r.count("invoke"))
			}
			if rec := r.done(t); strings.Contains(rec.Call.Args.String(), "/a") {
				t.Errorf("the record holds %s", rec.Call.Args)
			}
		})
	}
}

// The policy decides on what the client sent, each time; what it takes out cannot
// make it forget why.
func TestDecisionsSeeWhatTheClientSent(t *testing.T) {
	r := newRig()
	r.decide = func(q gate.Query) gate.Decision {
		if q.Call.Args.Get("path").Text() != "/a" {
			t.Errorf("decided on %s", q.Call.Args)
		}
		return gate.Decision{Effect: gate.Allow, Obligations: []obligation.Obligation{obligation.Redact{Arguments: []string{"/path"}}}}
	}
	r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
		if s.Version == 0 {
			s.Version = 1
			return s, gate.ErrStale
		}
		return s, nil
	}
	if _, err := r.do(t, newCall()); err != nil || r.count("authorize") != 2 {
		t.Errorf("err = %v after %d decisions", err, r.count("authorize"))
	}
}

func TestRedactResult(t *testing.T) {
	const ssn = "078-05-1120"
	mirrored := func(text string) string {
		return `{"content":[{"type":"text","text":` + text + `}],"structuredContent":{"name":"Al","ssn":"` + ssn + `"}}`
	}
	tests := map[string]struct {
		pointers []string
		result   string
		holds    string // what stays
	}{
		"structured content":                {[]string{"/structuredContent/ssn"}, mirrored(`"done"`), `"name":"Al"`},
		"a text that mirrors it":            {[]string{"/structuredContent/ssn"}, mirrored(`"{\"name\":\"Al\",\"ssn\":\"` + ssn + `\"}"`), `{\"name\":\"Al\",\"ssn\":\"[redacted]\"}`},
		"one with spaces around":            {[]string{"/structuredContent/ssn"}, mirrored(`" {\"name\": \"Al\",\n \"ssn\": \"` + ssn + `\"}\n"`), `\"name\": \"Al\"`},
		"a text that mirrors it otherwise":  {[]string{"/structuredContent/ssn"}, mirrored(`"name: Al, ssn: ` + ssn + `."`), "name: Al, ssn: [redacted]."},
		"a mirror within a mirror":          {[]string{"/structuredContent/ssn"}, mirrored(`"{\"text\":\"{\\\"ssn\\\":\\\"` + ssn + `\\\"}\"}"`), "[redacted]"},
		"a mirror at another place":         {[]string{"/structuredContent/ssn"}, mirrored(`"[{\"id\":\"` + ssn + `\"}]"`), `[{\"id\":\"[redacted]\"}]`},
		"a mirror without a structure":      {[]string{"/structuredContent/ssn"}, `{"content":[{"type":"text","text":"{\"ssn\":\"` + ssn + `\"}"}]}`, "[redacted]"},
		"a failure that mirrors it":         {[]string{"/structuredContent/ssn"}, `{"isError":true,"content":[{"type":"text","text":"{\"ssn\":\"` + ssn + `\"}"}]}`, "[redacted]"},
		"all below":                         {[]string{"/structuredContent/who"}, `{"content":[{"type":"text","text":"` + ssn + `"}],"structuredContent":{"who":{"all":["` + ssn + `"]}}}`, "[redacted]"},
		"a number":                          {[]string{"/structuredContent/n"}, `{"content":[{"type":"text","text":"n is 0780511.20, 078-05-1120"}],"structuredContent":{"n":780511.20,"s":"078-05-1120"}}`, ""},
		"content":                           {[]string{"/content/0/text"}, `{"content":[{"type":"text","text":"` + ssn + `"},{"type":"text","text":"is ` + ssn + `"}]}`, "is [redacted]"},
		"an image's data, and not its copy": {[]string{"/content/0/data"}, `{"content":[{"type":"image","mimeType":"image/png","data":"` + ssn + `"}]}`, "image/png"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := obliged(obligation.Redact{Result: tt.pointers})
			r.tool.Output = nil
			r.invoke = func(ctx, *gate.Call) (gate.Result, error) { return answer(tt.result), nil }
			res, err := r.do(t, newCall())
			if err != nil {
				t.Fatal(err)
			}
			got := res.Doc.String()
			if name != "a number" && strings.Contains(got, ssn) || strings.Contains(got, "780511.20") || !strings.Contains(got, "[redacted]") {
				t.Errorf("result %s", got)
			}
			if !strings.Contains(got, tt.holds) {
				t.Errorf("result %s lacks %s", got, tt.holds)
			}
			if rec := r.done(t); rec.Result.String() != got || len(rec.Findings) == 0 || rec.Findings[0].Rule != "redacted" {
				t.Errorf("recorded %s, findings %v", rec.Result, rec.Findings)
			}
			if len(r.learned) > 0 && strings.Contains(r.learned[0].String(), ssn) && name != "a number" {
				t.Errorf("learned %s", r.learned)
			}
		})
	}
}

func TestRedactResultThatIsNotThere(t *testing.T) {
	r := obliged(obligation.Redact{Result: []string{"/structuredContent/x", "/content/7/text"}})
	const result = `{"content":[{"type":"text","text":"hello"}],"structuredContent":{"a":1}}`
	res, err := r.do(t, newCall())
	if err != nil || res.Doc.String() != result {
		t.Errorf("result %s, error %v", res.Doc, err)
	}
}

// A result that was checked against the schema keeps to it, or is refused.
func TestRedactedResultsKeepToTheSchema(t *testing.T) {
	r := obliged(obligation.Redact{Result: []string{"/structuredContent/a"}})
	r.output = func(d gate.Doc) error {
		if d.Get("a").Kind() != doc.Number {
			return errors.New("a is not a number")
		}
		return nil
	}
	if _, err := r.do(t, newCall()); gate.Code(err) != "refused_sanitize" {
		t.Errorf("err = %v", err)
	}
}

func TestRecordFull(t *testing.T) {
	for name, o := range map[string][]obligation.Obligation{"obliged": {obligation.RecordFull{}}, "not obliged": nil} {
		r := obliged(o...)
		if _, err := r.do(t, newCall()); err != nil {
			t.Fatal(err)
		}
		for _, rec := range r.records {
			if rec.Full != (o != nil) {
				t.Errorf("%s: %s: full is %v", name, rec.Event, rec.Full)
			}
		}
	}
}

// What is allowed under the obligation to ask is asked: without anybody to ask it is
// refused.
func TestApproveAsks(t *testing.T) {
	r := obliged(obligation.Approve{})
	_, err := r.do(t, newCall())
	if gate.Code(err) != "refused_approve" || r.count("invoke") > 0 {
		t.Errorf("err = %v", err)
	}
	if d := r.done(t).Decision; d.Effect != gate.Ask || len(d.Reasons) == 0 {
		t.Errorf("decision %+v", d)
	}
}

func TestAsked(t *testing.T) {
	asks := []obligation.Obligation{obligation.Redact{Result: []string{"/content/0/text"}}, obligation.Approve{}}
	for name, tt := range map[string]struct {
		d    gate.Decision
		want gate.Effect
	}{
		"an allow with it":    {gate.Decision{Effect: gate.Allow, Obligations: asks}, gate.Ask},
		"an allow without it": {gate.Decision{Effect: gate.Allow, Obligations: asks[:1]}, gate.Allow},
		"an ask":              {gate.Decision{Effect: gate.Ask, Obligations: asks}, gate.Ask},
		"a denial":            {gate.Decision{Effect: gate.Deny, Obligations: asks}, gate.Deny},
		"nothing":             {gate.Decision{Obligations: asks}, ""},
	} {
		if got := tt.d.Asked().Effect; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
