package jobtools

import (
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/product"
)

// The definitions are acceptable ones, and each tool carries out others.
func TestDefinitions(t *testing.T) {
	all := New(nil, Parts{})
	if _, err := local.New(product.JobsServer, rig.Options(), all...); err != nil {
		t.Error(err)
	}
	for _, one := range all {
		if !one.Relay {
			t.Errorf("%s is taken for a tool that carries out no other", one.Definition.Get("name"))
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for said, want := range map[string]time.Duration{"": time.Minute, "0": 0, "1500": 1500 * time.Millisecond, "1e3": time.Second, "1e300": 365 * 24 * time.Hour} {
		var d gate.Doc
		if said != "" {
			d = gate.MustDoc(said)
		}
		if got := milliseconds(d, time.Minute); got != want {
			t.Errorf("%q: got %v, want %v", said, got, want)
		}
	}
}

// A handle that is of no use is a failure that the tool reports, in words for scripts.
func TestHandles(t *testing.T) {
	for reason, err := range map[string]error{"expired": &jobs.HandleError{ID: "j", Expired: true}, "not_found": &jobs.HandleError{ID: "j"}} {
		res, err := toldOf(jobs.Job{}, err)
		if err != nil || !res.IsError || res.Doc.At("/structuredContent/reason").Text() != reason {
			t.Errorf("%s: %s, %v", reason, res.Doc, err)
		}
	}
}
