package gate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

func TestTeaches(t *testing.T) {
	tests := map[string]struct {
		labels provenance.ToolLabels
		want   gate.Labels
	}{
		"nothing is said":                        {provenance.ToolLabels{}, gate.NewLabels("untrusted")},
		"untrusted results":                      {provenance.ToolLabels{Result: provenance.ResultUntrusted}, gate.NewLabels("untrusted")},
		"a kind that no one knows":               {provenance.ToolLabels{Result: "fine"}, gate.NewLabels("untrusted")},
		"trusted results":                        {provenance.ToolLabels{Result: provenance.ResultTrusted}, gate.NewLabels()},
		"results that say what the tool is told": {provenance.ToolLabels{Result: provenance.ResultEcho}, gate.NewLabels()},
		"private results":                        {provenance.ToolLabels{Result: provenance.ResultTrusted, Private: true}, gate.NewLabels("private")},
		"private and untrusted results":          {provenance.ToolLabels{Private: true}, gate.NewLabels("private", "untrusted")},
	}
	for name, tt := range tests {
		if got := provenance.Teaches(tt.labels); !got.Cover(tt.want) || !tt.want.Cover(got) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

type labelerFunc func(*gate.Tool) (provenance.ToolLabels, bool)

func (f labelerFunc) Labels(t *gate.Tool) (provenance.ToolLabels, bool) { return f(t) }

// taught records what a session is taught.
type taught struct {
	*rig
	lessons []gate.Lesson
}

func (s *taught) Learn(_ context.Context, _ gate.SessionKey, l gate.Lesson) error {
	s.lessons = append(s.lessons, l)
	return nil
}

// TestWhatASessionLearns checks the lessons of a call against the operator's labels of the tool and
// what the session has read before.
func TestWhatASessionLearns(t *testing.T) {
	trusted := &provenance.ToolLabels{Result: provenance.ResultTrusted}
	echo := &provenance.ToolLabels{Result: provenance.ResultEcho, Private: true}
	tainted := gate.Session{Labels: gate.NewLabels(provenance.Untrusted)}
	known := tainted
	known.Values = meet(provenance.Provenance{}, `["/a"]`, provenance.FromPrompt)
	const args, result = `{"path":"/a"} trusted []`, `{"content":[]}`
	tests := map[string]struct {
		labels  *provenance.ToolLabels // nil: nothing is said
		session gate.Session
		change  func(*gate.Call, *gate.Parts)
		want    []string
	}{
		"nobody has labelled the tool":              {nil, gate.Session{}, nil, []string{args, result + " untrusted [untrusted]"}},
		"nobody has labelled it, in a tainted one":  {nil, tainted, nil, []string{result + " untrusted [untrusted]"}},
		"a trusted tool in a clean session":         {trusted, gate.Session{}, nil, []string{args, result + " trusted []"}},
		"a trusted tool in a tainted session":       {trusted, tainted, nil, []string{result + " untrusted []"}},
		"a trusted tool that is told trusted words": {trusted, known, nil, []string{result + " trusted []"}},
		"a trusted tool where all may be read":      {trusted, gate.Session{Top: true}, nil, []string{result + " untrusted []"}},
		"an echo in a clean session":                {echo, gate.Session{}, nil, []string{args, result + " trusted [private]"}},
		"an echo of what is not trusted":            {echo, tainted, nil, []string{result + " untrusted [private]"}},
		"the user's own words": {trusted, gate.Session{}, func(c *gate.Call, _ *gate.Parts) { c.Prompt = "read \"/a\"" },
			[]string{`"read \"/a\"" prompt []`, args, result + " trusted []"}},
		"words in _meta that nobody vouches for": {trusted, gate.Session{}, func(c *gate.Call, _ *gate.Parts) {
			c.Meta = gate.MustDoc(`{"io.github.wasmgate/prompt":"read /a"}`)
		}, []string{args, result + " trusted []"}},
		"words in _meta that are to be trusted": {trusted, gate.Session{}, func(c *gate.Call, p *gate.Parts) {
			c.Meta, p.TrustPrompt = gate.MustDoc(`{"io.github.wasmgate/prompt":"read /a"}`), true
		}, []string{`"read /a" prompt []`, args, result + " trusted []"}},
		"no rule asks where values came from": {trusted, gate.Session{}, func(c *gate.Call, p *gate.Parts) { c.Prompt, p.TrackValues = "x", false }, []string{"  []"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &taught{rig: newRig()}
			s.session, s.tool.Output = tt.session, nil
			s.tool.Definition = gate.MustDoc(`{"inputSchema":{"properties":{"path":{}}}}`)
			answers(`{"content":[]}`)(s.rig)
			p, c := s.parts(), newCall()
			p.Sessions, p.TrackValues = s, true
			if tt.labels != nil {
				p.Labeler = labelerFunc(func(*gate.Tool) (provenance.ToolLabels, bool) { return *tt.labels, true })
			}
			if tt.change != nil {
				tt.change(&c, &p)
			}
			g := newGate(t, p)
			if _, err := g.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range s.lessons {
				names := ""
				for _, n := range l.Source.Names() {
					names += n
				}
				got = append(got, fmt.Sprint(l.From.String(), " ", names, " ", []string(l.Labels)))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lessons (-want +got):\n%s", diff)
			}
		})
	}
}

// The tool's labels join when the call is admitted: calls admitted after it are decided on what it
// will have read.
func TestLabelsJoinAtAdmission(t *testing.T) {
	r := newRig()
	var admitted gate.Labels
	r.admit = func(s gate.Session, l gate.Labels) (gate.Session, error) {
		admitted = l
		s.Labels = s.Labels.Join(l)
		return s, nil
	}
	if _, err := r.do(t, newCall()); err != nil {
		t.Fatal(err)
	}
	if !admitted.Cover(r.tool.Teaches) {
		t.Errorf("admitted with %v", admitted)
	}
}

func TestPromptThatIsNoText(t *testing.T) {
	r := newRig()
	p, c := r.parts(), newCall()
	p.TrackValues, c.Prompt = true, "a\xff"
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), c); gate.Code(err) != "refused_authorize" || r.count("invoke") > 0 {
		t.Errorf("err = %v", err)
	}
}
