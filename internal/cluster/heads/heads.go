// Package heads verifies the audit logs of several gateways crosswise: each records the last records of the
// others, so that what is cut off or forged in one log shows in the others.
package heads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate/audit"
)

const (
	// pathSeen answers with the heads that a gateway has recorded of others, and pathVerify verifies
	// its log, and that it has records.
	pathSeen, pathVerify = "/internal/heads", "/internal/verify"
	// maxHeads bounds what a gateway reads of heads, in bytes.
	maxHeads = 256 << 20
)

// Seen are heads by the gateway whose log they are of.
type Seen map[string][]string

// A Report is what one gateway says of its log.
type Report struct {
	Node    string `json:"node"`
	Records int    `json:"records,omitempty"`
	Last    string `json:"last,omitempty"`
	Heads   int    `json:"heads"`           // that others have recorded of it
	Error   string `json:"error,omitempty"` // why the log is not what was written, or could not be asked for
}

// Handler answers other gateways about the log at a path.
func Handler(path string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathSeen, func(w http.ResponseWriter, r *http.Request) {
		seen, err := read(r.Context(), path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(seen) // an error means that the other side has gone
	})
	mux.HandleFunc("POST "+pathVerify, func(w http.ResponseWriter, r *http.Request) {
		var heads []string
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxHeads)).Decode(&heads); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(verify(path, heads))
	})
	return mux
}

// read returns the heads that a log has of others.
func read(ctx context.Context, path string) (Seen, error) {
	seen := Seen{}
	for e, err := range audit.Read(ctx, path, audit.Filter{Choose: func(e *audit.Entry) bool { return e.Event == audit.Heads }}) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, head := range e.Heads {
			node, head, _ := strings.Cut(head, " ")
			seen[node] = append(seen[node], head)
		}
	}
	return seen, nil
}

// verify checks a log, and that it has the records that heads name.
func verify(path string, heads []string) Report {
	r := Report{Heads: len(heads)}
	var all []audit.Head
	for _, text := range heads {
		h, err := audit.ParseHead(text)
		if err != nil {
			r.Error = err.Error()
			return r
		}
		all = append(all, h)
	}
	files, err := audit.Files(path)
	if err == nil {
		var report audit.Report
		report, err = audit.VerifyHeads(files, all)
		r.Records, r.Last = report.Records, report.Last.String()
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// Verify has each gateway verify its log, and that the log has all records that other gateways have recorded
// as its last. Ask sends a gateway a request, as JSON. A gateway that does not answer has that as its error.
func Verify(ctx context.Context, nodes []string, ask func(ctx context.Context, node, path string, send, to any) error) []Report {
	seen, silent := Seen{}, map[string]error{}
	for _, node := range nodes {
		var its Seen
		if err := ask(ctx, node, pathSeen, nil, &its); err != nil {
			silent[node] = err
		}
		for _, of := range slices.Sorted(maps.Keys(its)) {
			seen[of] = append(seen[of], its[of]...)
		}
	}
	var all []Report
	for _, node := range nodes {
		heads := slices.Compact(slices.Sorted(slices.Values(seen[node])))
		var r Report
		err := silent[node]
		if err == nil {
			err = ask(ctx, node, pathVerify, append([]string{}, heads...), &r)
		}
		if err != nil {
			r.Heads, r.Error = len(heads), fmt.Sprintf("it cannot be asked: %v", err)
		}
		r.Node = node
		all = append(all, r)
	}
	return all
}
