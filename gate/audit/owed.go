package audit

import (
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Bounds of what is owed, in bytes. A line that is longer loses its documents.
const (
	maxOwed     = 8 << 20
	maxOwedLine = 64 << 10
)

// retryAfter is how long after a failure what is owed is written, if nothing else was
// written before.
const retryAfter = time.Second

// owed are the lines of calls that were carried out while no line could be written: the
// evidence of what cannot be undone is kept until it can be.
type owed struct {
	lines []owedLine
	bytes int
	late  int // lines that were written since
	lost  int // calls for whose lines there was no room
}

type owedLine struct {
	id   string // of the call
	body line
}

// carriedOut reports whether a record tells of the end of a call that its server, or its
// client, has had.
func carriedOut(r *gate.Record) bool {
	return r.Event == gate.Done && slices.ContainsFunc(r.Steps, func(s step.Time) bool { return s.Step == step.Invoke })
}

// owe keeps the line of a record for later.
func (w *writer) owe(e Entry) {
	e.Late = true
	body := line{}.body(&e)
	if len(body) > maxOwedLine {
		e.Arguments, e.Result = nil, nil
		body = line{}.body(&e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.owed.bytes+len(body) > maxOwed {
		if w.owed.lost++; w.owed.lost == 1 {
			w.o.Log.Error("records of calls that were carried out are lost", "path", w.path, "call", e.ID, "reason", "too many records wait for the audit log")
		}
		return
	}
	w.owed.lines, w.owed.bytes = append(w.owed.lines, owedLine{e.ID, body}), w.owed.bytes+len(body)
}

// repay writes what is owed, the oldest first. Callers hold mu, and the file is ready.
func (w *writer) repay() error {
	for n, l := range w.owed.lines {
		if err := w.writeOne(l.body); err != nil {
			w.owed.lines = w.owed.lines[n:]
			return err
		}
		w.owed.bytes -= len(l.body)
		w.owed.late++
	}
	w.owed.lines = nil
	return nil
}

// owes reports whether lines are owed that may be written yet.
func (w *writer) owes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.owed.lines) > 0 && w.at.broken == nil
}

// failing says once that no line can be written.
func (w *writer) failing(err error) {
	if !w.down {
		w.down = true
		w.o.Log.Error("audit log cannot be written: calls are refused until it can", "path", w.path, "error", err)
	}
}

// works says once that lines can be written again.
func (w *writer) works() {
	if !w.down {
		return
	}
	w.down = false
	w.o.Log.Warn("audit log can be written again: calls pass", "path", w.path, "late", w.owed.late, "lost", w.owed.lost)
	w.owed.late, w.owed.lost = 0, 0
}

// abandon names the calls whose lines will not be written.
func (w *writer) abandon() {
	if len(w.owed.lines) == 0 {
		return
	}
	var calls []string
	for _, l := range w.owed.lines[:min(len(w.owed.lines), maxItems)] {
		calls = append(calls, l.id)
	}
	w.o.Log.Error("calls were carried out, and their end is not in the audit log", "path", w.path, "number", len(w.owed.lines), "calls", calls)
}
