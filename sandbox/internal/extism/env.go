package extism

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// The modules that plug-ins import host functions from.
const (
	EnvModule  = "extism:host/env"
	UserModule = "extism:host/user" // hyper-mcp's
)

// IsPlugin reports whether a module that imports from the module of that name
// is a plug-in.
func IsPlugin(module string) bool { return module == EnvModule || module == UserModule }

// Types are the core WebAssembly types of a host function.
type Types struct{ Params, Results []api.ValueType }

// Imports returns all host functions: by module, by name, their types.
func Imports() map[string]map[string]Types {
	all := map[string]map[string]Types{EnvModule: {}, UserModule: {}}
	for _, f := range functions {
		all[f.module][f.name] = f.types
	}
	return all
}

// A function is a host function. do takes its parameters from the stack and
// leaves its result there (api.GoModuleFunc); its error ends the guest.
type function struct {
	module, name string
	types        Types
	do           func(p *Plugin, ctx context.Context, stack []uint64) error
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

type vals = []api.ValueType

// functions are all host functions.
var functions = []function{
	{EnvModule, "alloc", Types{vals{i64}, vals{i64}}, alloc},
	{EnvModule, "free", Types{vals{i64}, nil}, free},
	{EnvModule, "length", Types{vals{i64}, vals{i64}}, length},
	{EnvModule, "length_unsafe", Types{vals{i64}, vals{i64}}, length},
	{EnvModule, "memory_bytes", Types{nil, vals{i64}}, memoryBytes},
	{EnvModule, "reset", Types{nil, nil}, reset},
	{EnvModule, "load_u8", Types{vals{i64}, vals{i32}}, loadU8},
	{EnvModule, "load_u64", Types{vals{i64}, vals{i64}}, loadU64},
	{EnvModule, "store_u8", Types{vals{i64, i32}, nil}, storeU8},
	{EnvModule, "store_u64", Types{vals{i64, i64}, nil}, storeU64},
	{EnvModule, "input_length", Types{nil, vals{i64}}, inputLength},
	{EnvModule, "input_offset", Types{nil, vals{i64}}, inputOffset},
	{EnvModule, "input_load_u8", Types{vals{i64}, vals{i32}}, inputLoadU8},
	{EnvModule, "input_load_u64", Types{vals{i64}, vals{i64}}, inputLoadU64},
	{EnvModule, "output_set", Types{vals{i64, i64}, nil}, outputSet},
	{EnvModule, "error_set", Types{vals{i64}, nil}, errorSet},
	{EnvModule, "error_get", Types{nil, vals{i64}}, errorGet},
	{EnvModule, "config_get", Types{vals{i64}, vals{i64}}, configGet},
	{EnvModule, "var_get", Types{vals{i64}, vals{i64}}, varGet},
	{EnvModule, "var_set", Types{vals{i64, i64}, nil}, varSet},
	{EnvModule, "http_request", Types{vals{i64, i64}, vals{i64}}, httpRequest},
	{EnvModule, "http_status_code", Types{nil, vals{i32}}, httpStatusCode},
	{EnvModule, "http_headers", Types{nil, vals{i64}}, httpHeaders},
	{EnvModule, "get_log_level", Types{nil, vals{i32}}, getLogLevel},
	{EnvModule, "log_trace", Types{vals{i64}, nil}, logAt("trace")},
	{EnvModule, "log_debug", Types{vals{i64}, nil}, logAt("debug")},
	{EnvModule, "log_info", Types{vals{i64}, nil}, logAt("info")},
	{EnvModule, "log_warn", Types{vals{i64}, nil}, logAt("warn")},
	{EnvModule, "log_error", Types{vals{i64}, nil}, logAt("error")},

	{UserModule, "create_elicitation", Types{vals{i64}, vals{i64}}, answer(`{"action":"decline","content":{"error":"elicitation is not supported"}}`)},
	{UserModule, "create_message", Types{vals{i64}, vals{i64}}, answer(`{"role":"assistant","content":{"type":"text","text":"sampling is not supported"},"model":"","stopReason":"error"}`)},
	{UserModule, "get_access_token", Types{vals{i64}, vals{i64}}, answer(`{"Error":"access tokens are not supported"}`)},
	{UserModule, "get_keyring_secret", Types{vals{i64}, vals{i64}}, answer("")},
	{UserModule, "list_roots", Types{nil, vals{i64}}, answer(`{"roots":[]}`)},
	{UserModule, "notify_logging_message", Types{vals{i64}, nil}, notifyLoggingMessage},
	{UserModule, "notify_progress", Types{vals{i64}, nil}, drop("notify_progress")},
	{UserModule, "notify_prompt_list_changed", Types{nil, nil}, drop("notify_prompt_list_changed")},
	{UserModule, "notify_resource_list_changed", Types{nil, nil}, drop("notify_resource_list_changed")},
	{UserModule, "notify_resource_updated", Types{vals{i64}, nil}, drop("notify_resource_updated")},
	{UserModule, "notify_tool_list_changed", Types{nil, nil}, drop("notify_tool_list_changed")},
	{UserModule, "notify_url_elicitation_completed", Types{vals{i64}, nil}, drop("notify_url_elicitation_completed")},
}

func alloc(p *Plugin, _ context.Context, stack []uint64) (err error) {
	if n := stack[0]; n <= p.heap.max { // more is not moved, and may be no int
		p.charge(n)
	}
	stack[0], err = p.heap.alloc(stack[0])
	return err
}

func free(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	p.heap.release(stack[0])
	if stack[0] == p.input.offset {
		p.input.length = 0 // its memory may become something else
	}
	return nil
}

func length(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = p.heap.length(stack[0])
	return nil
}

func memoryBytes(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = uint64(len(p.heap.mem))
	return nil
}

// reset forgets the heap and with it the input, the output and the error.
func reset(p *Plugin, _ context.Context, _ []uint64) error {
	p.charge(0)
	p.heap.reset()
	p.input, p.Output, p.Err, p.failure = block{}, nil, "", 0
	return nil
}

func loadU8(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(1)
	b, err := p.heap.span(stack[0], 1)
	if err != nil {
		return err
	}
	stack[0] = uint64(b[0])
	return nil
}

func loadU64(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(8)
	b, err := p.heap.span(stack[0], 8)
	if err != nil {
		return err
	}
	stack[0] = binary.LittleEndian.Uint64(b)
	return nil
}

func storeU8(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(1)
	b, err := p.heap.span(stack[0], 1)
	if err != nil {
		return err
	}
	b[0] = byte(stack[1])
	return nil
}

func storeU64(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(8)
	b, err := p.heap.span(stack[0], 8)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, stack[1])
	return nil
}

func inputLength(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = p.input.length
	return nil
}

func inputOffset(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = p.input.offset
	return nil
}

func inputLoadU8(p *Plugin, ctx context.Context, stack []uint64) error {
	if err := p.inInput(stack[0], 1); err != nil {
		return err
	}
	stack[0] += p.input.offset
	return loadU8(p, ctx, stack)
}

func inputLoadU64(p *Plugin, ctx context.Context, stack []uint64) error {
	if err := p.inInput(stack[0], 8); err != nil {
		return err
	}
	stack[0] += p.input.offset
	return loadU64(p, ctx, stack)
}

func (p *Plugin) inInput(at, n uint64) error {
	if size := p.input.length; at > size || n > size-at {
		return fmt.Errorf("%d bytes at %d are outside the input of %d bytes", n, at, size)
	}
	return nil
}

func outputSet(p *Plugin, _ context.Context, stack []uint64) error {
	if stack[1] == 0 { // kits have no memory for nothing: the offset is 0
		p.charge(0)
		p.Output = []byte{}
		return nil
	}
	b, err := p.heap.span(stack[0], stack[1])
	if err != nil {
		return err
	}
	p.charge(stack[1])
	p.Output = bytes.Clone(b)
	return nil
}

func errorSet(p *Plugin, _ context.Context, stack []uint64) error {
	b, err := p.get(stack[0])
	if err != nil {
		return err
	}
	p.failure, p.Err = stack[0], text(b, maxError)
	return nil
}

func errorGet(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = p.failure
	return nil
}

func configGet(p *Plugin, _ context.Context, stack []uint64) error {
	key, err := p.key(stack[0])
	if err != nil {
		return err
	}
	stack[0], err = p.put([]byte(p.Config[key]))
	return err
}

func varGet(p *Plugin, ctx context.Context, stack []uint64) error {
	key, err := p.key(stack[0])
	if err != nil {
		return err
	}
	value := p.vars[key]
	if p.Var != nil {
		if value, _, err = p.Var(ctx, key); err != nil {
			return err
		}
	}
	stack[0], err = p.put(value) // as in Extism, an empty value is as good as none
	return err
}

func varSet(p *Plugin, ctx context.Context, stack []uint64) error {
	key, err := p.key(stack[0])
	if err != nil {
		return err
	}
	b, err := p.get(stack[1])
	if err != nil {
		return err
	}
	var value []byte
	if stack[1] != 0 {
		value = append(value, b...)
	}
	if p.SetVar != nil {
		return p.SetVar(ctx, key, value)
	}
	return p.keep(key, value)
}

// keep sets a variable for as long as the call lasts.
func (p *Plugin) keep(key string, value []byte) error {
	size := p.varSize
	if old, ok := p.vars[key]; ok {
		size -= len(key) + len(old) + varCost
	}
	if value == nil {
		p.varSize = size
		delete(p.vars, key)
		return nil
	}
	if size += len(key) + len(value) + varCost; size > maxVars {
		return fmt.Errorf("the variables need %d bytes; %d are the most", size, maxVars)
	}
	if p.vars == nil {
		p.vars = map[string][]byte{}
	}
	p.vars[key], p.varSize = value, size
	return nil
}

// A request is what guests write for http_request, apart from the body.
type request struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
}

var errNoHTTP = errors.New("this call has no HTTP: it must be granted")

// readJSON reads what a guest wrote, as long as it is of a size that it makes sense for.
func readJSON(b []byte, into any) error {
	if len(b) > maxJSON {
		return fmt.Errorf("%d bytes of JSON; %d are the most", len(b), maxJSON)
	}
	return json.Unmarshal(b, into)
}

func httpRequest(p *Plugin, ctx context.Context, stack []uint64) error {
	if p.HTTP == nil { // a request that cannot be sent is not read
		p.charge(0)
		return cmp.Or(p.NoHTTP, errNoHTTP)
	}
	b, err := p.get(stack[0])
	if err != nil {
		return err
	}
	r := request{Method: "GET"}
	if err := readJSON(b, &r); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if r.Method == "" {
		r.Method = "GET"
	}
	if b, err = p.get(stack[1]); err != nil {
		return err
	}
	header := make(map[string][]string, len(r.Headers))
	for name, value := range r.Headers {
		header[name] = []string{value}
	}
	body := bytes.Clone(b) // HTTP may call the guest, which may change the heap
	p.status, p.header = 0, nil
	status, header, body, err := p.HTTP(ctx, r.Method, r.URL, header, body)
	if err != nil {
		return err
	}
	p.status, p.header = status, header
	if p.header == nil {
		p.header = map[string][]string{}
	}
	stack[0], err = p.put(body)
	return err
}

func httpStatusCode(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = api.EncodeI32(int32(p.status))
	return nil
}

// httpHeaders gives the headers of the last response as a JSON object of
// strings, by names in lower case; no memory if there was no response.
func httpHeaders(p *Plugin, _ context.Context, stack []uint64) error {
	if p.header == nil {
		p.charge(0)
		stack[0] = 0
		return nil
	}
	flat := make(map[string]string, len(p.header))
	for name, values := range p.header {
		flat[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	b, err := json.Marshal(flat)
	if err != nil {
		return err
	}
	stack[0], err = p.put(b)
	return err
}

// Levels of get_log_level: no message, and all but trace. Trace is not asked
// for because the kit for Go sends it by log_error.
const (
	levelDebug = 1
	levelOff   = math.MaxInt32
)

func getLogLevel(p *Plugin, _ context.Context, stack []uint64) error {
	p.charge(0)
	stack[0] = levelOff
	if p.Log != nil {
		stack[0] = levelDebug
	}
	return nil
}

func logAt(level string) func(*Plugin, context.Context, []uint64) error {
	return func(p *Plugin, _ context.Context, stack []uint64) error {
		b, err := p.get(stack[0])
		if err != nil {
			return err
		}
		p.log(level, b)
		return nil
	}
}

func (p *Plugin) log(level string, message []byte) {
	if p.Log != nil {
		p.Log(level, text(message, maxLog))
	}
}

// text returns the first bytes of b as UTF-8.
func text(b []byte, most int) string {
	return strings.ToValidUTF8(string(b[:min(len(b), most)]), "\ufffd")
}
