package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/files"
)

// maxFile bounds the file that is read, in bytes: some ten times what
// Options.Max sessions take by default.
const maxFile = 32 << 20

// fileFormat is that of the file.
const fileFormat = 1

// keptFile is where labels are kept. Times are not: a clock that was set meanwhile
// would end labels too early. What is read counts as used when it is read.
type keptFile struct {
	path string

	mu      sync.Mutex    // held over the write: who waits for it finds its own rise written, too
	saved   atomic.Uint64 // up to which rise the file is good; written with mu
	problem error         // of reading it; nil if there was none
	failed  error         // of the last write
}

// fileContent is the file.
type fileContent struct {
	Format int `json:"format"`
	// Lost says that there may be sessions with labels which are not among these.
	Lost     bool          `json:"lost,omitempty"`
	Sessions []fileSession `json:"sessions"`
}

type fileSession struct {
	Tenant string            `json:"tenant,omitempty"`
	ID     string            `json:"principal"`
	Name   string            `json:"session,omitempty"`
	Labels gate.Labels       `json:"labels"`
	Top    bool              `json:"top,omitempty"`
	Raised map[string]string `json:"raised,omitempty"`
	// Program says that Name is a program, whose next sessions begin with this.
	Program bool `json:"program,omitempty"`
	// Programs have used the session.
	Programs []string `json:"programs,omitempty"`
}

// load reads the file. Sessions of one that cannot be read count as having read
// everything, for as long as their labels could have lasted without use.
func (f *keptFile) load(t *table) {
	now := time.Now()
	c, err := readFile(f.path)
	if err != nil {
		f.problem = fmt.Errorf("%w; for the next %v each session has all labels, unless you reset it", err, t.o.TTL)
		c = fileContent{Lost: true}
	}
	if c.Lost {
		t.lost = now.Add(t.o.TTL)
	}
	for _, one := range c.Sessions {
		t.restore(one, now)
	}
	for _, e := range t.kept {
		for _, program := range e.programs {
			e.record = t.kept[recordOf(e.key.Owner, program)]
		}
	}
}

// restore keeps what the file has of a session. Where values came from is not in there, so
// that one which has read something counts all of them as met in untrusted content. If
// Options.Inherit has changed, the labels go to the sessions that there are now.
func (t *table) restore(f fileSession, now time.Time) {
	k := key{gate.SessionKey{Owner: gate.Owner{Tenant: f.Tenant, ID: f.ID}, ID: f.Name}, f.Program}
	clean := len(f.Labels) == 0 && !f.Top
	switch {
	case !t.o.Inherit:
		k.ID, k.program = "", false
	case k.ID == "" && !k.program && len(f.Programs) == 0 && !clean:
		k.program = true // of every program: see [anyProgram]
	}
	e := t.kept[k]
	if e == nil {
		e = t.entryOf(k, gate.Session{Key: k.SessionKey, Version: 1}, now)
		e.reset = clean
		t.kept[k] = e
	}
	if clean {
		return
	}
	labels := e.state.Labels.Join(gate.NewLabels(f.Labels...))
	e.state.Top = e.state.Top || f.Top || provenance.TooMany(labels)
	if !provenance.TooMany(labels) {
		e.state.Labels = labels
	}
	e.state.Values = e.state.Values.Lost()
	e.programs, e.reset = f.Programs, false
	if e.raised == nil {
		e.raised = make(map[string]string)
	}
	maps.Copy(e.raised, f.Raised)
}

func readFile(path string) (fileContent, error) {
	var c fileContent
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("more than %d bytes", maxFile)
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err == nil && c.Format != fileFormat {
		err = fmt.Errorf("format %d is not %d", c.Format, fileFormat)
	}
	if err != nil {
		return c, fmt.Errorf("sessions file %s: %w", path, err)
	}
	return c, nil
}

// save returns when the file holds all labels up to a rise. Without a file nothing is kept.
func (f *keptFile) save(t *table, rises uint64) error {
	if f == nil || f.saved.Load() >= rises {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saved.Load() >= rises {
		return nil
	}
	b, upto, err := t.content()
	if err == nil {
		err = files.ReplaceSynced(f.path, b, 0o600)
	}
	if f.failed = err; err != nil {
		return fmt.Errorf("sessions file %s: %w", f.path, err)
	}
	f.saved.Store(upto)
	return nil
}

// content returns what the file is to hold, and up to which rise that is.
func (t *table) content() ([]byte, uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	c := fileContent{Format: fileFormat, Lost: now.Before(t.lost) || !t.forgot.IsZero() && now.Sub(t.forgot) < 2*t.o.TTL, Sessions: []fileSession{}}
	for _, e := range t.kept {
		if e.connection || !t.fresh(e, now) || len(e.state.Labels) == 0 && !e.state.Top && !e.reset {
			continue
		}
		k := e.key
		c.Sessions = append(c.Sessions, fileSession{k.Tenant, k.Owner.ID, k.ID, append(gate.Labels{}, e.state.Labels...), e.state.Top, e.raised, k.program, e.programs})
	}
	b, err := json.Marshal(c)
	return append(b, '\n'), t.rises, err
}

// trouble is [Sessions.Problem].
func (f *keptFile) trouble(t *table) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.mu.Lock()
	lost := time.Now().Before(t.lost)
	t.mu.Unlock()
	if f.failed != nil {
		return fmt.Errorf("sessions file %s: %w; all calls are refused", f.path, f.failed)
	}
	if lost {
		return f.problem
	}
	return nil
}
