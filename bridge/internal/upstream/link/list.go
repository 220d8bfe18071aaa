package link

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// MaxTools, maxPages and maxListing (bytes) bound the listing of one server.
	MaxTools   = 10_000
	maxPages   = 1_000
	maxListing = 64 << 20
	// maxSkillPages and maxEntries (bytes) bound the listing of the skills of one server.
	maxSkillPages = 64
	maxEntries    = 8 << 20
)

// ErrNoList is wrapped by the error of [Link.List] if the server's answer holds no list.
var ErrNoList = errors.New("the listing has no array")

// List reads a whole listing, page by page, and for how long it can be kept. member is
// where its results have it. If a page after the first fails, or comes twice, the pages before
// it are the listing, and kept says why.
func (l *Link) List(ctx context.Context, method, member string) (raw []gate.Doc, kept Hint, err error) {
	size := 0
	params := []byte("{}")
	seen := make(map[string]bool)
	for n := range maxPages {
		page, err := l.ask(ctx, method, params)
		if rpc, ok := errors.AsType[*wire.RPCError](err); ok && n > 0 {
			return raw, kept.cut(fmt.Sprintf("page %d failed: %.200q", n+1, rpc.Message)), nil
		}
		if err != nil {
			return nil, Hint{}, err
		}
		kept = kept.with(page, n == 0)
		if size += len(page.Raw()); size > maxListing {
			return nil, Hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has more than %d bytes", maxListing)}
		}
		if page.Get(member).Kind() != doc.Array {
			return nil, Hint{}, &mcp.ProtocolError{Err: fmt.Errorf("%w of %s", ErrNoList, member)}
		}
		for t := range page.Get(member).Elements() {
			if raw = append(raw, t); len(raw) > MaxTools {
				return nil, Hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the server lists more than %d %s", MaxTools, member)}
			}
		}
		cursor := page.Get("nextCursor")
		if cursor.Kind() != doc.String || cursor.Text() == "" {
			return raw, kept, nil
		}
		if seen[cursor.Text()] {
			return raw, kept.cut("the listing goes in circles: a cursor comes twice"), nil
		}
		seen[cursor.Text()] = true
		params = append(append([]byte(`{"cursor":`), cursor.Raw()...), '}')
	}
	return nil, Hint{}, &mcp.ProtocolError{Err: fmt.Errorf("the listing has more than %d pages", maxPages)}
}

// ListSkills is as List, of skills. What is beyond its bounds is cut off.
func (l *Link) ListSkills(ctx context.Context) (raw []gate.Doc, kept Hint, err error) {
	size, params := 0, []byte("{}")
	for n := range maxSkillPages {
		page, err := l.ask(ctx, "skills/list", params)
		if err == nil && page.Get("skills").Kind() != doc.Array {
			err = fmt.Errorf("%w of skills", ErrNoList)
		}
		if err != nil && n > 0 {
			return raw, kept.cut(fmt.Sprintf("page %d failed: %.200q", n+1, err.Error())), nil
		}
		if err != nil {
			return nil, Hint{}, err
		}
		if size += len(page.Raw()); size > maxEntries {
			return raw, kept.cut(fmt.Sprintf("the listing has more than %d MiB", maxEntries>>20)), nil
		}
		kept, raw = kept.with(page, n == 0), slices.AppendSeq(raw, page.Get("skills").Elements())
		cursor := page.Get("nextCursor")
		if cursor.Kind() != doc.String || cursor.Text() == "" {
			return raw, kept, nil
		}
		params = append(append([]byte(`{"cursor":`), cursor.Raw()...), '}')
	}
	return raw, kept.cut(fmt.Sprintf("the listing has more than %d pages", maxSkillPages)), nil
}

// ListDeclared has the link know what a client's own process declares, for [Link.CheckDeclared].
func (l *Link) ListDeclared(ctx context.Context) (err error) {
	l.declaring.Lock()
	defer l.declaring.Unlock()
	l.declared, err = l.listDeclared(ctx)
	return err
}

// SetDeclared takes what a client's own process declares by now, if it was asked before.
func (l *Link) SetDeclared(raw []gate.Doc) {
	l.declaring.Lock()
	defer l.declaring.Unlock()
	if l.declared != nil {
		l.declared = digests(raw)
	}
}

// listDeclared returns the digests of the tools that a client's own process declares, by their
// names there.
func (l *Link) listDeclared(ctx context.Context) (map[string]string, error) {
	raw, _, err := l.List(ctx, "tools/list", "tools")
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

// CheckDeclared reports why a tool must not be called in a client's own process: what it declares
// there is not what was listed, and held against the pins. It is asked again before that is
// said, since tools come and go.
func (l *Link) CheckDeclared(ctx context.Context, server string, t *gate.Tool) error {
	l.declaring.Lock()
	defer l.declaring.Unlock()
	if l.declared == nil || t.Feature != gate.FeatureTool || l.declared[t.Local] == t.Digest {
		return nil
	}
	now, err := l.listDeclared(ctx)
	if err != nil {
		return err
	}
	l.declared = now
	switch now[t.Local] {
	case t.Digest:
		return nil
	case "":
		return fault.New(fault.NotConnected, server, "call", &fault.NotConnectedError{Words: "the server does not have the tool in its process for this client; a call of another tool of this server may add it, to repeat this call does not help"})
	}
	return fault.New(fault.Pinned, server, "call", errors.New("the client's own process declares a definition of the tool that differs from the listed one"))
}
