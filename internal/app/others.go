package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
)

const (
	// MostOfOthers is how many calls another gateway is asked for.
	MostOfOthers = 200
	// othersTime is how long other gateways have to answer.
	othersTime = 2 * time.Second
	callsPath  = "/internal/calls"
)

// Nodes are the gateways that share a database with this one.
type Nodes struct {
	shared *shared
	desk   *desks.Front // has the records of this one
}

// All returns them, and what differs between them; nil if this gateway shares no database.
func (n *Nodes) All(ctx context.Context) (*members.Cluster, error) {
	if n.shared.Store == nil {
		return nil, nil
	}
	return members.Look(ctx, n.shared.Store)
}

// Own returns the name of this gateway among them; "" if it shares no database.
func (n *Nodes) Own() string {
	if n.shared.Store == nil {
		return ""
	}
	return n.shared.Node()
}

// Peer is the name of this gateway among those that forward to each other; "" without others.
func (n *Nodes) Peer() string {
	if n.shared.peers == nil {
		return ""
	}
	return n.shared.peers.Node()
}

// ForwardPage has another gateway answer a request of the console, and reports whether it did: not if that
// is this one, or there is none of that name.
func (n *Nodes) ForwardPage(w http.ResponseWriter, r *http.Request, node string) bool {
	return n.shared.peers.Page(w, r, node)
}

// Others is what another gateway has answered.
type Others struct {
	Node    string
	Records []json.RawMessage // of its audit log
	Err     error             // why it has not answered
}

// A callsRequest asks a gateway for the records of one call, or those that a query of /api/v1/calls finds.
type callsRequest struct{ ID, Query string }

// Calls asks all other gateways that run for calls, as a query of /api/v1/calls finds them: at most MostOfOthers of each.
func (n *Nodes) Calls(ctx context.Context, query url.Values) []Others {
	if n.shared.peers == nil {
		return nil
	}
	var all []Others
	for _, one := range n.shared.Nodes() {
		if one.Name != n.Own() && !one.Gone {
			all = append(all, Others{Node: one.Name})
		}
	}
	query.Set("last", strconv.Itoa(MostOfOthers))
	var asking sync.WaitGroup
	for i := range all {
		o := &all[i]
		asking.Go(func() { o.Records, o.Err = n.ask(ctx, o.Node, callsRequest{Query: query.Encode()}) })
	}
	asking.Wait()
	return all
}

// Call asks another gateway for all records of a call.
func (n *Nodes) Call(ctx context.Context, node, id string) ([]json.RawMessage, error) {
	if n.shared.peers == nil {
		return nil, members.ErrNoCluster
	}
	return n.ask(ctx, node, callsRequest{ID: id})
}

func (n *Nodes) ask(ctx context.Context, node string, q callsRequest) (all []json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	err = n.shared.peers.Ask(ctx, node, callsPath, q, &all)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it does not answer in time")
	}
	return all, err
}

// answer answers another gateway, which has decided that the calls may be read.
func (n *Nodes) answer(w http.ResponseWriter, r *http.Request) {
	var q callsRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := "/api/v1/calls?" + q.Query
	if q.ID != "" {
		path = "/api/v1/calls/" + url.PathEscape(q.ID)
	}
	asked, err := http.NewRequestWithContext(r.Context(), http.MethodGet, path, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.desk.API.ServeHTTP(w, asked)
}
