package toollist

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/cmd/internal/show"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
)

// bytesPerToken is the estimate: the tokenizers of current models make a token from about four bytes
// of English or JSON.
const bytesPerToken = 4

// A Cost is what a tool costs each client that lists it, and how often it was called.
type Cost struct {
	Name   string `json:"tool"`
	Server string `json:"server"`
	Bytes  int    `json:"bytes"`  // of its name, description and input schema, which clients hand to a model
	Tokens int    `json:"tokens"` // estimated
	Calls  int    `json:"calls"`  // in the audit log
}

// CostsOf returns the costs of tools, the dearest first. The calls are those in the audit log at path; there need be none.
func CostsOf(ctx context.Context, tools []inventory.Tool, path string) ([]Cost, error) {
	calls, err := callCounts(ctx, path)
	if err != nil {
		return nil, err
	}
	costs := []Cost{}
	for _, t := range tools {
		n := handedOver(t)
		costs = append(costs, Cost{Name: t.Name, Server: t.Server, Bytes: n, Tokens: (n + bytesPerToken - 1) / bytesPerToken, Calls: calls[t.Name]})
	}
	slices.SortStableFunc(costs, func(a, b Cost) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return costs, nil
}

// handedOver is how many bytes of a tool clients hand to a model.
func handedOver(t inventory.Tool) int {
	var d struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(t.Definition, &d) // the gateway has read it before
	return len(t.Name) + len(t.Description) + len(d.InputSchema)
}

// callCounts counts the calls of each tool in an audit log; none if there is no log.
func callCounts(ctx context.Context, path string) (map[string]int, error) {
	calls := map[string]int{}
	for e, err := range audit.Read(ctx, path, audit.Filter{Choose: func(e *audit.Entry) bool { return e.Event == gate.Done }}) {
		switch {
		case errors.As(err, new(*audit.ChainError)): // audit verify reports damage
		case errors.Is(err, fs.ErrNotExist):
			return calls, nil
		case err != nil:
			return nil, err
		default:
			calls[e.Tool]++
		}
	}
	return calls, nil
}

// PrintCosts writes a row for each server, the dearest first, and which tools no one has called.
func PrintCosts(w io.Writer, costs []Cost) error {
	type sum struct {
		server                            string
		tools, bytes, tokens, calls, idle int
	}
	var sums []sum
	total := sum{server: "all"}
	var idle []string
	for _, t := range costs {
		i := slices.IndexFunc(sums, func(s sum) bool { return s.server == t.Server })
		if i < 0 {
			i = len(sums)
			sums = append(sums, sum{server: t.Server})
		}
		for _, s := range []*sum{&sums[i], &total} {
			s.tools++
			s.bytes += t.Bytes
			s.tokens += t.Tokens
			s.calls += t.Calls
			if t.Calls == 0 {
				s.idle++
			}
		}
		if t.Calls == 0 {
			idle = append(idle, t.Name)
		}
	}
	slices.SortStableFunc(sums, func(a, b sum) int { return cmp.Compare(b.tokens, a.tokens) })
	table := show.NewTable(w, "SERVER", "TOOLS", "BYTES", "TOKENS", "CALLS", "NEVER CALLED")
	for _, s := range append(sums, total) {
		table.Row(s.server, strconv.Itoa(s.tools), strconv.Itoa(s.bytes), strconv.Itoa(s.tokens), strconv.Itoa(s.calls), strconv.Itoa(s.idle))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nTokens are estimated at %d bytes each. A client pays them in each conversation that lists the tools.\n", bytesPerToken)
	if len(idle) > 0 {
		const most = 10
		more := ""
		if len(idle) > most {
			idle, more = idle[:most], fmt.Sprintf(" and %d more (--json lists all)", len(idle)-most)
		}
		fmt.Fprintf(w, "Not in the audit log, the dearest first: %s%s.\n", show.Visible(strings.Join(idle, ", ")), more)
	}
	fmt.Fprintln(w, "To offer fewer: `wasmgate revoke`, tool groups, or `catalog: {mode: only}`, with which a client searches for tools.")
	return nil
}
