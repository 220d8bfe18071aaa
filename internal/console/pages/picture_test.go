package pages

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
)

// What a call was stopped for is drawn from the call that brought it, which need not be one
// with which labels rose.
func TestValuesAreDrawnFromWhereTheyWereMet(t *testing.T) {
	entry := func(id, code string, before, after gate.Labels, met ...string) audit.Entry {
		return audit.Entry{ID: id, Tool: "mail__" + id, Code: code, LabelsBefore: before, LabelsAfter: after, Met: met}
	}
	dirty := gate.NewLabels(provenance.Untrusted)
	f := flow.Of([]audit.Entry{
		entry("first", "ok", nil, dirty),
		entry("second", "ok", dirty, dirty),
		entry("third", "ok", dirty, dirty),
		entry("send", "refused_policy", dirty, dirty, "/to: untrusted, at /from of mail__second in call second", "/cc: untrusted, at /from of mail__second in call second", "/to: prompt, at the prompt in call gone"),
	})
	if len(f.Read) != 2 || f.Read[0].Call != "first" || f.Read[1].Call != "second" || len(f.Did) != 2 {
		t.Fatalf("read %v, did %v", f.Read, f.Did)
	}
	drawn := string(Picture(f))
	if strings.Count(drawn, `<path class="value"`) != 1 || !strings.Contains(drawn, ">/to, /cc</text>") {
		t.Error(drawn)
	}
	own := entry("account", "ok", dirty, dirty)
	own.OwnRecord = true
	if drawn := string(Picture(flow.Of([]audit.Entry{own}))); !strings.Contains(drawn, ">own record</text>") {
		t.Error(drawn)
	}
	if mean := Picture(flow.Of([]audit.Entry{entry("a", "ok", nil, dirty), entry("b", "refused_policy", dirty, dirty, `/<script>"x": untrusted, at / of x in call a`)})); strings.Contains(string(mean), "<script") {
		t.Error(mean)
	}
}
