package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// A Pinner is a gateway's pins, with how a person approves there, and how the gateway takes over what
// was approved elsewhere.
type Pinner struct {
	*lock.Pins
	Approve func(ctx context.Context, pins []lock.Pin) error
	Follow  func() error
}

// Pins tests pins that several gateways share. Open returns pins that have seen nothing.
func Pins(t *testing.T, open func(*testing.T) []Pinner) {
	for name, test := range map[string]func(*testing.T, []Pinner){
		"what one has seen first all trust":      testSeenFirst,
		"of several at once one is the first":    testSeenAtOnce,
		"what one approves all take over":        testApprovedAnywhere,
		"each shows what differs":                testDifference,
		"approvals at the same time are all had": testApprovedAtOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// pinned is a version of a tool.
func pinned(version int) lock.Item {
	return lock.Item{Kind: lock.Tool, Name: "read", Doc: gate.MustDoc(fmt.Sprintf(`{"name":"read","description":"reads %d"}`, version))}
}

func sees(p Pinner, server string, versions ...int) {
	l := lock.Listing{Server: server}
	for _, v := range versions {
		l.Items = append(l.Items, pinned(v))
	}
	p.Observe(l)
}

// passing reports whether a version of the tool of a server can be called.
func passing(p Pinner, server string, version int) bool {
	d := pinned(version).Doc
	return p.Check(&gate.Tool{Name: gate.ToolName{Server: server, Tool: "read"}, Local: "read", Digest: d.Digest(), Definition: d}) == nil
}

func approveAll(t *testing.T, p Pinner, server string) {
	t.Helper()
	review, err := p.Review(server, nil)
	must(t, err)
	must(t, p.Approve(t.Context(), review.Approval))
}

func testSeenFirst(t *testing.T, all []Pinner) {
	for i, p := range all {
		server := fmt.Sprint("s", i)
		sees(p, server, 1)
		for j, other := range all {
			sees(other, server, 1)
			if !passing(other, server, 1) {
				t.Errorf("%d does not trust what %d has seen first", j, i)
			}
			sees(other, server, 2)
			if passing(other, server, 2) {
				t.Errorf("%d trusts another version than %d has seen first", j, i)
			}
		}
	}
}

func testSeenAtOnce(t *testing.T, all []Pinner) {
	for round := range 10 {
		server := fmt.Sprint("s", round)
		var wg sync.WaitGroup
		for i, p := range all {
			wg.Go(func() { sees(p, server, i) })
		}
		wg.Wait()
		var trusted []int
		for i, p := range all {
			if passing(p, server, i) {
				trusted = append(trusted, i)
			}
		}
		if len(trusted) != 1 {
			t.Errorf("round %d: each has another version, and %v are trusted", round, trusted)
		}
	}
}

func testApprovedAnywhere(t *testing.T, all []Pinner) {
	for _, p := range all {
		sees(p, "s", 0)
	}
	for version, p := range all {
		sees(p, "s", version+1)
		if passing(p, "s", version+1) {
			t.Fatalf("version %d passes before it is approved", version+1)
		}
		approveAll(t, p, "s")
		for i, other := range all {
			must(t, other.Follow())
			for v := range version + 1 {
				sees(other, "s", v+1)
				if !passing(other, "s", v+1) {
					t.Errorf("version %d does not pass at %d", v+1, i)
				}
			}
		}
	}
}

func testDifference(t *testing.T, all []Pinner) {
	sees(all[0], "s", 1)
	for i, p := range all {
		sees(p, "s", 2)
		review, err := p.Review("s", nil)
		must(t, err)
		if len(review.Differences) != 1 || !slices.ContainsFunc(review.Differences[0].Changes, func(c lock.Reviewed) bool { return c.Old == `"reads 1"` && c.New == `"reads 2"` }) {
			t.Errorf("%d shows %+v", i, review.Differences)
		}
	}
}

func testApprovedAtOnce(t *testing.T, all []Pinner) {
	var wg sync.WaitGroup
	for i, p := range all {
		server := fmt.Sprint("s", i)
		sees(p, server, 1)
		sees(p, server, 2)
		wg.Go(func() { approveAll(t, p, server) })
	}
	wg.Wait()
	for i := range all {
		for j, p := range all {
			must(t, p.Follow())
			server := fmt.Sprint("s", i)
			if sees(p, server, 2); !passing(p, server, 2) {
				t.Errorf("%d does not have the approval at %d", j, i)
			}
		}
	}
}
