package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/policy"
)

// maxRecorded bounds the results of a recording, in bytes: all of them are held in
// memory.
const maxRecorded = 1 << 30

// ErrNothingRecorded says that a recording has calls and no results: the audit log
// has to be kept with record: full.
var ErrNothingRecorded = errors.New("the calls in it were recorded without their results: set audit.record to full, and record the session again")

// ReadRecording reads what was called, got and read that a file tells of, in its order:
// an audit log that holds results, over all its files, or recorded sessions, one a line,
// as [policy.ReadTrace] takes them. Calls that came to no result are left out. The error
// wraps [ErrNothingRecorded] if no result was recorded.
func ReadRecording(ctx context.Context, path string) ([]RecordedCall, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	rec := new(recording)
	if audit.IsLog(r) {
		for e, err := range audit.Read(ctx, path, audit.Filter{}) {
			if err == nil {
				err = rec.addEntry(e)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	} else {
		for s, err := range policy.ReadTrace(r) {
			if err == nil {
				err = rec.addSession(s)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if len(rec.calls) == 0 && rec.bare > 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNothingRecorded)
	}
	return rec.calls, nil
}

type recording struct {
	calls []RecordedCall
	bytes int
	bare  int // calls that passed and have no result
}

func (r *recording) addEntry(e audit.Entry) error {
	if e.Event != gate.Done || e.Action != gate.CallTool && e.Action != gate.GetPrompt && e.Action != gate.ReadResource || e.Code != gate.CodeOK && e.Code != gate.CodeToolError {
		return nil
	}
	if e.Server == CatalogServer || e.Server == JobServer {
		return nil // the call that it made is recorded, and made again
	}
	if len(e.Result) == 0 {
		r.bare++
		return nil
	}
	result, err := gate.ParseDoc(e.Result)
	if err != nil {
		return fmt.Errorf("record %d: %w", e.Seq, err)
	}
	c := RecordedCall{Action: e.Action, Server: e.Server, Tool: e.Tool, Digest: e.ToolDigest, Args: e.ArgsSHA256, Result: result}
	if args, err := gate.ParseDoc(e.Arguments); err == nil {
		c.Arguments = args
		for name := range args.Members() {
			if e.Action == gate.GetPrompt {
				c.Named = append(c.Named, name)
			}
		}
		slices.Sort(c.Named)
	}
	return r.add(c)
}

func (r *recording) addSession(s policy.RecordedSession) error {
	for _, c := range s.Calls {
		if c.Result.Kind() != gate.Object {
			continue
		}
		args := c.Args
		if args.IsZero() {
			args = gate.MustDoc("{}")
		}
		if err := r.add(RecordedCall{Tool: c.Tool, Args: args.Digest(), Arguments: args, Result: c.Result}); err != nil {
			return err
		}
	}
	return nil
}

// add adds a call. A result that asks the client for more is the end of none.
func (r *recording) add(c RecordedCall) error {
	if c.Result.Get("resultType").Text() == "input_required" {
		return nil
	}
	if r.bytes += len(c.Result.Raw()); r.bytes > maxRecorded {
		return fmt.Errorf("its results have more than %d bytes", maxRecorded)
	}
	r.calls = append(r.calls, c)
	return nil
}
