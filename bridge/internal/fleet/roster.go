package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lookalike"
)

// A member is one server of the fleet.
type member struct {
	id         string
	upstream   gate.Upstream
	status     func() status.Server
	endpoint   *upstream.Endpoint // nil for a local server
	given      options.Endpoint   // of the endpoint
	superseded int                // how many earlier servers of this id were given up
}

// remember has what a server lists kept. If recalls is true, what it listed in an earlier run is
// offered until it has started.
func (m member) remember(c *Config, recalls bool) {
	if c.Memory != nil {
		m.endpoint.Remember(c.Memory, recalls)
	}
}

// A roster is the servers of a fleet, in the order of configuration.
type roster struct {
	members []member
	order   []string // what [Fleet.Reorder] was given
}

// index returns where the server of an id is; -1 if there is none.
func (r *roster) index(id string) int {
	return slices.IndexFunc(r.members, func(m member) bool { return m.id == id })
}

// check refuses a server whose id could be taken for another's: its name is the beginning of the
// names of its tools.
func (r *roster) check(id string) error {
	for _, m := range r.members {
		if why, alike := lookalike.Alike(m.id, id); alike {
			return fmt.Errorf("server %s: its name looks like that of server %s (%s); rename one of them", id, m.id, why)
		}
	}
	return nil
}

// put adds m, or puts it in the place of the one with its id, which it returns.
func (r *roster) put(m member) (old *upstream.Endpoint) {
	i := r.index(m.id)
	if i < 0 {
		r.members = append(r.members, m)
		r.sort()
		return nil
	}
	old = r.members[i].endpoint
	r.members[i] = m
	return old
}

// supersede puts m, and keeps count of the servers of one id, which was hardly
// meant.
func (r *roster) supersede(m member) {
	if i := r.index(m.id); i >= 0 {
		m.superseded = r.members[i].superseded + 1
	}
	r.put(m)
}

func (r *roster) sort() {
	slices.SortStableFunc(r.members, func(a, b member) int {
		return cmp.Compare(slices.Index(r.order, a.id), slices.Index(r.order, b.id))
	})
}
