package extism

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// A Plugin is the state of one call of a plug-in: what the plug-in can reach
// through its host functions, and what it answered.
//
// The zero Plugin has no input, no configuration, no variables, no HTTP, no
// log, and a heap of 64 MiB at most. Only the goroutine that runs the guest may
// use it. A function of it may call the guest again.
type Plugin struct {
	Input  []byte            // read when the guest calls the host for the first time; never written to
	Config map[string]string // what config_get tells

	// HTTP carries out a request. Method, URL and header are the guest's words,
	// unchecked; body is HTTP's to keep. Nil refuses every request. An error
	// ends the guest.
	HTTP func(ctx context.Context, method, url string, header map[string][]string, body []byte) (status int, respHeader map[string][]string, respBody []byte, err error)
	// NoHTTP is the error of a guest that asks for HTTP where there is none; nil is one
	// that says so.
	NoHTTP error

	// Var and SetVar keep variables between calls; a nil value deletes one. Set
	// both, or neither: then variables live as long as the call, 1 MiB of them
	// at most. An error ends the guest.
	Var    func(ctx context.Context, key string) (value []byte, found bool, err error)
	SetVar func(ctx context.Context, key string, value []byte) error

	// Log takes what the guest logs. Level is trace, debug, info, warn or error;
	// a message has 16 KiB at most and is UTF-8, but may hold any character.
	// Nil drops it.
	Log func(level, message string)

	// Charge is called at every host call with how many bytes it is about to move (0 if none) and
	// ends the guest by an error. Nil charges nothing.
	Charge func(bytes int) error

	// MaxHeap bounds the heap, in bytes. Zero means 64 MiB, more than 1 GiB means that, less than
	// zero means no heap. The host needs a quarter of it in addition, and while the heap grows as
	// much again.
	MaxHeap int64

	Output []byte // the last that the guest set, its own copy
	Err    string // the guest's last error message, 64 KiB of it at most

	heap    heap
	started bool
	input   block // where Input lies
	failure uint64
	status  int
	header  map[string][]string // nil before the first response
	vars    map[string][]byte
	varSize int
}

// A block is a part of the heap.
type block struct{ offset, length uint64 }

const (
	defaultHeap = 64 << 20
	maxError    = 64 << 10 // bytes of an error message; the rest is cut off
	maxLog      = 16 << 10 // bytes of one message; the rest is cut off
	maxKey      = 4 << 10  // bytes of a name of a configuration value or variable
	// maxJSON bounds what is read as JSON, which cannot be interrupted and takes up to
	// twenty times its size.
	maxJSON = 4 << 20
	maxVars = 1 << 20 // bytes of variables that the call keeps itself, as Extism's default
	varCost = 48      // bytes that a variable costs in addition to its name and value
)

// ErrHeap is wrapped by the [*Error] of a guest that needs more heap than
// [Plugin.MaxHeap].
var ErrHeap = errors.New("the heap is full")

// An Error reports that a host call ended the guest.
type Error struct {
	Call string // name of the host function
	Err  error
}

func (e *Error) Error() string { return "extism: " + e.Call + ": " + e.Err.Error() }

// Unwrap returns the cause: [ErrHeap], an error of a function of the [Plugin], or one that callers
// need not recognize.
func (e *Error) Unwrap() error { return e.Err }

// A GuestError is an error that the plug-in itself reported.
type GuestError struct {
	Text string // the guest's own words
	Code int32  // what its function returned
}

func (e *GuestError) Error() string { return "extism: the plug-in reports: " + e.Text }

// Answer returns the output of a function of the plug-in that returned results
// (and did not trap). The error is a [*GuestError] if the function set an error
// or returned another code than 0.
func (p *Plugin) Answer(results []uint64) ([]byte, error) {
	var code int32
	if len(results) > 0 {
		code = api.DecodeI32(results[0])
	}
	switch {
	case p.Err != "":
		return nil, &GuestError{Text: p.Err, Code: code}
	case code != 0:
		return nil, &GuestError{Text: "code " + strconv.Itoa(int(code)) + " and no message", Code: code}
	}
	return p.Output, nil
}

// Instantiate gives r the host functions for plug-ins. For each call of one of
// them it asks of for the state of the call that ctx belongs to; nil ends the
// guest. of should be cheap: guests move their data in words of 8 bytes.
//
// An error of a host call ends the guest. The error that the engine then
// returns wraps an [*Error], or what [Plugin.Charge] returned.
func Instantiate(ctx context.Context, r wazero.Runtime, of func(context.Context) *Plugin) error {
	for _, module := range []string{EnvModule, UserModule} {
		builder := r.NewHostModuleBuilder(module)
		for _, f := range functions {
			if f.module == module {
				builder.NewFunctionBuilder().WithGoModuleFunction(f.host(of), f.types.Params, f.types.Results).Export(f.name)
			}
		}
		if _, err := builder.Instantiate(ctx); err != nil {
			return fmt.Errorf("extism: make the module %s: %w", module, err)
		}
	}
	return nil
}

var errNoCall = errors.New("no call of a plug-in is running")

// host is f as the engine calls it. Only a panic ends a guest; it is the
// engine that recovers it.
func (f function) host(of func(context.Context) *Plugin) api.GoModuleFunc {
	do := f.do
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		p := of(ctx)
		if p == nil {
			panic(&Error{Call: f.name, Err: errNoCall})
		}
		if !p.started {
			if err := p.start(); err != nil {
				panic(&Error{Call: f.name, Err: err})
			}
		}
		if err := do(p, ctx, stack); err != nil {
			panic(&Error{Call: f.name, Err: err})
		}
	}
}

// start puts the input on the heap, where some guests look for it.
func (p *Plugin) start() error {
	p.started = true
	p.heap.max = uint64(min(max(p.MaxHeap, 0), maxHeap))
	if p.MaxHeap == 0 {
		p.heap.max = defaultHeap
	}
	offset, err := p.put(p.Input)
	p.input = block{offset, uint64(len(p.Input))}
	return err
}

// charge ends the guest if the bytes are not to be had. The error is the
// embedder's and passes as it is.
func (p *Plugin) charge(bytes uint64) {
	if p.Charge == nil {
		return
	}
	if err := p.Charge(int(bytes)); err != nil {
		panic(err)
	}
}

// put copies b to the heap. Nothing has no place there: its offset is 0.
func (p *Plugin) put(b []byte) (uint64, error) {
	p.charge(uint64(len(b)))
	offset, err := p.heap.alloc(uint64(len(b)))
	if err != nil || offset == 0 {
		return 0, err
	}
	copy(p.heap.mem[offset:], b)
	return offset, nil
}

// get returns the block at offset, which must be one that the guest holds; 0 is
// the empty block. It is good until the heap changes.
func (p *Plugin) get(offset uint64) ([]byte, error) {
	n := p.heap.length(offset)
	if offset != 0 && n == 0 {
		return nil, fmt.Errorf("there is no block at offset %#x", offset)
	}
	p.charge(n)
	return p.heap.mem[offset : offset+n], nil
}

// key returns the block at offset as a name.
func (p *Plugin) key(offset uint64) (string, error) {
	if n := p.heap.length(offset); n > maxKey {
		return "", fmt.Errorf("a name of %d bytes; %d are the most", n, maxKey)
	}
	b, err := p.get(offset)
	return string(b), err
}
