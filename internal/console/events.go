package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/evict"
)

// eventHandlers send records while they are written.
type eventHandlers struct {
	access  *access
	path    string // of the audit log
	readers readers
}

const (
	// maxReaders is how many may read events at once: each reads the log for itself.
	maxReaders = 16
	// readTime is after how long a reader has to ask again, which EventSource does by itself:
	// a policy that denies it by then holds.
	readTime = 5 * time.Minute
)

var errReaders = fmt.Errorf("%d open pages show events already: close one of them, and try again", maxReaders)

// readers are the open streams of events.
type readers struct {
	mu  sync.Mutex
	all map[*reader]*reader
}

type reader struct {
	owner gate.Owner // none for the operator
	since time.Time
	end   func()
}

// enter makes room for one more: in a full table the oldest reader of the caller that has the most
// ends, unless it is the same caller.
func (t *readers) enter(by caller, end func()) (leave func(), err error) {
	one := &reader{since: time.Now(), end: end}
	if !by.operator {
		one.owner = by.Owner
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxReaders {
		out := evict.Next(t.all, func(r *reader) (gate.Owner, time.Time) { return r.owner, r.since })
		if out.owner == one.owner {
			return nil, errReaders
		}
		out.end()
		delete(t.all, out)
	}
	t.all[one] = one
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.all, one)
	}, nil
}

// getEvents sends records as they are written, after the one with the number Last-Event-ID (WHATWG
// HTML, server-sent events). It sends nothing more to a reader that has signed out.
func (h *eventHandlers) getEvents(w http.ResponseWriter, r *http.Request) error {
	f := audit.Filter{Follow: true, Since: time.Now()}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		after, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return &misused{fmt.Sprintf("Last-Event-ID %q is not a number of a record", last)}
		}
		f.After, f.Since = after, time.Time{}
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	leave, err := h.readers.enter(by(r.Context()), cancel)
	if err != nil {
		return err
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	fmt.Fprint(w, ": the records as they are written\n\n")
	_ = flush.Flush()
	for e, err := range audit.Read(ctx, h.path, f) {
		if err != nil {
			continue // damage, which verify reports
		}
		if _, err := h.access.caller(r, false, false); err != nil {
			return nil
		}
		if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, e.Raw); err != nil {
			return nil
		}
		_ = flush.Flush()
	}
	return nil
}
