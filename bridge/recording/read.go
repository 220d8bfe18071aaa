// Package recording has what was called and answered, as an audit log or a recorded session tells
// of it ([Read]), and how a gateway answers from it ([Replay]).
package recording

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy/study"
)

// A Call is a call of a tool whose result was written down; or a prompt that was
// got, or a resource that was read.
type Call struct {
	// Action is what was done; "" is [gate.CallTool].
	Action gate.Action
	Server string // of a prompt or a resource; the name of a tool says it
	Tool   string // server__tool, or the qualified name of the prompt, or the URI of the resource
	Digest string // of the tool's definition then; "" if it is not known
	Args   string // digest of the arguments, as of [gate.Doc.Digest]
	// Arguments are these as the audit log has them, for people: without secrets, and absent if
	// they are not known. Nothing goes by them.
	Arguments gate.Doc
	Result    gate.Doc
	Named     []string // the arguments of a prompt, sorted
}

// maxRecorded bounds the results of a recording, in bytes: all of them are held in
// memory.
const maxRecorded = 1 << 30

// ErrNothing says that a recording has calls and no results: the audit log
// has to be kept with record: full.
var ErrNothing = errors.New("the calls in it were recorded without their results: set audit.record to full, and record the session again")

// Read reads what was called, got and read that a file tells of, in its order: an audit log
// that holds results, over all its files, or recorded sessions, one a line, as
// [study.ReadTrace] takes them. Calls that came to no result are left out, and those of
// the gateway's own servers whose tools carry out other calls: the call that such a one made is
// recorded, and made again. The error wraps [ErrNothing] if no result was recorded.
func Read(ctx context.Context, path string) ([]Call, error) {
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
		for s, err := range study.ReadTrace(r) {
			if err == nil {
				err = rec.addSession(s)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if len(rec.calls) == 0 && rec.bare > 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNothing)
	}
	return rec.calls, nil
}

type recording struct {
	calls []Call
	bytes int
	bare  int // calls that passed and have no result

}

func (r *recording) addEntry(e audit.Entry) error {
	if e.Event != gate.Done || e.Action != gate.CallTool && e.Action != gate.GetPrompt && e.Action != gate.ReadResource || e.Code != codes.OK && e.Code != codes.ToolError {
		return nil
	}
	if product.RelaysCalls(e.Server) {
		return nil
	}
	if len(e.Result) == 0 {
		r.bare++
		return nil
	}
	result, err := gate.ParseDoc(e.Result)
	if err != nil {
		return fmt.Errorf("record %d: %w", e.Seq, err)
	}
	c := Call{Action: e.Action, Server: e.Server, Tool: e.Tool, Digest: e.ToolDigest, Args: e.ArgsSHA256, Result: result}
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

func (r *recording) addSession(s study.RecordedSession) error {
	for _, c := range s.Calls {
		if c.Result.Kind() != doc.Object {
			continue
		}
		args := c.Args
		if args.IsZero() {
			args = gate.MustDoc("{}")
		}
		if err := r.add(Call{Tool: c.Tool, Args: args.Digest(), Arguments: args, Result: c.Result}); err != nil {
			return err
		}
	}
	return nil
}

// add adds a call. A result that asks the client for more is the end of none.
func (r *recording) add(c Call) error {
	if c.Result.Get("resultType").Text() == "input_required" {
		return nil
	}
	if r.bytes += len(c.Result.Raw()); r.bytes > maxRecorded {
		return fmt.Errorf("its results have more than %d bytes", maxRecorded)
	}
	r.calls = append(r.calls, c)
	return nil
}
