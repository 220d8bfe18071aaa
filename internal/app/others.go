package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/cluster/members"
)

const (
	// MostOfOthers is how many calls another gateway is asked for.
	MostOfOthers = 200
	// othersTime is how long other gateways have to answer.
	othersTime = 2 * time.Second
	callsPath  = "/internal/calls"
	// destinationsPath is where gateways ask each other for approved destinations.
	destinationsPath = "/internal/destinations"
)

// Nodes are the gateways that share a database with this one.
type Nodes struct {
	shared    *shared
	desk      *desks.Front // has the records of this one
	approvals *approvals.Approvals
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

// An Answer is what another gateway has answered.
type Answer[T any] struct {
	Node  string
	Value T
	Err   error // why it has not answered
}

// ask asks another gateway.
func ask[T any](ctx context.Context, n *Nodes, node, path string, send any) (value T, err error) {
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	err = n.shared.peers.Ask(ctx, node, path, send, &value)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it does not answer in time")
	}
	return value, err
}

// askAll asks all other gateways that run.
func askAll[T any](ctx context.Context, n *Nodes, path string, send any) (all []Answer[T]) {
	if n.shared.peers == nil {
		return nil
	}
	nodes, err := n.shared.Overview(ctx)
	if err != nil { // the database is away
		nodes = n.shared.Nodes()
	}
	for _, one := range nodes {
		if one.Name != n.Own() && !one.Gone {
			all = append(all, Answer[T]{Node: one.Name})
		}
	}
	var asking sync.WaitGroup
	for i := range all {
		o := &all[i]
		asking.Go(func() { o.Value, o.Err = ask[T](ctx, n, o.Node, path, send) })
	}
	asking.Wait()
	return all
}

// A callsRequest asks a gateway for the records of one call, or those that a query of /api/v1/calls finds.
type callsRequest struct{ ID, Query string }

// Calls asks all other gateways that run for calls, as a query of /api/v1/calls finds them: at most MostOfOthers of each. The values
// are records of their audit logs.
func (n *Nodes) Calls(ctx context.Context, query url.Values) []Answer[[]json.RawMessage] {
	query.Set("last", strconv.Itoa(MostOfOthers))
	return askAll[[]json.RawMessage](ctx, n, callsPath, callsRequest{Query: query.Encode()})
}

// Call asks another gateway for all records of a call.
func (n *Nodes) Call(ctx context.Context, node, id string) ([]json.RawMessage, error) {
	if n.shared.peers == nil {
		return nil, members.ErrNoCluster
	}
	return ask[[]json.RawMessage](ctx, n, node, callsPath, callsRequest{ID: id})
}

// A destinationsRequest asks a gateway for the destinations that are approved for sessions there, or takes back those of one approval.
type destinationsRequest struct{ Revoke, By string }

// Destinations returns those that are approved for sessions at other gateways. The error names the gateways that did not answer.
func (n *Nodes) Destinations(ctx context.Context) ([]gate.Destination, error) {
	return n.destinations(ctx, destinationsRequest{})
}

// RevokeDestinations takes back what an approval has approved at other gateways, and returns it.
func (n *Nodes) RevokeDestinations(ctx context.Context, id, by string) ([]gate.Destination, error) {
	return n.destinations(ctx, destinationsRequest{id, by})
}

func (n *Nodes) destinations(ctx context.Context, q destinationsRequest) (all []gate.Destination, err error) {
	for _, o := range askAll[[]gate.Destination](ctx, n, destinationsPath, q) {
		all = append(all, o.Value...)
		if o.Err != nil {
			err = errors.Join(err, fmt.Errorf("destinations at gateway %s are not known: %w", o.Node, o.Err))
		}
	}
	return all, err
}

// answerDestinations answers another gateway, which has decided that the destinations may be read or taken back.
func (n *Nodes) answerDestinations(w http.ResponseWriter, r *http.Request) {
	var q destinationsRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&q)
	all := n.approvals.Own()
	if err == nil && q.Revoke != "" {
		all, err = n.approvals.RevokeOwn(r.Context(), q.Revoke, q.By)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // the other gateway may have gone
}

// answerCalls answers another gateway, which has decided that the calls may be read.
func (n *Nodes) answerCalls(w http.ResponseWriter, r *http.Request) {
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
