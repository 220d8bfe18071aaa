package respond

import (
	"container/list"
	"slices"
	"sync"
)

// Clients of the older revisions whose stream breaks can come back with a GET for what they have
// missed (MCP 2025-11-25, basic/transports, "Resumability and Redelivery"). That takes two things:
// sent events are kept for a while, which is done here, and a call outlives its connection for a
// while, which the host takes care of.

// Bounds of what is kept for clients that come back, of all sessions together.
const (
	maxKept        = 10 << 20 // bytes
	maxKeptStreams = 4096
	// keptOverhead is what an event takes in addition to its bytes.
	keptOverhead = 64
)

// Kept is what has been sent to sessions. Of what does not fit into its bounds
// the streams go that were used longest ago, whole. Use it from several goroutines.
type Kept struct {
	mu      sync.Mutex
	size    int
	streams map[streamKey]*list.Element
	used    *list.List // of *keptStream, the last used one in front
}

type streamKey struct{ session, stream string }

// keptStream is one stream. A stream that was dropped and is used again is lost, because its first
// events are unknown.
type keptStream struct {
	key    streamKey
	events [][]byte
	size   int
	lost   bool
	over   bool // nothing comes after the last event
}

// NewKept returns one that keeps nothing yet.
func NewKept() *Kept {
	return &Kept{streams: make(map[streamKey]*list.Element), used: list.New()}
}

// Open begins a stream.
func (k *Kept) Open(session, stream string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(&keptStream{key: streamKey{session, stream}})
}

// keep keeps one more stream. The caller holds mu.
func (k *Kept) keep(s *keptStream) {
	k.drop(k.streams[s.key])
	k.streams[s.key] = k.used.PushFront(s)
	for k.used.Len() > maxKeptStreams {
		k.drop(k.used.Back())
	}
}

// drop forgets a stream; nil is none. The caller holds mu.
func (k *Kept) drop(at *list.Element) {
	if at == nil {
		return
	}
	s := k.used.Remove(at).(*keptStream)
	k.size -= s.size
	delete(k.streams, s.key)
}

// Add keeps an event. Data of nil has but a number.
func (k *Kept) Add(session, stream string, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := streamKey{session, stream}
	at := k.streams[key]
	if at == nil {
		k.keep(&keptStream{key: key, lost: true})
		return
	}
	k.used.MoveToFront(at)
	s := at.Value.(*keptStream)
	if s.lost {
		return
	}
	s.events = append(s.events, data)
	s.size += len(data) + keptOverhead
	k.size += len(data) + keptOverhead
	for k.size > maxKept {
		k.drop(k.used.Back())
	}
}

// After returns the events after a number; false if they are not kept. A negative number for the
// stream "" means that the client did not have it yet, and wants what comes from now on.
func (k *Kept) After(session, stream string, n int) ([][]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := streamKey{session, stream}
	if stream == "" && n < 0 {
		k.keep(&keptStream{key: key})
		return nil, true
	}
	at := k.streams[key]
	if at == nil || at.Value.(*keptStream).lost || n+1 > len(at.Value.(*keptStream).events) {
		return nil, false
	}
	k.used.MoveToFront(at)
	return slices.Clone(at.Value.(*keptStream).events[max(0, n+1):]), true
}

// Close says that a stream has ended, with its answer or without one.
func (k *Kept) Close(session, stream string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := k.streams[streamKey{session, stream}]; at != nil {
		at.Value.(*keptStream).over = true
	}
}

// Over reports whether an event is the last of a stream that has ended, after which there is
// nothing to come back for. There are clients that do so when the answer is an error, or when
// they have cancelled the request; given an empty stream, they would ask for another for ever.
func (k *Kept) Over(session, stream string, n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.streams[streamKey{session, stream}]
	if stream == "" || at == nil {
		return false
	}
	s := at.Value.(*keptStream)
	return s.over && n == len(s.events)-1
}

// Forget forgets the streams of a session, which has ended.
func (k *Kept) Forget(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, at := range k.streams {
		if key.session == session {
			k.drop(at)
		}
	}
}
