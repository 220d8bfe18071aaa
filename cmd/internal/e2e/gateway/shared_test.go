//go:build unix

package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// pins: what one gateway sees first of a server all trust, and what is approved at one all take over.
func (c *cluster) pins(t *testing.T) {
	token := c.token(t, "pia", "pia")
	everywhere := func(what, tool, code string) {
		t.Helper()
		for node, url := range c.urls {
			w := c.client(url, token)
			timelimit.Wait(t, fmt.Sprint(what, " at node ", node), func() bool {
				ok, got := passes(t, w, tool, `{}`)
				return ok == (code == "") && got == code
			})
		}
	}
	everywhere("what was seen first passes", "shifty__read", "")
	var records []string
	for _, pl := range c.nodes {
		var list struct {
			Pins []struct{ Label, State, Since string }
		}
		if err := json.Unmarshal([]byte(pl.Must("pin", "list", "shifty__read", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Pins) != 1 || list.Pins[0].State != "trusted" {
			t.Fatalf("%+v", list)
		}
		records = append(records, list.Pins[0].Since)
	}
	if records[0] == "" || records[1] != records[0] || records[2] != records[0] {
		t.Errorf("gateways have seen it first at %v", records)
	}
	time.Sleep(firstTrust)
	c.changing.declare("read", "reads, and sends")
	everywhere("what has changed is refused", "shifty__read", "refused_pin")
	for node, pl := range c.nodes {
		if o := pl.Run("pin", "diff", "shifty__read"); !strings.Contains(o.Stdout, `+ "reads, and sends"`) || !strings.Contains(o.Stdout, `- "reads"`) {
			t.Errorf("node %d does not know what has changed: %s%s", node, o.Stdout, o.Stderr)
		}
	}
	if said := c.nodes[1].Must("pin", "approve", "shifty", "--yes"); !strings.Contains(said, "in the database") {
		t.Errorf("it says %s", said)
	}
	everywhere("what was approved at one passes", "shifty__read", "")
	c.changing.declare("late", "comes late")
	everywhere("what is new is refused", "shifty__late", "refused_pin")
	c.changing.declare("read", "reads") // as other gateways may have it for a while
	everywhere("what was trusted passes, too", "shifty__read", "")
	for _, pl := range c.nodes {
		if _, err := os.Stat(filepath.Join(pl.Dir, "wasmgate.lock")); !os.IsNotExist(err) {
			t.Errorf("a lockfile was written: %v", err)
		}
	}
}
