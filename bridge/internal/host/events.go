package host

import (
	"container/list"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
)

// Clients of the older revisions whose stream breaks can come back with a GET for what
// they have missed (MCP 2025-11-25, basic/transports, "Resumability and Redelivery").
// That takes two things: what was sent is kept for a while, here, and a call outlives
// its request for a while, see [post].

// Bounds of what is kept for clients that come back, of all sessions together.
const (
	maxKept        = 10 << 20 // bytes
	maxKeptStreams = 4096
	// keptOverhead is what an event takes beside its bytes.
	keptOverhead = 64
)

// keptEvents is what has been sent to sessions. Of what does not fit into its bounds
// the streams go that were used longest ago, whole. It is an [sdk.EventStore].
type keptEvents struct {
	opened func(ctx context.Context, stream string) // is told of each stream of a request

	mu      sync.Mutex
	size    int
	streams map[streamKey]*list.Element
	used    *list.List // of *keptStream, the last used one in front
}

type streamKey struct{ session, stream string }

// keptStream is one stream. Of one that was dropped and is used again nobody knows
// what came first: it is lost.
type keptStream struct {
	key    streamKey
	events [][]byte
	size   int
	lost   bool
}

var _ sdk.EventStore = (*keptEvents)(nil)

func newKeptEvents(opened func(context.Context, string)) *keptEvents {
	return &keptEvents{opened: opened, streams: make(map[streamKey]*list.Element), used: list.New()}
}

// Open implements [sdk.EventStore]. The stream of no request is "".
func (k *keptEvents) Open(ctx context.Context, session, stream string) error {
	if stream != "" {
		k.opened(ctx, stream)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(&keptStream{key: streamKey{session, stream}})
	return nil
}

// add keeps one more stream. The caller holds mu.
func (k *keptEvents) add(s *keptStream) *keptStream {
	k.drop(k.streams[s.key])
	k.streams[s.key] = k.used.PushFront(s)
	for k.used.Len() > maxKeptStreams {
		k.drop(k.used.Back())
	}
	return s
}

// drop forgets a stream; nil is none. The caller holds mu.
func (k *keptEvents) drop(at *list.Element) {
	if at == nil {
		return
	}
	s := k.used.Remove(at).(*keptStream)
	k.size -= s.size
	delete(k.streams, s.key)
}

// Append implements [sdk.EventStore].
func (k *keptEvents) Append(_ context.Context, session, stream string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := streamKey{session, stream}
	at := k.streams[key]
	if at == nil {
		k.add(&keptStream{key: key, lost: true})
		return nil
	}
	k.used.MoveToFront(at)
	s := at.Value.(*keptStream)
	if s.lost {
		return nil
	}
	s.events = append(s.events, data)
	s.size += len(data) + keptOverhead
	k.size += len(data) + keptOverhead
	for k.size > maxKept {
		k.drop(k.used.Back())
	}
	return nil
}

// After implements [sdk.EventStore]. Who opens the stream "" without having had it
// wants what comes from now on.
func (k *keptEvents) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := streamKey{session, stream}
	if stream == "" && index < 0 {
		k.add(&keptStream{key: key})
		return func(func([]byte, error) bool) {}
	}
	at := k.streams[key]
	if at == nil || at.Value.(*keptStream).lost || index+1 > len(at.Value.(*keptStream).events) {
		return func(yield func([]byte, error) bool) { yield(nil, sdk.ErrEventsPurged) }
	}
	k.used.MoveToFront(at)
	events := slices.Clone(at.Value.(*keptStream).events[max(0, index+1):])
	return func(yield func([]byte, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// answered reports whether an event is the answer with which a stream has ended, after
// which there is nothing to come back for. There are clients that do so when the answer
// is an error; given an empty stream, they would ask for another for ever.
func (k *keptEvents) answered(session, lastEvent string) bool {
	stream, index, _ := strings.Cut(lastEvent, "_") // as the SDK writes it
	n, err := strconv.Atoi(index)
	if stream == "" || err != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.streams[streamKey{session, stream}]
	if at == nil {
		return false
	}
	events := at.Value.(*keptStream).events
	if n < 0 || n != len(events)-1 {
		return false
	}
	last, err := gate.ParseDoc(events[n])
	return err == nil && last.Get("method").IsZero() && !last.Get("id").IsZero()
}

// SessionClosed implements [sdk.EventStore].
func (k *keptEvents) SessionClosed(_ context.Context, session string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, at := range k.streams {
		if key.session == session {
			k.drop(at)
		}
	}
	return nil
}
