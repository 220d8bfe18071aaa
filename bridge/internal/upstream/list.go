package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
)

const (
	// maxTools, maxPages and maxListing (bytes) bound the listing of one server.
	maxTools   = 10_000
	maxPages   = 1_000
	maxListing = 64 << 20
)

// listed reads a whole listing, page by page, and for how long it can be kept. member is
// where its results have it.
func listed(ctx context.Context, l *link, method, member string) (raw []gate.Doc, kept hint, err error) {
	size := 0
	params := []byte("{}")
	seen := make(map[string]bool)
	for n := range maxPages {
		page, err := l.ask(ctx, method, params)
		if err != nil {
			return raw, hint{}, err
		}
		kept = kept.with(page, n == 0)
		if size += len(page.Raw()); size > maxListing {
			return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has more than %d bytes", maxListing)}
		}
		if page.Get(member).Kind() != doc.Array {
			return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has no array of %s", member)}
		}
		for t := range page.Get(member).Elements() {
			if raw = append(raw, t); len(raw) > maxTools {
				return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the server lists more than %d %s", maxTools, member)}
			}
		}
		cursor := page.Get("nextCursor")
		if cursor.Kind() != doc.String || cursor.Text() == "" {
			return raw, kept, nil
		}
		if seen[cursor.Text()] {
			return nil, hint{}, &mcp.ProtocolError{Err: errors.New("the listing goes round in circles: a cursor comes twice")}
		}
		seen[cursor.Text()] = true
		params = append(append([]byte(`{"cursor":`), cursor.Raw()...), '}')
	}
	return nil, hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has more than %d pages", maxPages)}
}

// declaredBy returns the digests of the tools that a client's own process declares, by their
// names there.
func declaredBy(ctx context.Context, l *link) (map[string]string, error) {
	raw, _, err := listed(ctx, l, "tools/list", "tools")
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.CodeMethodNotFound {
		return nil, nil // a server without tools
	}
	return digests(raw), err
}

func digests(raw []gate.Doc) map[string]string {
	byName := make(map[string]string, len(raw))
	for _, t := range raw {
		byName[t.Get("name").Text()] = t.Digest()
	}
	return byName
}

// checkDeclared reports why a tool must not be called in a client's own process: what it declares
// there is not what was listed, and held against the pins. It is asked again before that is
// said, since tools come and go.
func (l *link) checkDeclared(ctx context.Context, server string, t *gate.Tool) error {
	l.declaring.Lock()
	defer l.declaring.Unlock()
	if l.declared == nil || t.Feature != gate.FeatureTool || l.declared[t.Local] == t.Digest {
		return nil
	}
	now, err := declaredBy(ctx, l)
	if err != nil {
		return err
	}
	l.declared = now
	switch now[t.Local] {
	case t.Digest:
		return nil
	case "":
		return &Fault{NotConnected, server, "call", errors.New("the client's own process does not have the tool; another call there may add it")}
	}
	return &Fault{Pinned, server, "call", errors.New("the client's own process declares another definition of the tool than the one that was listed")}
}
