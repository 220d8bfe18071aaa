package ship

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/telemetry"
)

const (
	// maxRecords and maxBytes bound a batch, maxWait how long its first record waits for
	// others.
	maxRecords = 500
	maxBytes   = 1 << 20
	maxWait    = time.Second
	// refusedPause is waited before a batch that was refused for good is sent again: what
	// the log has is not given up.
	refusedPause = 30 * time.Second
	// lastTime is what the last batch may take when the gateway ends.
	lastTime = 3 * time.Second
)

// A Shipper sends a log to one target. Its fields are not changed once it runs.
type Shipper struct {
	Log      string // path of the audit log
	Position string // path of the file that says how far it is
	Kind     Kind
	Format   Format
	To       *telemetry.Endpoint
	Resource []telemetry.Attribute    // of OTLP
	Relays   func(server string) bool // of OPA: whose tools carry out others
	Head     func() audit.Head        // of the log
	// Failed is called with each failure, after which the shipper goes on, and with nil when shipping
	// works. It may be called at any time.
	Failed func(error)
	// Retry is how long after a refusal for good a batch is sent again; zero means 30 s.
	Retry time.Duration

	mu   sync.Mutex
	at   position
	gone uint64 // records that were removed before they were sent
}

// A position is how far a log was sent.
type position struct {
	Log string `json:"log"` // of the last record: see [audit.Entry]
	Seq uint64 `json:"seq"`
}

// Lag is how many records wait to be sent, and Gone how many were removed from the log
// before they were.
func (s *Shipper) Lag() (lag, gone uint64) {
	head := s.Head().Seq
	s.mu.Lock()
	defer s.mu.Unlock()
	return head - min(head, s.at.Seq), s.gone
}

// Run sends until ctx ends.
func (s *Shipper) Run(ctx context.Context) {
	if s.Retry == 0 {
		s.Retry = refusedPause
	}
	for ctx.Err() == nil {
		err := s.load()
		if err == nil {
			err = s.run(ctx)
		}
		if ctx.Err() == nil {
			s.Failed(err)
			pause(ctx, s.Retry)
		}
	}
}

// load reads how far the log was sent. A log that has fewer records, or another one by
// that number, has begun anew.
func (s *Shipper) load() error {
	b, err := os.ReadFile(s.Position)
	var at position
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("how far the log was sent cannot be read: %w; remove %s to send all of it again", err, s.Position)
	}
	if at.Seq > s.Head().Seq || !s.has(at) {
		at = position{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
	return nil
}

// has reports whether the log has the record of a position, as far as that is known: it
// may have been removed by its age.
func (s *Shipper) has(at position) bool {
	if at.Seq == 0 {
		return true
	}
	for e, err := range audit.Read(context.Background(), s.Log, audit.Filter{After: at.Seq - 1}) {
		if err != nil { // which reading on will meet
			return true
		}
		return e.Seq != at.Seq || e.Log == at.Log
	}
	return true
}

// run sends what follows, until something cannot be read.
func (s *Shipper) run(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	records, ended := make(chan audit.Entry), make(chan error, 1)
	go func() {
		ended <- s.read(reading, records)
		close(records)
	}()
	for {
		batch, more := gather(records)
		if len(batch) > 0 {
			if err := s.send(ctx, batch); err != nil {
				stop()
				for range records { // so that the reader ends
				}
				return errors.Join(err, <-ended)
			}
		}
		if !more {
			return <-ended
		}
	}
}

// read reads records until ctx ends. It reports a line that is no record, and passes it over.
func (s *Shipper) read(ctx context.Context, to chan<- audit.Entry) error {
	for e, err := range audit.Read(ctx, s.Log, audit.Filter{After: s.at.Seq, Follow: true}) {
		var damage *audit.ChainError
		switch {
		case errors.As(err, &damage):
			s.Failed(fmt.Errorf("passed over: %w", err))
			continue
		case err != nil:
			return err
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// gather waits for records, and for others that come soon after the first.
func gather(records <-chan audit.Entry) (batch []audit.Entry, more bool) {
	var full <-chan time.Time
	for size := 0; len(batch) < maxRecords && size < maxBytes; {
		select {
		case e, ok := <-records:
			if !ok {
				return batch, false
			}
			if full == nil {
				full = time.After(maxWait)
			}
			batch, size = append(batch, e), size+len(e.Raw)
		case <-full:
			return batch, true
		}
	}
	return batch, true
}

// reached writes down that a batch was sent.
func (s *Shipper) reached(batch []audit.Entry) {
	first, last := batch[0], batch[len(batch)-1]
	s.mu.Lock()
	if s.at.Seq > 0 && first.Seq > s.at.Seq+1 {
		s.gone += first.Seq - s.at.Seq - 1
	}
	s.at = position{last.Log, last.Seq}
	b, err := json.Marshal(s.at)
	s.mu.Unlock()
	if err == nil {
		err = files.Replace(s.Position, append(b, '\n'), 0o600)
	}
	if err != nil {
		err = fmt.Errorf("it is not written down how far the log was sent: %w", err)
	}
	s.Failed(err)
}

// send sends a batch until it is taken or ctx has ended, and writes down how far that is. A
// batch that is too large, or is refused for what it holds, is sent by halves. Of a single
// record then the arguments and the result are left out, which callers and servers choose:
// no content of theirs may keep later records from being sent.
func (s *Shipper) send(ctx context.Context, batch []audit.Entry) error {
	contentType, body, err := s.body(batch)
	if err != nil {
		return err
	}
	if body == nil {
		s.reached(batch)
		return nil
	}
	if ctx.Err() != nil { // once more, and not for long
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastTime)
		defer cancel()
	}
	for {
		err = telemetry.Deliver(ctx, func(ctx context.Context) error { return s.To.Post(ctx, contentType, body) }, s.Failed)
		if err == nil {
			s.reached(batch)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		var refused *telemetry.SendError
		if errors.As(err, &refused) && (refused.Status == http.StatusRequestEntityTooLarge || refused.Status == http.StatusBadRequest) {
			if half := len(batch) / 2; half > 0 {
				if err := s.send(ctx, batch[:half]); err != nil {
					return err
				}
				return s.send(ctx, batch[half:])
			}
			if less, ok := withoutContent(batch[0]); ok {
				return s.send(ctx, []audit.Entry{less})
			}
		}
		s.Failed(err)
		pause(ctx, s.Retry)
	}
}

// withoutContent returns a record without its arguments and its result, which says so; their
// digests stay. False says that it has neither.
func withoutContent(e audit.Entry) (audit.Entry, bool) {
	if e.Arguments == nil && e.Result == nil {
		return e, false
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.Raw, &members); err != nil {
		return e, false
	}
	delete(members, "arguments")
	delete(members, "result")
	members["content_left_out"] = json.RawMessage("true")
	raw, err := json.Marshal(members)
	if err != nil {
		return e, false
	}
	e.Arguments, e.Result, e.Raw = nil, nil, raw
	return e, true
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
