package gate_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
)

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := gate.NewID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("id = %q, seen: %t", id, seen[id])
		}
		seen[id] = true
	}
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for range 1000 {
			ids = append(ids, gate.NewID())
			time.Sleep(time.Millisecond)
		}
		if !slices.IsSorted(ids) {
			t.Error("ids of later milliseconds do not sort behind those of earlier ones")
		}
		// synctest begins at 2000-01-01T00:00:00Z, which is 946684800000 ms.
		if want := "00dc6acf-ac00-7"; !strings.HasPrefix(ids[0], want) {
			t.Errorf("id = %s, want the time in front, %s", ids[0], want)
		}
	})
}

func TestParseToolName(t *testing.T) {
	tests := map[string]gate.ToolName{
		"files__read":     {Server: "files", Tool: "read"},
		"a__b__c":         {Server: "a", Tool: "b__c"},
		"a___b":           {Server: "a", Tool: "_b"},
		"a____":           {Server: "a", Tool: "__"},
		"0-a__A-z_9":      {Server: "0-a", Tool: "A-z_9"},
		"files-2__-":      {Server: "files-2", Tool: "-"},
		"files":           {},
		"files_read":      {},
		"files__":         {},
		"__read":          {},
		"__":              {},
		"":                {},
		"Files__read":     {},
		"-files__read":    {},
		"fi_les__read":    {},
		"files__re.ad":    {},
		"files__re ad":    {},
		"files__read\n":   {},
		"files\n__read":   {},
		"files__réad":     {},
		"files__read\x00": {},
		"fіles__read":     {}, // a Cyrillic і
	}
	for s, want := range tests {
		got, err := gate.ParseToolName(s)
		if got != want || (err == nil) != (want != gate.ToolName{}) {
			t.Errorf("ParseToolName(%q) = %#v, %v; want %#v", s, got, err, want)
		}
		if err == nil && got.String() != s {
			t.Errorf("%q is read as %q", s, got)
		}
	}
	if s := (gate.ToolName{}).String(); s != "" {
		t.Errorf("the zero name is %q", s)
	}
	if _, err := gate.NewToolName("a__b", "c"); err == nil {
		t.Error("a server has two underscores: its tools would have two readings")
	}
}

func FuzzParseToolName(f *testing.F) {
	for _, s := range []string{"files__read", "a__b__c", "a___b", "__", "", "files__r\u200bead", "A__b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := gate.ParseToolName(s)
		if err != nil {
			if n != (gate.ToolName{}) {
				t.Fatalf("%q: %#v beside %v", s, n, err)
			}
			return
		}
		if n.String() != s || strings.Contains(n.Server, "_") || n.Server == "" || n.Tool == "" {
			t.Fatalf("%q is read as %#v", s, n)
		}
		if again, err := gate.NewToolName(n.Server, n.Tool); err != nil || again != n {
			t.Fatalf("%q: %#v, %v", s, again, err)
		}
	})
}

func TestLabels(t *testing.T) {
	ab, b := gate.NewLabels("b", "a", "b"), gate.NewLabels("b")
	if diff := cmp.Diff(gate.Labels{"a", "b"}, ab); diff != "" {
		t.Errorf("NewLabels (-want +got):\n%s", diff)
	}
	covers := map[string]struct {
		l, m gate.Labels
		want bool
	}{
		"a set itself":         {ab, ab, true},
		"a part":               {ab, b, true},
		"more":                 {b, ab, false},
		"another":              {b, gate.NewLabels("a"), false},
		"nothing":              {b, nil, true},
		"nothing by nothing":   {nil, nil, true},
		"something by nothing": {nil, b, false},
		"a beginning":          {gate.NewLabels("ab"), gate.NewLabels("a"), false},
	}
	for name, tt := range covers {
		if got := tt.l.Cover(tt.m); got != tt.want {
			t.Errorf("%s: %v covers %v: %t", name, tt.l, tt.m, got)
		}
	}
	c := gate.NewLabels("c", "a")
	joined := ab.Join(c)
	if diff := cmp.Diff(gate.Labels{"a", "b", "c"}, joined); diff != "" {
		t.Errorf("Join (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gate.Labels{{"a", "b"}, {"a", "c"}}, []gate.Labels{ab, c}); diff != "" {
		t.Errorf("Join changed what it joined (-want +got):\n%s", diff)
	}
	if same := ab.Join(b); &same[0] != &ab[0] {
		t.Error("Join copied a set to which nothing was added")
	}
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprint(i))
	}
	if provenance.TooMany(gate.NewLabels(many[:64]...)) || !provenance.TooMany(gate.NewLabels(many...)) || provenance.TooMany(gate.Labels(nil)) {
		t.Error("TooMany is wrong about 0, 64 or 65 labels")
	}
}

func TestCode(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"nothing":                 {nil, "ok"},
		"a refusal":               {&gate.Refusal{Step: step.Lookup}, "refused_lookup"},
		"a refusal with a cause":  {&gate.Refusal{Step: step.Record, Err: codedError("transport")}, "refused_record"},
		"two errors, the first":   {errors.Join(&gate.Refusal{Step: step.Record}, codedError("transport")), "refused_record"},
		"wrapped":                 {fmt.Errorf("x: %w", codedError("not_connected")), "not_connected"},
		"cancelled":               {fmt.Errorf("x: %w", context.Canceled), "cancelled"},
		"its time is over":        {context.DeadlineExceeded, "timeout"},
		"a fault of cancellation": {fmt.Errorf("%w: %w", codedError("timeout"), context.Canceled), "timeout"},
		"unknown":                 {errors.New("transport"), "protocol"},
		"out of the set":          {codedError("transport_failed"), "protocol"},
		"an empty code":           {codedError(""), "protocol"},
		"an error that says ok":   {codedError("ok"), "protocol"},
		"a refusal at no step":    {&gate.Refusal{}, "protocol"},
	}
	for _, code := range allCodes[1:] {
		tests["the code "+code] = struct {
			err  error
			want string
		}{codedError(code), code}
	}
	for name, tt := range tests {
		if got := gate.Code(tt.err); got != tt.want {
			t.Errorf("%s: code = %q, want %q", name, got, tt.want)
		}
	}
	for _, step := range []step.Step{
		step.Parse, step.Lookup, step.Pin, step.App, step.Authorize, step.ValidateInput, step.Approve, step.Limit,
		step.Busy, step.Store, step.Record, step.ValidateOutput, step.Sanitize,
	} {
		if code := (&gate.Refusal{Step: step}).Code(); !slices.Contains(allCodes, code) {
			t.Errorf("step %s has the code %q, which is not in the set", step, code)
		}
	}
}

func TestRefusalError(t *testing.T) {
	r := &gate.Refusal{Step: step.Authorize, Name: "files__read", Reason: "not yours"}
	if got, want := r.Error(), "files__read refused at authorize: not yours"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Err = errInternal
	if got, want := r.Error(), "files__read refused at authorize: not yours: "+internal; got != want || !errors.Is(r, errInternal) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The name is the client's, and the error goes to terminals and logs.
	r.Name = "x\x1b[31m\ny"
	if got := r.Error(); strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("error %q holds what acts in a terminal", got)
	}
}

func TestViolationsError(t *testing.T) {
	for want, v := range map[string]doc.Violations{
		"":                       nil,
		"(root): missing a":      {{Message: "missing a"}},
		"/a/0: not a string":     {{Pointer: "/a/0", Message: "not a string"}},
		"(root): x; /b: y; /: z": {{Message: "x"}, {Pointer: "/b", Message: "y"}, {Pointer: "/", Message: "z"}},
	} {
		if got := v.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An operator reads each thing once.
func TestRefusalRepeatsNothing(t *testing.T) {
	broken := doc.Violations{{Pointer: "", Message: `missing "unit"`}}
	r := &gate.Refusal{Step: step.ValidateInput, Name: "s__t", Reason: "the arguments break the schema: " + broken.Error(), Err: broken}
	if got := r.Error(); strings.Count(got, "missing") != 1 {
		t.Error(got)
	}
	if got := (&gate.Refusal{Step: step.Record, Name: "s__t", Reason: "why", Err: errors.New("the cause")}).Error(); !strings.HasSuffix(got, ": why: the cause") {
		t.Error(got)
	}
}
