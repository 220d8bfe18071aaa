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

	"github.com/wasmgate/wasmgate/internal/cluster/members"
)

const (
	// MostOfOthers is how many calls another gateway is asked for.
	MostOfOthers = 200
	// othersTime is how long other gateways have to answer.
	othersTime = 2 * time.Second
	callsPath  = "/internal/calls"
)

// Nodes returns the gateways of the database, and what differs between them; nil if this gateway shares none.
func (a *App) Nodes(ctx context.Context) (*members.Cluster, error) {
	if a.shared.Store == nil {
		return nil, nil
	}
	return members.Look(ctx, a.shared.Store)
}

// Node returns the name of this gateway among those of its database; "" if it shares none.
func (a *App) Node() string {
	if a.shared.Store == nil {
		return ""
	}
	return a.shared.Node()
}

// Others is what another gateway has answered.
type Others struct {
	Node    string
	Records []json.RawMessage // of its audit log
	Err     error             // why it has not answered
}

// A callsRequest asks a gateway for the records of one call, or those that a query of /api/v1/calls finds.
type callsRequest struct{ ID, Query string }

// OtherCalls asks all other gateways that run for calls, as a query of /api/v1/calls finds them: at most MostOfOthers of each.
func (a *App) OtherCalls(ctx context.Context, query url.Values) []Others {
	if a.shared.peers == nil {
		return nil
	}
	var all []Others
	for _, n := range a.shared.Nodes() {
		if n.Name != a.Node() && !n.Gone {
			all = append(all, Others{Node: n.Name})
		}
	}
	query.Set("last", strconv.Itoa(MostOfOthers))
	var asking sync.WaitGroup
	for i := range all {
		o := &all[i]
		asking.Go(func() { o.Records, o.Err = a.askCalls(ctx, o.Node, callsRequest{Query: query.Encode()}) })
	}
	asking.Wait()
	return all
}

// OtherCall asks another gateway for all records of a call.
func (a *App) OtherCall(ctx context.Context, node, id string) ([]json.RawMessage, error) {
	if a.shared.peers == nil {
		return nil, members.ErrNoCluster
	}
	return a.askCalls(ctx, node, callsRequest{ID: id})
}

func (a *App) askCalls(ctx context.Context, node string, q callsRequest) (all []json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	err = a.shared.peers.Ask(ctx, node, callsPath, q, &all)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it does not answer in time")
	}
	return all, err
}

// answerCalls answers another gateway, which has decided that the calls may be read.
func (a *App) answerCalls(w http.ResponseWriter, r *http.Request) {
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
	a.api.ServeHTTP(w, asked)
}
